"""Tables of a register as Arrow and as Parquet files: rows in, rows out; damaged files are refused."""

import hashlib
import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.columns import Column, Table, Type
from toolkit.registers.schema import TABLES

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def arrow_type(kind: Type) -> Any:
    """Return the Arrow type of a column's type."""
    import pyarrow as pa

    if kind.element is not None:
        return pa.list_(pa.field("element", arrow_type(kind.element)))  # as Parquet calls it
    of_its_own = {Type.DECIMAL: pa.decimal128(9, 6), Type.TIMESTAMP: pa.timestamp("us", tz="UTC")}
    return of_its_own.get(kind) or pa.type_for_alias(kind.value)


@lru_cache(maxsize=64)
def arrow_schema(table: Table) -> Any:
    """Return the Arrow schema of a table."""
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in table.columns])


def to_arrow(table: Table, rows: Iterable[Mapping[str, object]]) -> Any:
    """Return rows as an Arrow table, sorted by the table's key."""
    import pyarrow as pa

    ordered = sorted((dict(row) for row in rows), key=lambda row: tuple(str_key(row[k]) for k in table.key))
    if ordered:
        table = table.narrowed(ordered[0])
    wanted = set(table.column_names)
    for row in ordered:
        if set(row) != wanted:
            raise DamagedError(
                f"a row of {table.name} does not have the schema's columns",
                expected=sorted(wanted - set(row)) or "nothing more",
                found=sorted(set(row) - wanted) or "columns missing",
                where=table.name,
            )
    try:
        return pa.Table.from_pylist(ordered, schema=arrow_schema(table))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DamagedError(
            f"a value of {table.name} has the wrong type", found=error, where=table.name
        ) from None


def to_rows(arrow: Any) -> list[Row]:
    """Return an Arrow table as dictionaries; Arrow would import pandas, which is slow, for its times."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            ticks = column.cast(pa.int64()).to_pylist()
            columns[name] = [None if tick is None else moment(tick, name) for tick in ticks]
        else:
            columns[name] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def numbers(column: Any) -> Any:
    """Return a column of numbers or truth values, none absent, as numpy's array; again without pandas."""
    import numpy as np
    import pyarrow as pa

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(bool)
    return np.from_dlpack(values)


def moment(tick: int, name: str) -> datetime:
    """Return a time of a column from its microseconds since 1970."""
    try:
        return _EPOCH + timedelta(microseconds=tick)
    except OverflowError:
        raise DamagedError(
            "a time lies outside the calendar", found=f"{tick} microseconds", where=name
        ) from None


def check_columns(table: Table, found: Any, where: object) -> None:
    """Check that an Arrow schema is the table's."""
    wanted = arrow_schema(table)
    for field in wanted:
        position = found.get_field_index(field.name)
        if position < 0:
            raise DamagedError(
                f"column {field.name!r} of {table.name} is missing",
                expected=f"{field.name}: {field.type}",
                found=", ".join(found.names),
                where=where,
                remedy="restore the file, or rebuild the registers",
            )
        if not _is_same(found.field(position).type, field.type):
            raise DamagedError(
                f"column {field.name!r} of {table.name} has another type",
                expected=field.type,
                found=found.field(position).type,
                where=where,
            )
    unknown = [name for name in found.names if name not in wanted.names]
    if unknown:
        raise DamagedError(
            f"{table.name} has columns that its schema does not know",
            expected=", ".join(wanted.names),
            found=", ".join(unknown),
            where=where,
        )


def shape(table: Table, arrow: Any) -> Any:
    """Return an Arrow table with exactly the types of the table's columns."""
    import pyarrow as pa

    whole = arrow_schema(table)
    schema = pa.schema([whole.field(name) for name in arrow.column_names])
    if arrow.schema.equals(schema):
        return arrow
    return pa.Table.from_arrays([arrow[field.name].cast(field.type) for field in schema], schema=schema)


def _is_same(found: Any, wanted: Any) -> bool:
    """Return whether two types are the same, whatever a list calls its elements and however many are null."""
    import pyarrow as pa

    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _is_same(found.value_type, wanted.value_type)
    return bool(found == wanted)


def str_key(value: object) -> tuple[int, Any]:
    """Return a sort key under which null comes first and values keep their own order."""
    return (0, 0) if value is None else (1, value)


_DICTIONARY = "RLE_DICTIONARY"

_MANY_ROWS = 2**16

# Level 15 costs a table of 5,000 rows tens of milliseconds and saves what higher ones save.
_LEVEL = 15


