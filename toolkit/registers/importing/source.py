"""Somebody's table of episodes: read as it is, every row with the number that its owner knows it by."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.errors import DamagedError, UsageError
from toolkit.files import read_up_to
from toolkit.registers.columns import Column, Type
from toolkit.registers.episode_counts import OUTCOMES

if TYPE_CHECKING:
    from io import BufferedIOBase

LARGEST_TABLE = 2**30
"""Bytes of a table, unpacked: text of ten million episodes, which memory holds some times over."""
LONGEST_LINE = 16 * 2**20
"""Bytes of a line: an episode with all that was said in it has less."""
MOST_COLUMNS = 2000
"""Columns: a log of episodes has tens, one that was flattened hundreds."""
MOST_CELLS = 500_000_000
"""Rows times columns: what a gap costs, too."""
_BLOCK = 2**20
_EXCERPT = 200
ROW = "row of the table"
"""Column with the number of each row, from 1."""


SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")

ENCRYPTED = "write it anew without encryption, with whatever has its keys"
_ANEW = "write it anew: pandas.read_csv(FILE, sep=';', decimal=',').to_csv(FILE, index=False)"
_IN_UTF_8 = "write it anew in UTF-8: iconv -f UTF-16 -t UTF-8 FILE, or -f LATIN1, as it was written"
_WELL_FORMED = {
    ".csv": "a heading and rows, with commas between cells",
    ".tsv": "a heading and rows, with tabs between cells",
    **dict.fromkeys((".jsonl", ".ndjson"), "a JSON object on each line"),
    ".json": "a list of objects, one an episode, as DataFrame.to_json(FILE, orient='records') writes it, or "
    "with orient='split', 'table' or 'columns'",
    ".parquet": "Parquet",
}


def kind_of(path: Path) -> str | None:
    """Return which of `SUFFIXES` a table has, or nothing; text may be packed (.gz)."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    kind = suffixes[-2] if is_packed and len(suffixes) > 1 else "".join(suffixes[-1:])
    return kind if kind in SUFFIXES and not (is_packed and kind == ".parquet") else None


def read_source(path: Path, left_out: set[str] | None = None) -> pl.DataFrame:
    """Return a table with the number of each row beside it; every cell of a text file is text, or null."""
    kind = kind_of(path)
    if kind is None:
        raise UsageError(
            "the table is of a sort that is not read", expected=", ".join(SUFFIXES), found=path.name
        )
    read_up_to(path, 1)  # a missing file, a folder and a pipe each have their own message
    try:
        if kind == ".parquet":
            table = _parquet(path, set() if left_out is None else left_out)
        else:
            separator = {".csv": ",", ".tsv": "\t"}.get(kind)
            longest = LARGEST_TABLE if kind == ".json" else LONGEST_LINE
            _check_lines(path, separator.encode() if separator else None, longest)
            table = _delimited(path, separator) if separator else _json(path, kind, left_out)
    except DamagedError as error:
        raise error.restated(where=path) from None
    except (pl.exceptions.PolarsError, OSError, EOFError, ValueError, RecursionError) as error:
        is_encrypted = kind == ".parquet" and "crypt" in str(error)
        is_encoded = kind != ".parquet" and "utf-8" in str(error).lower()
        raise DamagedError(
            f"{path.name} is {'encrypted' if is_encrypted else 'not a readable table'}",
            expected=None if is_encrypted else _WELL_FORMED[kind],
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
            remedy=ENCRYPTED if is_encrypted else _IN_UTF_8 if is_encoded else None,
        ) from None
    if ROW in table.columns:
        raise DamagedError("the table has a column with a name that is taken", found=ROW, where=path)
    if not table.width and left_out:
        raise DamagedError(
            "no column of the table has one value a row", found=", ".join(sorted(left_out)), where=path
        )
    if not table.height:
        raise DamagedError("the table has no rows, and no data is not zero", where=path)
    return table.with_row_index(ROW, offset=1)


