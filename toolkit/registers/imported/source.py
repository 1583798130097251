"""Somebody's table of episodes: read as it is, every row with the number that its owner knows it by."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

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
        path: a CSV file (.csv, .tsv), JSON documents line by line (.jsonl, .ndjson), either also compressed
            (.gz), or Parquet (.parquet).

    Raises:
        UsageError: another sort of file.
        IncompleteError: the file is missing or cannot be read.
        DamagedError: it is not what its name says, or has no rows, or two columns of one name.
    """
    import polars as pl

    readers: dict[str, Callable[[], pl.DataFrame]] = {
        ".csv": lambda: _delimited(path, ","),
        ".tsv": lambda: _delimited(path, "\t"),
        ".jsonl": lambda: _json_lines(path),
        ".ndjson": lambda: _json_lines(path),
        ".parquet": lambda: pl.read_parquet(path),
    }
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if kind not in readers or (kind == ".parquet" and suffixes[-1] == ".gz"):
        raise UsageError(
            "the table is of a sort that is not read", expected=", ".join(readers), found=path.name
        )
    file_sha256(path)  # a missing file, a folder and a pipe each have their own message
    try:
        table = readers[kind]()
    except (pl.exceptions.PolarsError, OSError, EOFError, ValueError, RecursionError) as error:
        raise DamagedError(
            f"{path.name} is not a readable table",
            expected="UTF-8 text" if kind != ".parquet" else "Parquet",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
        ) from None
    if ROW in table.columns:
        raise DamagedError("the table has a column with a name that is taken", found=ROW, where=path)
    if not table.height:
        raise DamagedError("the table has no rows, and no data is not zero", where=path)
    return table.with_row_index(ROW, offset=1)


def _delimited(path: Path, separator: str) -> pl.DataFrame:
    import polars as pl

    quote = '"' if separator == "," else None
    first = pl.read_csv(
        path, infer_schema=False, separator=separator, quote_char=quote, has_header=False, n_rows=1
    )
    names = list(first.row(0)) if first.height else []
    _check_once([name for name in names if name is not None])
    return pl.read_csv(path, infer_schema=False, separator=separator, quote_char=quote)


def _json_lines(path: Path) -> pl.DataFrame:
    """Read documents with numbers as they are written: 9007199254740993 is no double, and 1 is not 1.0."""
    import polars as pl

    columns: dict[str, list[str | None]] = {}
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    rows = 0
    with opened(path, "rt", encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            document = json.loads(line, object_pairs_hook=_pairs, parse_int=str, parse_float=str)
            if not isinstance(document, dict):
                raise ValueError(f"line {number} is no JSON object")  # noqa: TRY004 - of the file, not of a type
            for name in document.keys() - columns.keys():
                columns[name] = [None] * rows
            rows += 1
            for name, cells in columns.items():
                cells.append(_cell(document.get(name), name, number))
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_once([name for name, _ in pairs])
    return dict(pairs)


def _check_once(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DamagedError("two columns of the table have one name", found=", ".join(twice))


def _cell(value: object, name: str, line: int) -> str | None:
    """Return a JSON value as text."""
    if isinstance(value, dict | list):
        raise ValueError(f"{name!r} in line {line} is a {'list' if isinstance(value, list) else 'document'}")  # noqa: TRY004
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        if value is not None:
            value.encode()  # half of a surrogate pair is no text
        return value
    return str(value)