def parquet_bytes(table: str, arrow: Any) -> bytes:
    """Return rows as one Parquet file: zstd, page index, and the encoding that suits each column."""
    import pyarrow.parquet as pq

    columns = TABLES[table].narrowed(arrow.column_names).columns
    encodings = {column.name: _encoding(column, TABLES[table]) for column in columns}
    sink = io.BytesIO()
    pq.write_table(
        arrow,
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[_leaf(column) for column in columns if encodings[column.name] == _DICTIONARY],
        column_encoding={
            _leaf(column): encodings[column.name]
            for column in columns
            if encodings[column.name] != _DICTIONARY
        },
        write_statistics=[_leaf(column) for column in columns if not column.type.is_list],
        write_page_index=True,
        store_schema=False,
        version="2.6",
        data_page_version="2.0",
    )
    return sink.getvalue()


def open_parquet(path: Path, content: bytes | None = None) -> Any:
    """Return a `pyarrow.parquet.ParquetFile`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path if content is None else io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def read_parquet(source: Any, path: Path, columns: list[str]) -> Any:
    """Return columns of an opened Parquet file as a `pyarrow.Table`, in the order asked for."""
    import pyarrow as pa

    try:
        # For few rows, handing columns to threads takes longer than reading them.
        part = source.read(columns, use_threads=source.metadata.num_rows >= _MANY_ROWS)
        part.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None
    return part.select(columns)


def unreadable(path: Path, error: Exception) -> DamagedError:
    """Return the error for what is no Parquet file."""
    return DamagedError(
        f"{path.name} is not a readable Parquet file", found=str(error).splitlines()[0], where=path
    )


def _leaf(column: Column) -> str:
    """Return what Parquet calls the values of a column."""
    return f"{column.name}.list.element" if column.type.is_list else column.name


def _encoding(column: Column, table: Table) -> str:
    """Return the encoding that leaves the least to store: what a dictionary does not suit hardly repeats."""
    if column.type is Type.INT16 and column.name in table.key:
        return "DELTA_BINARY_PACKED"
    if column.type in (Type.UINT64, Type.UINT64S, Type.FLOAT64S):
        return "PLAIN"
    if column.type in (Type.BOOL, Type.BOOLS):
        return "RLE"
    return _DICTIONARY


def row_sha256(table: Any) -> str:
    """Return the logical SHA-256 of an Arrow table's rows, in their order."""
    digest = hashlib.sha256(b"rows/v1\0")
    for name in table.schema.names:
        chunks = _plain(table.column(name))
        for text in (name, _kind(chunks[0].type)):
            digest.update(struct.pack("<q", len(text.encode())) + text.encode())
        digest.update(struct.pack("<q", sum(map(len, chunks))))
        for chunk in chunks:
            digest.update(bytes_of(chunk.is_valid()))
        for part in _values([chunk.drop_null() for chunk in chunks]):
            digest.update(part)
    return digest.hexdigest()


def _plain(column: Any) -> list[Any]:
    """Return the arrays of a column, at least one, without dictionaries."""
    import pyarrow as pa

    chunks = column.chunks or [pa.nulls(0, column.type)]
    return [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_kind(kind.value_type)}>"
    return "string" if pa.types.is_large_string(kind) else str(kind)


def _values(chunks: list[Any]) -> Iterator[Any]:
    """Yield the canonical bytes of arrays of one type without nulls, as if they were one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = chunks[0].type
    if pa.types.is_decimal(kind):
        chunks = [chunk.cast(pa.string()) for chunk in chunks]
        kind = pa.string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from (bytes_of(pc.binary_length(chunk).cast(pa.int64())) for chunk in chunks)
        yield from map(_characters, chunks)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from (bytes_of(pc.list_value_length(chunk).cast(pa.int64())) for chunk in chunks)
        yield from _values([_elements(chunk) for chunk in chunks])
    elif pa.types.is_timestamp(kind):
        yield from (bytes_of(chunk.cast(pa.int64())) for chunk in chunks)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        yield from map(bytes_of, chunks)
    else:
        raise DamagedError("a column type has no canonical form", found=kind)


def _elements(array: Any) -> Any:
    """Return the elements of an array of lists, one list after the other."""
    elements = array.flatten()
    if elements.null_count:
        raise DamagedError("an element of a list is null", expected="lists of values", found=array.type)
    return elements


def _characters(array: Any) -> Any:
    """Return the UTF-8 bytes of an array of strings without nulls: they lie together in its buffer."""
    import pyarrow as pa

    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return b""
    code, width = ("<q", 8) if pa.types.is_large_string(array.type) else ("<i", 4)
    (start,) = struct.unpack_from(code, offsets, array.offset * width)
    (end,) = struct.unpack_from(code, offsets, (array.offset + len(array)) * width)
    return memoryview(data)[start:end]


def bytes_of(array: Any) -> Any:
    """Return the little-endian values of a fixed-width array without nulls; one byte a Boolean."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return b""
    start = array.offset * width
    return memoryview(buffer)[start : start + len(array) * width]
