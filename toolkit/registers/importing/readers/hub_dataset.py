"""Hugging Face datasets: folders of `save_to_disk`, and repositories of Parquet or JSON lines in shards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_text
from toolkit.registers.importing.readers.runs import (
    Run,
    check_cells,
    check_within,
    files_below,
    joined,
    with_constants,
)
from toolkit.registers.importing.source import LARGEST_TABLE, MOST_COLUMNS, ROW, Log, read_source

if TYPE_CHECKING:
    import polars as pl

NAME = "Hugging Face dataset"
SOURCES = (
    "a folder of save_to_disk, a dataset repository's folder, or hf://datasets/OWNER/NAME@REVISION[/PATH]"
)
SPLIT = "split"
_SHARD = re.compile(r"(?:(.+)-)?\d{5}-of-\d{5}\.(?:parquet|jsonl|csv)")
_INFO = "dataset_info.json"
_STATE = "state.json"
_SAVED = re.compile(re.escape(_STATE))


def recognizes(path: Path) -> bool:
    """Whether a path is a folder of a saved dataset, or has shards of one."""
    return path.is_dir() and (bool(files_below(path, _SHARD)) or any(_saved(path)))


def _saved(path: Path) -> Iterator[Path]:
    """Yield the folders that `save_to_disk` wrote a dataset into."""
    for state in files_below(path, _SAVED):
        if (state.parent / _INFO).is_file():
            yield state.parent


def read(paths: list[Path]) -> Log:
    """Read datasets.

    A row is a row of the dataset, with its columns and `split`; a subset, or a saved dataset, is a run,
    whose name `file` has. Columns that hold lists or documents are left out.
    """
    left_out: set[str] = set()
    runs: list[Run] = []
    for path in paths:
        saved = list(_saved(path))
        for folder in saved:
            shards, split = _state(folder)
            check_within(path, shards)
            is_split = (folder.parent / "dataset_dict.json").is_file()
            table = _joined([_arrow(shard, left_out) for shard in shards])
            told = folder.name if is_split else split
            runs.append(_run(folder.parent if is_split else folder, table, told, shards))
        groups: dict[tuple[Path, str | None], list[Path]] = {}
        for shard in files_below(path, _SHARD):
            match = _SHARD.fullmatch(shard.name)
            groups.setdefault((shard.parent, match[1] if match else None), []).append(shard)
        for (folder, split), shards in groups.items():
            check_within(path, shards)
            table = _joined([read_source(shard, left_out).drop(ROW) for shard in shards])
            runs.append(_run(folder.parent if folder.name == "data" else folder, table, split, shards))
    return joined(NAME, runs, sorted(left_out))


def _run(folder: Path, table: pl.DataFrame, split: str | None, files: list[Path]) -> Run:
    return Run(folder, with_constants(table, {SPLIT: split}) if split else table, files=tuple(files))


def _joined(shards: list[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    check_cells(sum(shard.height for shard in shards), max(shard.width for shard in shards))
    return pl.concat(shards, how="diagonal_relaxed")


def _state(folder: Path) -> tuple[list[Path], str | None]:
    """Return the files that a saved dataset names, and its split, where it says one."""
    where = folder / _STATE
    try:
        state = json.loads(read_text(where))
        names, split = [one["filename"] for one in state["_data_files"]], state.get("_split")
        if not names or any(Path(name).name != name for name in names):
            raise ValueError(f"files {names}"[:200])  # noqa: TRY301
    except ToolkitError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(
            f"{_STATE} is not what save_to_disk writes",
            expected="_data_files, names of files beside it",
            found=error,
            where=where,
        ) from None
    return [folder / name for name in names], split if isinstance(split, str) else None


def _arrow(file: Path, left_out: set[str]) -> pl.DataFrame:
    """Return the plain columns of an Arrow stream, read within the bounds of a table."""
    import polars as pl
    import pyarrow as pa

    try:
        with pa.OSFile(str(file)) as opened, pa.ipc.open_stream(opened) as stream:
            plain = [
                one.name
                for one in stream.schema
                if not pa.types.is_nested(getattr(one.type, "storage_type", one.type))
            ]
            left_out.update(set(stream.schema.names) - set(plain))
            batches, size, rows = [], 0, 0
            for batch in stream:
                size, rows = size + batch.nbytes, rows + batch.num_rows
                if size > LARGEST_TABLE or len(plain) > MOST_COLUMNS:
                    raise ValueError(f"more than {LARGEST_TABLE} bytes or {MOST_COLUMNS} columns")  # noqa: TRY301
                check_cells(rows, len(plain))
                batches.append(batch.select(plain))
            table = pl.from_arrow(pa.Table.from_batches(batches, pa.schema(map(stream.schema.field, plain))))
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise DamagedError(
            f"{file.name} is not a readable Arrow stream",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=file,
        ) from None
    if not isinstance(table, pl.DataFrame):
        raise TypeError(table)
    return table
