"""Somebody's table of episodes: read as it is, every row with the number that its owner knows it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, UsageError
from toolkit.files import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

ROW = "row of the table"
"""Column with the number of each row, from 1."""


def read_source(path: Path) -> pl.DataFrame:
    """Return a table with the number of each row beside it; every cell of a text file is text, or null.

    Args:
        path: a CSV file (.csv, .tsv), JSON documents line by line (.jsonl, .ndjson), or Parquet (.parquet).

    Raises:
        UsageError: another sort of file.
        IncompleteError: the file is missing or cannot be read.
        DamagedError: it is not what its name says, or has no rows.
    """
    import polars as pl

    readers: dict[str, Callable[[], pl.DataFrame]] = {
        ".csv": lambda: pl.read_csv(path, infer_schema=False),
        ".tsv": lambda: pl.read_csv(path, infer_schema=False, separator="\t", quote_char=None),
        ".jsonl": lambda: pl.read_ndjson(path, infer_schema_length=None),
        ".ndjson": lambda: pl.read_ndjson(path, infer_schema_length=None),
        ".parquet": lambda: pl.read_parquet(path),
    }
    if path.suffix not in readers:
        raise UsageError(
            "the table is of a sort that is not read", expected=", ".join(readers), found=path.name
        )
    file_sha256(path)  # a missing file, a folder and a pipe each have their own message
    try:
        table = readers[path.suffix]()
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DamagedError(
            f"{path.name} is not a readable table", found=str(error).splitlines()[0], where=path
        ) from None
    if not table.height:
        raise DamagedError("the table has no rows, and no data is not zero", where=path)
    return table.with_row_index(ROW, offset=1)
