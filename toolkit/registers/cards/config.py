"""What a repository holds of a table: its splits, and how many rows and bytes they have."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from toolkit.registers.task_tables import SPLIT_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.registers.columns import Table

WHOLE = "train"
"""The split of a table that has only one: so do the Hub's loaders call it."""


@dataclass(frozen=True)
class Split:
    """One split of a table.

    Args:
        name: its name.
        pattern: which files of the repository are its own.
        rows: its rows.
        bytes: its size as Arrow buffers, which is what `datasets` reserves for it.
    """

    name: str
    pattern: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Config:
    """One configuration of a dataset repository.

    Args:
        table: what its rows and columns are.
        splits: its splits, in the order of their files.
        file_bytes: size of its Parquet files together.
    """

    table: Table
    splits: tuple[Split, ...]
    file_bytes: int

    @property
    def rows(self) -> int:
        """Rows of all splits together."""
        return sum(split.rows for split in self.splits)

    @property
    def bytes(self) -> int:
        """Size of all splits as Arrow buffers."""
        return sum(split.bytes for split in self.splits)


def config_of(table: Table, files: Mapping[str, bytes]) -> Config:
    """Return the configuration that a table's Parquet files make.

    Args:
        table: the table; optional columns that the files lack are left out.
        files: content of its files by path in the repository, in the order of their rows; where the table is
            split, a file's name starts with its split and a hyphen.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    columns: list[str] = []
    for path, content in files.items():
        columns, size = _read(content)
        found.setdefault(_split(table.name, path), []).append(size)
    splits = (
        Split(name, _pattern(table.name, name), sum(r for r, _ in sizes), sum(b for _, b in sizes))
        for name, sizes in found.items()
    )
    return Config(table.narrowed(columns), tuple(splits), sum(map(len, files.values())))


def _split(table: str, path: str) -> str:
    return PurePosixPath(path).name.split("-", 1)[0] if table in SPLIT_BY else WHOLE


def _pattern(table: str, split: str) -> str:
    return f"{table}/{split}-*.parquet" if table in SPLIT_BY else f"{table}/*.parquet"


def _read(content: bytes) -> tuple[list[str], tuple[int, int]]:
    """Return the columns of a Parquet file, its rows, and their size as Arrow buffers."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(io.BytesIO(content)).read()
    return table.column_names, (int(table.num_rows), int(table.nbytes))
