"""Parquet files of registers: small to keep, quick to read in part, damaged ones refused."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.registers.columns import Type
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.registers.columns import Column, Table

_DICTIONARY = "RLE_DICTIONARY"

# Level 15 costs a table of 5,000 rows tens of milliseconds and saves what higher ones save.
_LEVEL = 15


def parquet_bytes(table: str, arrow: Any) -> bytes:
    """Return rows as one Parquet file: zstd, page index, and the encoding that suits each column.

    Args:
        table: name of the table.
        arrow: its rows, a `pyarrow.Table` with its columns; the same rows give the same bytes.
    """
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
    """Return a `pyarrow.parquet.ParquetFile`.

    Args:
        path: the file.
        content: its bytes, where they were read already.

    Raises:
        DamagedError: the file is none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path if content is None else io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def read_parquet(source: Any, path: Path, columns: list[str]) -> Any:
    """Return columns of an opened Parquet file as a `pyarrow.Table`, in the order asked for.

    Raises:
        DamagedError: they cannot be read, or are not what they say they are.
    """
    import pyarrow as pa

    try:
        part = source.read(columns)
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
    """Return the encoding that leaves the least to store, among those that every reader knows.

    Small numbers of a key rise by 0 or 1 from row to row. Seeds and lists of doubles hardly repeat within a
    dictionary's reach, and the compressor finds those that do. All else repeats.
    """
    if column.type is Type.INT16 and column.name in table.key:
        return "DELTA_BINARY_PACKED"
    if column.type in (Type.UINT64, Type.UINT64S, Type.FLOAT64S):
        return "PLAIN"
    if column.type in (Type.BOOL, Type.BOOLS):
        return "RLE"
    return _DICTIONARY
