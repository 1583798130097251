"""Tables: plain ones, histories with a row a step, and datasets of Hugging Face in their shards."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from toolkit.errors import DamagedError
from toolkit.files import read_bytes, read_text, read_up_to
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import (
    HISTORY,
    TASK,
    Reader,
    Run,
    check_each_once,
    files_below,
    flattened,
    reading,
)
from toolkit.registers.importing.source import (
    FILE,
    MOST_COLUMNS,
    ROW,
    SUFFIXES,
    Log,
    bounded,
    from_arrow,
    kind_of,
    plain_fields,
    read_source,
)
from toolkit.structs import replace

_LIST = re.compile(rb'(\xef\xbb\xbf)?\s*(\[\s*\{|\{\s*"(columns|schema|index)"\s*:)')


def tables_below(path: Path) -> list[Path]:
    """Return the tables of a folder, or the file that a path is; in a folder, most JSON is no table."""
    files = files_below(path, kind_of)
    plain = [file for file in files if not path.is_dir() or kind_of(file) != ".json"]
    return plain or [file for file in files if file.suffix == ".gz" or _LIST.match(common.beginning(file))]


def _read_tables(paths: list[Path]) -> Log:
    """Read tables; several have the same columns, and `file` says which row came from which."""
    files = [file for path in paths for file in tables_below(path)]
    check_each_once(files)
    nested: set[str] = set()
    if len(files) == 1:
        return Log(
            TABLES.name, read_source(files[0], nested), files=tuple(files), left_out=tuple(sorted(nested))
        )
    parts: list[pl.DataFrame] = []
    for file, name in zip(files, _names(files), strict=True):
        part = read_source(file, nested)
        if FILE not in part.columns:
            part = part.with_columns(pl.lit(name).alias(FILE))
        if parts and set(part.columns) != set(parts[0].columns):
            raise DamagedError(
                "two tables of one log have other columns",
                expected=", ".join(name for name in parts[0].columns if name != ROW),
                found=", ".join(name for name in part.columns if name != ROW),
                where=file,
            )
        parts.append(part)
    table = pl.concat(parts, how="diagonal_relaxed")
    return Log(TABLES.name, table, of_run=(FILE,), files=tuple(files), left_out=tuple(sorted(nested)))


def _names(files: list[Path]) -> list[str]:
    """Return what files are called: their names, or where these recur in other folders, with the folders'."""
    stems = [file.with_name(file.name.partition(".")[0]) for file in files]
    names = [stem.name for stem in stems]
    return names if len(set(names)) == len(names) else common.run_names(stems)


TABLES = Reader(
    "tables",
    f"a row an episode in {', '.join(SUFFIXES)}, text also as .gz, or a folder of such files",
    tables_below,
    _read_tables,
)


# Histories: a row a step and no episodes, exported by W&B, TensorBoard or anything else.

STEPS = ("step", "global_step", "training_step", "trainer_global_step", "iteration")
TASKS = (
    *("task", "task_id", "problem", "problem_id", "question", "question_id", "item", "instance"),
    *("sample", "sample_id", "doc_id", "example_id", "prompt", "input"),
)
"""Names of columns that no history has."""
_CHART_STEP = "Step"
_CHART = re.compile(r"(.+) - (.+)")
_RUN = ("run", "run_id", "run_name", "arm", "seed", "variant", "method", "algorithm", "model")
_FIRST = 2**16
CONFIG, SUMMARY, METADATA = "config.yaml", "wandb-summary.json", "wandb-metadata.json"
_LARGEST = 2**20


def _histories(path: Path) -> list[Path]:
    """Return tables with steps and no column for tasks; none where some table is another."""
    files = tables_below(path)
    return files if all(_is_history(header(file)) for file in files) else []


def header(file: Path) -> list[str]:
    """Return the names of a table's columns, as far as its beginning says them; nothing where it doesn't."""
    try:
        kind = kind_of(file)
        if file.suffix == ".gz":
            return []
        if kind == ".parquet":
            return list(pq.read_schema(file).names)
        if kind in {".jsonl", ".ndjson"}:
            return list(common.first_object(file))
        if kind == ".json":
            text = read_up_to(file, _FIRST).decode("utf-8-sig", errors="ignore").lstrip()
            first, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip())
            return list(first) if isinstance(first, dict) else []
        line = read_up_to(file, _FIRST).decode("utf-8-sig", errors="replace").splitlines()[:1]
        return next(csv.reader(line, delimiter="\t" if kind == ".tsv" else ","), [])
    except (OSError, ValueError, RecursionError, csv.Error, DamagedError):
        return []