def _check_lines(path: Path, separator: bytes | None, longest: int) -> None:
    """Check the bounds of a text before it is made into rows; a packed one is unpacked block by block."""
    is_packed = path.suffix.lower() == ".gz"
    if not is_packed:
        _check("bytes", path.stat().st_size, LARGEST_TABLE, path)
    total = line = 0
    heading: bytes | None = b""
    with (gzip.open if is_packed else open)(path, "rb") as opened:
        while block := opened.read(_BLOCK):
            total += len(block)
            _check("bytes", total, LARGEST_TABLE, path)
            # A line that begins and ends within a block is shorter than it.
            end = block.find(b"\n")
            line += len(block) if end < 0 else end
            _check("bytes in a line", line, longest, path)
            if separator is not None and heading is not None:
                heading += block if end < 0 else block[:end]
                _check("columns", heading.count(separator) + 1, MOST_COLUMNS, path)
                heading = heading if end < 0 else None
            line = line if end < 0 else len(block) - block.rfind(b"\n") - 1


def bounded(what: str, count: int, most: int, path: Path, whole: str = "log") -> None:
    """Check that a table, or a log, has no more of something than one can have."""
    if count > most:
        of_table = "import what the rules need of it: fewer columns, or the episodes in parts"
        raise DamagedError(
            f"the {whole} has more {what} than one can have",
            expected=f"{most} at most",
            found=f"{count}, or more",
            where=path,
            remedy=of_table if whole == "table" else "import it in parts",
        )


_check = partial(bounded, whole="table")


def _parquet(path: Path, left_out: set[str]) -> pl.DataFrame:
    """Read the plain columns of a Parquet file whose own description is within the bounds."""
    with pq.ParquetFile(path) as opened:
        described, schema = opened.metadata, opened.schema_arrow
        _check("columns", described.num_columns, MOST_COLUMNS, path)
        _check("cells", described.num_rows * described.num_columns, MOST_CELLS, path)
        size = sum(described.row_group(i).total_byte_size for i in range(described.num_row_groups))
        _check("bytes", size, LARGEST_TABLE, path)
        plain = plain_fields(schema, left_out)
        return from_arrow(opened.iter_batches(_PART, columns=plain.names), plain, left_out, path)


_PART = 2**10
"""Rows that are unpacked at once: a few bytes of a dictionary may stand for a million cells."""
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999
_PLAIN = (
    *("is_null", "is_boolean", "is_integer", "is_floating", "is_decimal", "is_date", "is_time"),
    *("is_timestamp", "is_duration", "is_string", "is_large_string", "is_string_view"),
    *("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"),
)


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type that values of a type are stored in."""
    inner = getattr(kind, "storage_type", None) or getattr(kind, "value_type", None)
    is_packed = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return _stored(inner) if inner and (is_packed or isinstance(kind, pa.BaseExtensionType)) else kind


def plain_fields(schema: pa.Schema, left_out: set[str]) -> pa.Schema:
    """Return the columns that have a value a row, of a type that is read; the others are left out."""
    _check_once(schema.names)
    plain = [
        one for one in schema if any(getattr(pa.types, is_kind)(_stored(one.type)) for is_kind in _PLAIN)
    ]
    left_out.update({*schema.names} - {one.name for one in plain})
    return pa.schema(plain)


def from_arrow(
    batches: Iterable[pa.RecordBatch], plain: pa.Schema, left_out: set[str], path: Path
) -> pl.DataFrame:
    """Return plain columns within a table's bounds; Polars would end the program over some types."""
    kinds = pa.schema([pa.field(one.name, _stored(one.type)) for one in plain])
    parts, size = [], 0
    for batch in batches:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, _PART):
            part = batch.slice(start, _PART)
            columns = [_unpacked(part.column(one.name)) for one in plain]
            parts.append(pa.RecordBatch.from_arrays(columns, schema=kinds))
            size += parts[-1].nbytes
            _check("bytes", size, LARGEST_TABLE, path)
    table = pa.Table.from_batches(parts, kinds)
    told = {}
    for one, column in zip(plain, table.columns, strict=True):
        is_uuid = isinstance(one.type, pa.UuidType)
        values = (
            [value and str(UUID(bytes=value)) for value in column.to_pylist()]
            if is_uuid
            else _legible(column)
        )
        if values is None:
            left_out.add(one.name)
        else:
            told[one.name] = values
    made = pl.from_arrow(pa.table(told))
    if not isinstance(made, pl.DataFrame):
        raise TypeError(made)
    return made


