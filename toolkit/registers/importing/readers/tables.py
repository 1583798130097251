"""Plain tables: CSV, JSON lines and Parquet, one file, several, or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.importing.source import FILE, ROW, SUFFIXES, Log, kind_of, read_source

if TYPE_CHECKING:
    import polars as pl

NAME = "tables"
SOURCES = f"a row an episode in {', '.join(SUFFIXES)}, text also as .gz, or a folder of such files"


def recognizes(path: Path) -> bool:
    """Whether a path is a table, or a folder that has one."""
    return bool(_files(path)) if path.is_dir() else kind_of(path) is not None


def read(paths: list[Path]) -> Log:
    """Read tables; several have the same columns, and `file` says which row came from which."""
    import polars as pl

    files = [file for path in paths for file in (_files(path) if path.is_dir() else [path])]
    if len(files) == 1:
        return Log(NAME, read_source(files[0]), files=tuple(files))
    parts: list[pl.DataFrame] = []
    for file in files:
        part = read_source(file)
        if FILE not in part.columns:
            part = part.with_columns(pl.lit(file.name.partition(".")[0]).alias(FILE))
        if parts and set(part.columns) != set(parts[0].columns):
            raise DamagedError(
                "two tables of one log have other columns",
                expected=", ".join(name for name in parts[0].columns if name != ROW),
                found=", ".join(name for name in part.columns if name != ROW),
                where=file,
            )
        parts.append(part)
    table = pl.concat(parts, how="diagonal_relaxed")
    return Log(NAME, table, of_run=(FILE,), files=tuple(files))


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and kind_of(file))
