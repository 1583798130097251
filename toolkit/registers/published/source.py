"""The transcribed figures: CSV files in, exact values out."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.files import read_bytes
from toolkit.registers.arrow import Row
from toolkit.registers.columns import Table, Type

SOURCES = (
    *("calibration", "decisions", "evaluations", "freeze", "luck_share"),
    *("probe", "probe_clean_tasks", "probe_diagnostic_tasks", "runs", "training_groups"),
)

Record = dict[str, str]

# No figure of the study is anywhere near 10^18.
LARGEST_POWER = 18


@dataclass(frozen=True)
class Source:
    """The CSV files by name, as bytes and as records."""

    folder: Path  # where they were read
    content: dict[str, bytes]  # file name → bytes
    # Name without suffix → its rows, every value as the text that stands there
    records: dict[str, list[Record]]


def read_source(folder: Path) -> Source:
    """Read every CSV file of the transcription."""
    content = {f"{name}.csv": read_bytes(folder / f"{name}.csv") for name in SOURCES}
    records = {}
    for name in SOURCES:
        try:
            reader = csv.DictReader(io.StringIO(content[f"{name}.csv"].decode(), newline=""), strict=True)
            header = reader.fieldnames or []
            if len(set(header)) != len(header):
                raise csv.Error("a column stands twice")  # noqa: TRY301 - one message for what is no table
            records[name] = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DamagedError(f"{name}.csv is not a CSV file", found=error, where=folder) from None
        if not records[name]:
            raise DamagedError(f"{name}.csv has no rows", where=folder)
        for line, record in enumerate(records[name], start=2):
            if None in record or None in record.values():
                raise DamagedError(f"{name}.csv has an uneven row", where=f"{folder / name}.csv line {line}")
    return Source(folder, content, records)


def whole(record: Mapping[str, str], column: str) -> int:
    """Return a count."""
    value = _decimal(_text(record, column), column)
    if value != value.to_integral_value():
        raise DamagedError(f"{column} is no count", found=record[column])
    return int(value)


def number(record: Mapping[str, str], column: str) -> float:
    """Return a measured figure."""
    return float(_decimal(_text(record, column), column))


def decimal(record: Mapping[str, str], column: str) -> Decimal:
    """Return a printed figure exactly."""
    return _decimal(_text(record, column), column)


def row_of(
    table: Table, record: Mapping[str, str], names: Mapping[str, str], own: Row, lacking: tuple[str, ...] = ()
) -> Row:
    """Return a row of a table from a record."""
    row = dict(own)
    for column in table.columns:
        if column.name not in own and column.name not in lacking:
            name = names.get(column.name, column.name)
            row[column.name] = (
                None if column.nullable and not record[name] else _READERS[column.type](record, name)
            )
    return row


def moment(record: Mapping[str, str], column: str) -> datetime:
    """Return a time from its ISO 8601 text."""
    time = datetime.fromisoformat(record[column])
    if time.tzinfo is None:
        raise ValueError(f"{record[column]} has no time zone")
    return time


def share_of(fraction: str, total: int, where: object) -> int:
    """Return the whole number of which a printed fraction of a total speaks."""
    exact = _decimal(fraction, where) * total
    nearest = round(exact)
    if abs(exact - nearest) > Decimal("1e-6"):
        raise DamagedError(
            "a fraction is not a count of its total", expected="a whole number", found=exact, where=where
        )
    return int(nearest)


def put(figures: Record, name: str, value: str) -> None:
    """Put a figure among others; a second, different one under the same name is refused."""
    if figures.setdefault(name, value) != value:
        raise DamagedError(
            "a figure stands twice, with two values", expected=figures[name], found=value, where=name
        )


def _decimal(text: str, where: object) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise DamagedError("a figure is no number", found=text, where=where) from None
    if not value.is_finite() or value.adjusted() > LARGEST_POWER:
        raise DamagedError("a figure is not finite, or far too large", found=text[:40], where=where)
    return value


def _text(record: Mapping[str, str], column: str) -> str:
    if not record.get(column):
        raise DamagedError(f"{column} is empty", where=dict(list(record.items())[:4]))
    return record[column]


_READERS: dict[Type, Callable[[Mapping[str, str], str], Any]] = {
    Type.STRING: lambda record, column: record[column],
    Type.INT32: whole,
    Type.FLOAT64: number,
    Type.DECIMAL: decimal,
    Type.TIMESTAMP: moment,
}
