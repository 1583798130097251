"""Histories: tables with a row a step and no episodes, exported by W&B, TensorBoard or anything else."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.files import read_bytes, read_up_to
from toolkit.registers.importing.readers import tables
from toolkit.registers.importing.readers.runs import (
    HISTORY,
    TASK,
    Run,
    check_within,
    flattened,
    joined,
    set_apart,
    with_constants,
)
from toolkit.registers.importing.source import LONGEST_LINE, ROW, SUFFIXES, Log, kind_of, read_source

if TYPE_CHECKING:
    import polars as pl

NAME = "history"
SOURCES = f"a row a step and no tasks in {', '.join(SUFFIXES)}, as W&B and TensorBoard export them"
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


def recognizes(path: Path) -> bool:
    """Whether a path is a table with steps and no column for tasks, or a folder of such tables."""
    files = _files(path)
    return bool(files) and all(_is_history(_header(file)) for file in files)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if kind_of(path) else []
    return sorted(file for file in path.rglob("*") if kind_of(file) and file.is_file())


def _header(file: Path) -> list[str]:
    """Return the names of a table's columns, as far as its beginning says them; nothing where it doesn't."""
    try:
        kind = kind_of(file)
        if file.suffix == ".gz":
            return []
        if kind == ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(file).names)
        if kind in {".jsonl", ".ndjson"}:
            document = json.loads(read_up_to(file, LONGEST_LINE).split(b"\n", 1)[0])
            return list(document) if isinstance(document, dict) else []
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


def read(paths: list[Path]) -> Log:
    """Read histories; tables that have a step of a run twice are read as tables.

    A row is a step of a run: `step`, the metrics by their names, and `task` (always `history`). A run is a
    file, the rows of a table that has a column with the run, or the columns of a chart. Beside a file in a
    folder of W&B lie `config.yaml`, `wandb-summary.json` and `wandb-metadata.json`, which are read with it.
    """
    import polars as pl

    nested: set[str] = set()
    left_out: dict[str, None] = {}
    runs: list[Run] = []
    for path in paths:
        files = _files(path)
        check_within(path, files)
        for file in files:
            table = read_source(file, nested).drop(ROW)
            table = table.with_columns(pl.col(pl.String).replace("", None))  # W&B exports gaps as ""
            runs += _chart(file, table) if _is_chart(table.columns) else [_history(file, table, left_out)]
    if any(_has_twice(run.table) for run in runs):
        return tables.read(paths)
    return replace(joined(NAME, runs, (*sorted(nested), *left_out)), is_history=True)


def _history(file: Path, table: pl.DataFrame, left_out: dict[str, None]) -> Run:
    plain = {_plain(name): name for name in reversed(table.columns)}
    step = plain[next(name for name in STEPS if name in plain)]
    if step != "step":
        table = set_apart(table, ["step"]).rename({step: "step"})
    run = _beside(file.parent)
    if not run.files:
        stem = file.with_name(file.name.partition(".")[0])
        return Run(stem, with_constants(table, {TASK: HISTORY}), files=(file,))
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
        check_within(folder, [file])
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
    import yaml

    try:
        text = read_bytes(file, _LARGEST).decode()
        found = yaml.safe_load(text) if file.suffix == ".yaml" else json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("no document")  # noqa: TRY004, TRY301 - of the file, not of a type
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise DamagedError(
            f"{file.name} is not what W&B writes", found=str(error).splitlines()[0], where=file
        ) from None
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
    return with_constants(table, {TASK: HISTORY, "launched_at": run.launched_at, **summary})


def _chart(file: Path, table: pl.DataFrame) -> list[Run]:
    """Return the runs of a chart, each with the steps at which it has a value."""
    import polars as pl

    metrics: dict[str, dict[str, str]] = {}
    for name in table.columns:
        if match := _CHART.fullmatch(name):
            metrics.setdefault(match[1], {})[name] = match[2]
    runs = []
    for run, columns in metrics.items():
        own = table.select(pl.col(_CHART_STEP).alias("step"), *columns).rename(columns)
        own = own.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in columns.values()))
        runs.append(Run(file, with_constants(own, {TASK: HISTORY}), files=(file,), name=run))
    return runs


def _has_twice(table: pl.DataFrame) -> bool:
    runs = [name for name in table.columns if _plain(name) in _RUN]
    return bool(table.select("step", *runs).is_duplicated().any())
