"""From the nested documents of a log to columns with one value a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_up_to
from toolkit.registers.importing.log import FILE
from toolkit.registers.importing.source import MOST_CELLS, MOST_COLUMNS

if TYPE_CHECKING:
    import polars as pl

Cell = str | int | float | bool | None
LARGEST_DOCUMENT = 2**26
"""Bytes of a document that describes a run: with a template of every task it has a thousandth."""
_LARGEST_WHOLE = 2**63


def bounded(what: str, count: int, most: int, path: Path) -> None:
    """Check that a log has no more of something than one can have."""
    if count > most:
        raise DamagedError(
            f"the log has more {what} than one can have",
            expected=f"{most} at most",
            found=f"{count}, or more",
            where=path,
            remedy="import it in parts",
        )


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Say of which file it was whatever went wrong with reading it."""
    import duckdb
    import polars as pl

    wrong = (ValueError, TypeError, LookupError, RecursionError, ArithmeticError)
    try:
        yield
    except ToolkitError:
        raise
    except (*wrong, OSError, EOFError, NotImplementedError, pl.exceptions.PolarsError, duckdb.Error) as error:
        raise DamagedError(
            f"{path.name} is not {what}",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
        ) from None


def document(path: Path, what: str) -> dict[str, Any]:
    """Return the JSON object that a file holds."""
    raw = read_up_to(path, LARGEST_DOCUMENT + 1)
    bounded("bytes in the description of a run", len(raw), LARGEST_DOCUMENT, path)
    with reading(path, what):
        content = json.loads(raw)
        if not isinstance(content, dict):
            raise TypeError("no JSON object")
    return content


def part(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the document that another has under a name; an empty one where it has none."""
    found = content.get(name)
    if not isinstance(found, Mapping | None):
        raise TypeError(f"{name!r} is no document")
    return dict(found or {})


def flat(content: Mapping[str, Any], prefix: str, left_out: set[str]) -> dict[str, Cell]:
    """Return the values of a nested document by their dotted names."""
    cells: dict[str, Cell] = {}
    for name, value in content.items():
        if isinstance(value, Mapping):
            cells |= flat(value, f"{prefix}{name}.", left_out)
        elif value is None or isinstance(value, str | int | float):
            cells[f"{prefix}{name}"] = value
        elif value:
            left_out.add(f"{prefix}{name}")
    return cells


def frame(rows: Sequence[Mapping[str, Any]], path: Path) -> pl.DataFrame:
    """Return rows as a table: a column of its own type where all its values have one, else text.

    Columns without any value are left out.
    """
    import polars as pl

    names = list(dict.fromkeys(name for row in rows for name in row))
    bounded("columns", len(names), MOST_COLUMNS, path)
    bounded("cells", len(names) * len(rows), MOST_CELLS, path)
    columns = [_column(name, [row.get(name) for row in rows]) for name in names]
    return pl.DataFrame([one for one in columns if one.null_count() < len(one)])


def _column(name: str, values: list[Cell]) -> pl.Series:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and all(abs(value or 0) < _LARGEST_WHOLE for value in values if isinstance(value, int)):
        return pl.Series(name, values, pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, values, pl.Float64, strict=False)
    texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
    return pl.Series(name, [text if text is None else str(text) for text in texts], pl.String)


def with_runs(rows: pl.DataFrame, runs: Sequence[Mapping[str, Any]], key: str, path: Path) -> pl.DataFrame:
    """Return rows with what is told of the run of each beside them."""
    told = frame([{key: number, **run} for number, run in enumerate(runs)], path)
    return told.join(rows, on=key, how="inner", maintain_order="right").drop(key)


def candidates(table: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that arms are to be looked for in: what differs on one pool, or else the file."""
    import polars as pl

    own = [name for name in dict.fromkeys(names) if name in table.columns]
    differ = table.group_by("pool").agg(pl.col(own).n_unique()).select(pl.col(own) > 1)
    return tuple(name for name in own if differ[name].any()) or (FILE,)


def with_outcome(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table with an outcome under the name that registers have for its sort.

    Scores that are 0 or 1 wherever they are there become truth values; one that is not a number (NaN) is
    none. Where there is none, and no other error, `error` says so.
    """
    import polars as pl

    cells = table[name]
    if cells.dtype.is_numeric():
        cells = cells.cast(pl.Float64).fill_nan(None)
        told = cells.drop_nulls()
        if len(told) and told.is_in([0.0, 1.0]).all():
            cells = cells.cast(pl.Boolean)
    table = table.with_columns(cells.alias("true_success" if cells.dtype == pl.Boolean else "score"))
    if not cells.null_count() and "error" not in table.columns:
        return table
    unscored = pl.when(cells.is_null()).then(pl.lit("it was not scored"))
    errors = [pl.col("error")] if "error" in table.columns else []
    return table.with_columns(pl.coalesce(*errors, unscored).alias("error"))


def moment(seconds: object) -> str | None:
    """Return seconds since 1970 as ISO 8601 in UTC, a text that is such a time already as it is."""
    if not isinstance(seconds, str | int | float) or seconds == "":
        return None
    try:
        number = float(seconds)
    except ValueError:
        return str(seconds)
    if not math.isfinite(number):
        return None
    try:
        return datetime.fromtimestamp(number, UTC).isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return None


def below(file: Path, source: Path) -> str:
    """Return what names a file of a source: its name without its ending, or its path below a folder."""
    named = file.relative_to(source) if source.is_dir() else Path(file.name)
    return named.with_suffix("").as_posix()