def _is_history(names: Sequence[str]) -> bool:
    plain = set(map(_plain, names))
    return _is_chart(names) or (not plain.isdisjoint(STEPS) and plain.isdisjoint(TASKS))


def _is_chart(names: Sequence[str]) -> bool:
    """Whether columns are those of a chart that W&B exports: `Step`, and `RUN - METRIC` for each run."""
    metrics = [name for name in names if name != _CHART_STEP]
    return bool(metrics) and len(metrics) < len(names) and all(map(_CHART.fullmatch, metrics))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _read_histories(paths: list[Path]) -> Log:
    """Read histories; tables that have a step of a run twice are read as tables.

    A row is a step of a run: `step`, the metrics by their names, and `task` (always `history`). A run is a
    file, the rows of a table that has a column with the run, or the columns of a chart. Beside a file in a
    folder of W&B lie `config.yaml`, `wandb-summary.json` and `wandb-metadata.json`, which are read with it.
    """
    nested: set[str] = set()
    left_out: dict[str, None] = {}
    runs: list[Run] = []
    for path in paths:
        files = tables_below(path)
        common.check_within(path, files)
        for file in files:
            table = read_source(file, nested).drop(ROW)
            table = table.with_columns(pl.col(pl.String).replace("", None))  # W&B exports gaps as ""
            runs += _chart(file, table) if _is_chart(table.columns) else [_history(file, table, left_out)]
    if any(_has_twice(run.table) for run in runs):
        return _read_tables(paths)
    return replace(common.joined(HISTORIES.name, runs, (*sorted(nested), *left_out)), is_history=True)


def _history(file: Path, table: pl.DataFrame, left_out: dict[str, None]) -> Run:
    plain = {_plain(name): name for name in reversed(table.columns)}
    step = plain[next(name for name in STEPS if name in plain)]
    if step != "step":
        table = common.set_apart(table, ["step"]).rename({step: "step"})
    run = _beside(file.parent)
    if not run.files:
        stem = file.with_name(file.name.partition(".")[0])
        return Run(stem, common.with_constants(table, {TASK: HISTORY}), files=(file,))
    unlisted: set[str] = set()
    settings = {f"config.{name}": value for name, value in flattened(run.config, unlisted, file).items()}
    left_out |= dict.fromkeys(f"config.{name}" for name in sorted(unlisted))
    left_out |= dict.fromkeys(f"{METADATA}: all but the start" for one in run.files if one.name == METADATA)
    return Run(file.parent, _with_summary(table, run, left_out), settings, (file, *run.files))


@dataclass
class _Beside:
    """What W&B wrote of a run beside its history, and the files that say it."""

    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    launched_at: str | None = None
    files: list[Path] = field(default_factory=list)


def _beside(folder: Path) -> _Beside:
    run = _Beside()
    for name in (CONFIG, SUMMARY, METADATA):
        file = next((one for one in (folder / name, folder / "files" / name) if one.is_file()), None)
        if file is None:
            continue
        common.check_within(folder, [file])
        document = _document(file)
        run.files.append(file)
        if name == CONFIG:
            run.config = {
                str(key): value["value"]
                for key, value in document.items()
                if key != "_wandb" and isinstance(value, dict) and "value" in value
            }
        elif name == SUMMARY:
            run.summary = document
        else:
            started = document.get("startedAt")
            run.launched_at = started if isinstance(started, str) else None
    return run


def _document(file: Path) -> dict[Any, Any]:
    with reading(file, "what W&B writes"):
        text = read_bytes(file, _LARGEST).decode()
        found = yaml.safe_load(text) if file.suffix == ".yaml" else json.loads(text)
        if not isinstance(found, dict):
            raise TypeError("no document")
    return found


def _with_summary(table: pl.DataFrame, run: _Beside, left_out: dict[str, None]) -> pl.DataFrame:
    """Return a history with the values of its whole run, of those that it does not have step by step."""
    unlisted: set[str] = set()
    own = {
        name: value
        for name, value in run.summary.items()
        if name not in table.columns and not name.startswith("_")
    }
    summary = {f"summary.{name}": value for name, value in flattened(own, unlisted, run.files[0]).items()}
    left_out |= dict.fromkeys(f"summary.{name}" for name in sorted(unlisted))
    return common.with_constants(table, {TASK: HISTORY, "launched_at": run.launched_at, **summary})


def _chart(file: Path, table: pl.DataFrame) -> list[Run]:
    """Return the runs of a chart, each with the steps at which it has a value."""
    metrics: dict[str, dict[str, str]] = {}
    for name in table.columns:
        if match := _CHART.fullmatch(name):
            metrics.setdefault(match[1], {})[name] = match[2]
    runs = []
    for run, columns in metrics.items():
        own = table.select(pl.col(_CHART_STEP).alias("step"), *columns).rename(columns)
        own = own.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in columns.values()))
        runs.append(Run(file, common.with_constants(own, {TASK: HISTORY}), files=(file,), name=run))
    return runs