def _unpacked(values: pa.Array) -> pa.Array:
    """Return values as they are stored, one a row."""
    if isinstance(values, pa.ExtensionArray):
        return _unpacked(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return _unpacked(values.dictionary.take(values.indices))
    return _unpacked(pc.run_end_decode(values)) if isinstance(values, pa.RunEndEncodedArray) else values


def _legible(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return cells as times in UTC, seconds, numbers or text; nothing where bytes are no text."""
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        seconds = pc.divide(
            column.cast(pa.int64()), {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        )
        bounds = pc.min_max(seconds).as_py()
        if bounds["min"] is None or _FIRST_SECOND <= bounds["min"] <= bounds["max"] <= _LAST_SECOND:
            return column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else column
    elif types.is_duration(kind):
        units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
        return pc.divide(column.cast(pa.int64()).cast(pa.float64()), units[kind.unit])
    elif types.is_decimal(kind):
        if not types.is_decimal256(kind) and kind.scale >= 0:
            return column
    elif not (types.is_date(kind) or types.is_time(kind) or "binary" in str(kind)):
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:  # bytes that are no UTF-8
        return None


def _delimited(path: Path, separator: str) -> pl.DataFrame:
    quote = '"' if separator == "," else None
    first = pl.read_csv(
        path, infer_schema=False, separator=separator, quote_char=quote, has_header=False, n_rows=1
    )
    names = [name.strip() for name in (first.row(0) if first.height else ()) if name is not None]
    _check_once(names)
    other = next((mark for mark in ";\t,|" if len(names) == 1 and mark in names[0]), None)
    if other:
        raise DamagedError(
            f"the heading has one column, as if its cells were separated by {other!r}",
            expected=f"cells separated by {separator!r}",
            found=names[0],
            remedy=_ANEW,
        )
    table = pl.read_csv(path, infer_schema=False, separator=separator, quote_char=quote)
    return table.rename({name: name.strip() for name in table.columns if name.strip()})


_LARGEST_WHOLE = 2**27
"""Bytes of a JSON document: it is held whole, in ten times as many."""


def _json(path: Path, kind: str, left_out: set[str] | None) -> pl.DataFrame:
    """Read objects with numbers as they are written: 9007199254740993 is no double, and 1 is not 1.0."""
    columns: dict[str, list[str | None]] = {}
    nested: set[str] | None = None if left_out is None else set()
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as opened:
        found = _rows(opened, path) if kind == ".json" else _lines(opened)
        for rows, (which, document) in enumerate(found):
            for name in [name for name in document if name not in columns]:
                _check("columns", len(columns) + 1, MOST_COLUMNS, path)
                columns[name] = [None] * rows
            _check("cells", (rows + 1) * len(columns), MOST_CELLS, path)
            for name, cells in columns.items():
                value = document.get(name)
                # Nearly all cells are text by now, numbers too: a million rows have no time for calls.
                cells.append(
                    value if value is None or type(value) is str else _cell(value, name, which, nested)
                )
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    if left_out is None or nested is None:
        return table
    left_out.update(nested)
    return table.drop(nested)


def _lines(lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of JSON lines, each with the words that say which it is."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"line {number}", json_object(line, number)


def _rows(opened: BufferedIOBase, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a JSON document: a list's elements, or what pandas writes in its other layouts."""
    content = opened.read(_LARGEST_WHOLE + 1)
    _check("bytes in one JSON document", len(content), _LARGEST_WHOLE, path)
    try:
        document = _decode(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        if error.msg != "Extra data" or not content.lstrip().startswith(b"{"):
            raise
        yield from _lines(content.split(b"\n"))  # JSON lines by another name
        return
    if b"\\u" in content:  # half of a surrogate pair is no text
        json.dumps(document, ensure_ascii=False).encode()
    for number, row in enumerate(_records(document), start=1):
        yield f"row {number}", _object(row, f"row {number}")


def _records(document: Any) -> Iterable[object]:
    """Return what is a row each of a JSON document."""
    if isinstance(document, list):
        return document
    rows, names = (_object(document, "the document").get(name) for name in ("data", "columns"))
    if isinstance(rows, list) and isinstance(names, list):
        _check_once(names := list(map(str, names)))
        if any(not isinstance(row, list) or len(row) != len(names) for row in rows):
            raise ValueError(f"rows that do not have a value for each of {len(names)} columns")
        return [dict(zip(names, row, strict=True)) for row in rows]
    if isinstance(rows, list) and "schema" in document:
        return rows
    columns = list(document.values())
    indices = [*columns[0]] if columns and isinstance(columns[0], dict) else []
    is_table = all(isinstance(one, dict) and [*one] == indices for one in columns)
    if is_table and indices and all(map(str.isdecimal, indices)):
        return [{name: column[index] for name, column in document.items()} for index in indices]
    raise ValueError(f"one object, of {', '.join(document) or 'nothing'}"[:_EXCERPT])


class _Ambiguous(dict[str, Any]):
    """An object that names something twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Ambiguous(found)


_decode = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=str, parse_float=str).decode


def json_object(line: bytes, number: int) -> dict[str, Any]:
    """Return the object that a line is, with numbers as text; an error says which line it is."""
    try:
        document = _decode(line.rstrip().decode("utf-8-sig" if number == 1 else "utf-8"))
        if b"\\u" in line:  # half of a surrogate pair is no text
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"line {number}, column {error.colno}: {error.msg}") from None
    except UnicodeError as error:
        raise ValueError(f"line {number} is no UTF-8 text: {error.reason}") from None  # type: ignore[attr-defined]
    except RecursionError:
        raise ValueError(f"line {number} is nested too deeply") from None
    return _object(document, f"line {number}")


def _object(document: object, which: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError(f"{which} is no JSON object")  # noqa: TRY004 - of the file, not of a type
    if isinstance(document, _Ambiguous):
        raise ValueError(f"{which} has a name twice")  # noqa: TRY004 - as above
    return document


def _check_once(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DamagedError("two columns of the table have one name", found=", ".join(twice))


def _cell(value: object, name: str, which: str, nested: set[str] | None) -> str | None:
    """Return a JSON value as text; one that is none has its name among the nested, or is refused."""
    if isinstance(value, dict | list):
        if nested is not None:
            nested.add(name)
            return None
        raise ValueError(f"{name!r} in {which} is a {'list' if isinstance(value, list) else 'document'}")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


EXPECTED = {
    Type.BOOL: "true or false, yes or no, 1 or 0",
    Type.INT16: "a whole number from -32768 to 32767",
    Type.INT32: "a whole number from -2147483648 to 2147483647",
    Type.INT64: "a whole number",
    Type.UINT64: "a whole number from 0 to 18446744073709551615",
    Type.FLOAT64: "a number",
    Type.DECIMAL: "a number with at most six digits after the point, below 1000",
    Type.TIMESTAMP: "a time with its zone, as 2026-01-31T12:00:00Z",
    Type.STRING: "text",
}
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "1", "pass", "passed", "correct", "success", "100%"), True),
    **dict.fromkeys(("false", "no", "0", "fail", "failed", "incorrect", "failure", "0%"), False),
}
_NO_NUMBER = ("", "nan", "none", "null", "n/a", "na")
"""How programs write that there is no number."""


def is_truth(cells: pl.Series) -> bool:
    """Whether every cell of a column is a truth value, as far as it has one."""
    if cells.dtype == pl.Boolean:
        return True
    texts = set(_plain(cells.cast(pl.String, strict=False)).drop_nulls().unique().to_list()) - {*_NO_NUMBER}
    return bool(texts) and texts <= _TRUTHS.keys()


def without_nothing(cells: pl.Series) -> pl.Series:
    """Return cells with null for whatever else says that there is no number, and no truth value."""
    if cells.dtype.is_float():
        return cells.fill_nan(None)
    return cells.set(_plain(cells).is_in(_NO_NUMBER), None) if cells.dtype == pl.String else cells


def as_numbers(cells: pl.Series) -> pl.Series:
    """Return cells as doubles; null where one is none."""
    return _cast(without_nothing(cells), Type.FLOAT64)


def _plain(texts: pl.Series) -> pl.Series:
    """Return texts without capitals, blanks around them, and zeros after a whole number's point."""
    return texts.str.strip_chars().str.to_lowercase().str.replace(r"^([01])\.0*$", "$1")


# Day and clock as ISO 8601 has them: -2026 at the end of a day in another order is no zone.
_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})$"
_DIGITS = 6  # after the point of a decimal column


def converted(table: pl.DataFrame, column: Column, source: str, words: Mapping[str, str]) -> pl.Series:
    """Return a column of a table in a register's type."""
    cells = table[source]
    cells = cells if column.type is Type.STRING else without_nothing(cells)
    values = _each_once(
        cells,
        lambda some: _cast(some.cast(pl.String, strict=False).replace(words) if words else some, column.type),
    ).alias(column.name)
    lost = values.is_null() & cells.is_not_null()
    if lost.any():
        raise refused(table, lost, column, source, EXPECTED[column.type])
    low, high = column.low, column.high
    outside = (values < low) | (values > high) if low is not None and high is not None else None
    if outside is not None and outside.any():
        raise refused(table, outside.fill_null(value=False), column, source, f"{low:g} to {high:g}")
    if values.is_null().any() and not column.nullable:
        raise refused(table, values.is_null(), column, source, "a value in every row")
    return values


def _each_once(cells: pl.Series, convert: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return cells converted, each different one once: a log says few things often."""
    if cells.dtype.is_integer():
        numbers = cells.unique().sort()
        return convert(numbers).gather(numbers.search_sorted(cells))
    if cells.dtype != pl.String:
        return convert(cells)
    encoded = cells.to_arrow().dictionary_encode()
    texts, places = pl.Series(encoded.dictionary, dtype=pl.String), pl.Series(encoded.indices)
    return convert(texts).gather(places)


def as_codes(cells: pl.Series) -> pl.Series:
    """Return texts as their places in a sorted list of them: where they are few, a fraction of the memory."""
    return cells.cast(pl.Enum(cells.drop_nulls().unique().sort()))


def _cast(cells: pl.Series, kind: Type) -> pl.Series:
    """Return cells in a type; null where one is no value of it."""
    whole = {Type.INT16: pl.Int16, Type.INT32: pl.Int32, Type.INT64: pl.Int64, Type.UINT64: pl.UInt64}
    as_it_is = whole.get(kind) if cells.dtype.is_integer() else None
    if as_it_is or (cells.dtype == pl.Boolean and kind is Type.BOOL):
        return cells.cast(as_it_is or pl.Boolean, strict=False)
    text = cells.cast(pl.String, strict=False).str.strip_chars()
    if kind in whole:
        # Other tools write whole numbers of a column with gaps as 3.0.
        return text.str.replace(r"\.0+$", "").cast(whole[kind], strict=False)
    if kind is Type.BOOL:
        return _plain(text).replace_strict(_TRUTHS, default=None, return_dtype=pl.Boolean)
    if kind is Type.FLOAT64:
        shares = text.str.ends_with("%")
        numbers = text.str.strip_suffix("%").cast(pl.Float64, strict=False)
        numbers = (numbers / 100).zip_with(shares.fill_null(value=False), numbers)
        return numbers.set(~numbers.is_finite(), None)
    if kind is Type.DECIMAL:
        exact = text.str.contains(rf"^-?\d{{1,3}}(\.\d{{1,{_DIGITS}}})?$")
        return text.set(~exact, None).cast(pl.Decimal(9, _DIGITS), strict=False)
    # One word may be written in several ways, which look the same and would be two tasks.
    return _times(cells, text) if kind is Type.TIMESTAMP else cells.cast(pl.String).str.normalize("NFC")


def _times(cells: pl.Series, text: pl.Series) -> pl.Series:
    """Return times in UTC; a time without a zone could be any, and is none."""
    kind = pl.Datetime("us", "UTC")
    if isinstance(cells.dtype, pl.Datetime):
        return cells.cast(kind) if cells.dtype.time_zone else pl.Series(cells.name, [None] * len(cells), kind)
    return (
        text.set(~text.str.contains(_TIME), None)
        .str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
        .cast(kind)
    )


def _remedy(column: Column, cell: object) -> str:
    """Return what to do about a cell that a column cannot have; a table is never mended to fit its rules."""
    if cell is None:
        return "map a column that has a value in every row, or leave it out of the mapping"
    if column.name == "score" and as_numbers(pl.Series([str(cell)])).null_count() == 0:
        return (
            "register a wider range anew: rules that were frozen too narrow are no reason to change the table"
        )
    if re.fullmatch(r"[+-]?\d+,\d+", str(cell)):
        return f"its decimals are after a comma, and belong after a point; {_ANEW}"
    return f"say under [values.{column.name}] what its word means, or leave the column out of the mapping"


def refused(
    table: pl.DataFrame, wrong: pl.Series, column: Column, source: str, expected: str
) -> DamagedError:
    """Return the error of cells that are no value of a column; it names the first row."""
    first = table.filter(wrong).row(0, named=True)
    cell = first[source]
    others, is_step = int(wrong.sum()) - 1, column.name == "step"
    return DamagedError(
        f"column {source!r} has no value for {column.name}"
        if cell is None
        else f"column {source!r} has a value that {column.name} cannot have",
        expected=expected,
        found=f"{'nothing' if cell is None else repr(cell)} in row {first[ROW]}"
        + (f", and in {others} more" if others else ""),
        remedy=_remedy(column, cell)
        + ("; steps beyond the range are counted in thousands, in the rules, too" if is_step else ""),
    )


FILE = "file"
"""Column with the file that a row came from: its name without its ending, or its path below a folder."""


@dataclass(frozen=True)
class Log:
    """A log."""

    format: str  # what wrote it, in words
    # A row an episode, numbered in `ROW`. A column has a register's name where the log says what the
    # register's column means (`task`, `schedule` from 0, `seed`, `step`, `true_success`, `score`,
    # `launched_at`, `prompt`), and a name of its own otherwise.
    table: pl.DataFrame
    of_run: tuple[str, ...] = ()  # columns on a whole run, such as its model: arms are looked for among them
    left_out: tuple[str, ...] = ()  # what the log says of its episodes or runs and no column has, in words
    files: tuple[Path, ...] = ()  # what was read, in order
    is_history: bool = False  # whether rows are steps of a run, and an empty outcome was not measured there
    kinds: str = ""  # column that tells training from evaluation, where the log has both

    def measured(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return the rows of the log; of a history those at which the outcome was measured.

        Readers call an outcome by its values, 0 and 1 or others; a mapping calls it as it was registered.
        """
        if self.kinds and self.kinds not in columns.values():
            raise DamagedError(
                "the log has training and evaluation, and the mapping does not tell them apart",
                expected=f'{self.kinds} = "{self.kinds}" under [columns]',
                found=", ".join(self.table[self.kinds].unique().sort()),
                remedy="map the column, or import the log without its evaluations",
            )
        table = self.table
        for name, other in (OUTCOMES, OUTCOMES[::-1]):
            if columns.get(name) == name and name not in table.columns and other in table.columns:
                table = table.rename({other: name})
                if name == "score" and table[name].dtype == pl.Boolean:
                    table = table.with_columns(pl.col(name).cast(pl.Float64))
        told = [columns[name] for name in OUTCOMES if columns.get(name) in table.columns]
        return table.drop_nulls(told) if self.is_history and told else table