def _has_twice(table: pl.DataFrame) -> bool:
    runs = [name for name in table.columns if _plain(name) in _RUN]
    return bool(table.select("step", *runs).is_duplicated().any())


HISTORIES = Reader(
    "history",
    f"a row a step and no tasks in {', '.join(SUFFIXES)}, as W&B and TensorBoard export them",
    _histories,
    _read_histories,
)


# Datasets of Hugging Face: folders of `save_to_disk`, and repositories of Parquet or JSON lines in shards.

SPLIT = "split"
_is_shard = common.named(r"(?:(.+)-)?\d{5}-of-\d{5}\.(?:parquet|jsonl|csv)")
_INFO, _STATE = "dataset_info.json", "state.json"


def _saved(path: Path) -> list[Path]:
    """Return the states of the folders that `save_to_disk` wrote a dataset into."""
    return files_below(path, lambda file: file.name == _STATE and (file.parent / _INFO).is_file())


def _datasets(path: Path) -> list[Path]:
    return files_below(path, _is_shard) + _saved(path) if path.is_dir() else []


def _read_datasets(paths: list[Path]) -> Log:
    """Read datasets.

    A row is a row of the dataset, with its columns and `split`; a subset, or a saved dataset, is a run,
    whose name `file` has. Columns that hold lists or documents are left out.
    """
    left_out: set[str] = set()
    runs: list[Run] = []
    for path in paths:
        for state in _saved(path):
            folder = state.parent
            shards, split = _state(state)
            common.check_within(path, shards)
            is_split = (folder.parent / "dataset_dict.json").is_file()
            table = _together([_arrow(shard, left_out) for shard in shards])
            told = folder.name if is_split else split
            runs.append(_dataset_run(folder.parent if is_split else folder, table, told, shards))
        groups: dict[tuple[Path, str | None], list[Path]] = {}
        for shard in files_below(path, _is_shard):
            match = _is_shard(shard)
            groups.setdefault((shard.parent, match[1] if match else None), []).append(shard)
        for (folder, split), shards in groups.items():
            common.check_within(path, shards)
            table = _together([read_source(shard, left_out).drop(ROW) for shard in shards])
            runs.append(
                _dataset_run(folder.parent if folder.name == "data" else folder, table, split, shards)
            )
    return common.joined(DATASETS.name, runs, sorted(left_out))


def _dataset_run(folder: Path, table: pl.DataFrame, split: str | None, files: list[Path]) -> Run:
    return Run(folder, common.with_constants(table, {SPLIT: split}) if split else table, files=tuple(files))


def _together(shards: list[pl.DataFrame]) -> pl.DataFrame:
    common.check_cells(sum(shard.height for shard in shards), max(shard.width for shard in shards))
    return pl.concat(shards, how="diagonal_relaxed")


def _state(file: Path) -> tuple[list[Path], str | None]:
    """Return the files that a saved dataset names, and its split, where it says one."""
    with reading(file, "what save_to_disk writes", expected="_data_files, names of files beside it"):
        state = json.loads(read_text(file))
        names, split = [one["filename"] for one in state["_data_files"]], state.get("_split")
        if not names or any(Path(name).name != name for name in names):
            raise ValueError(f"files {names}"[:200])
    return [file.with_name(name) for name in names], split if isinstance(split, str) else None


_END = b"\xff\xff\xff\xff\0\0\0\0"


def _arrow(file: Path, left_out: set[str]) -> pl.DataFrame:
    """Return the plain columns of an Arrow stream, read within the bounds of a table."""
    with (
        reading(file, "a readable Arrow stream"),
        pa.OSFile(str(file)) as opened,
        pa.ipc.open_stream(opened) as stream,
    ):
        if not _ends(file):
            raise ValueError("the stream has no end")  # Arrow reads what is there of it
        plain = plain_fields(stream.schema, left_out)
        bounded("columns", len(plain), MOST_COLUMNS, file, "table")
        return from_arrow(_within(stream, len(plain)), plain, left_out, file)


def _ends(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(-min(len(_END), file.stat().st_size), os.SEEK_END)
        return opened.read() == _END


def _within(batches: Iterable[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        common.check_cells(rows, columns)
        yield batch


DATASETS = Reader(
    "Hugging Face dataset",
    "a folder of save_to_disk, a dataset repository's folder, or hf://datasets/OWNER/NAME@REVISION[/PATH]",
    _datasets,
    _read_datasets,
)
