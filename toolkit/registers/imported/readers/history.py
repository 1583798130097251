"""Histories: tables with a row a step and no episodes, exported by W&B, TensorBoard or anything else."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.files import read_up_to
from toolkit.registers.imported.log import Log
from toolkit.registers.imported.readers import tables
from toolkit.registers.imported.readers.runs import (
    HISTORY,
    TASK,
    Run,
    check_within,
    joined,
    set_apart,
    with_constants,
)
from toolkit.registers.imported.readers.wandb import METADATA, read_beside, settings_of, with_values
from toolkit.registers.imported.source import LONGEST_LINE, ROW, SUFFIXES, kind_of, read_source

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

    Raises:
        DamagedError: as `read_source`, or a file leads out of its folder.
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
    run, beside = read_beside(file.parent)
    if not beside:
        stem = file.with_name(file.name.partition(".")[0])
        return Run(stem, with_constants(table, {TASK: HISTORY}), files=(file,))
    settings = settings_of(run, left_out, file.parent)
    left_out |= dict.fromkeys(f"{METADATA}: all but the start" for one in beside if one.name == METADATA)
    return Run(file.parent, with_values(table, run, left_out, file.parent), settings, (file, *beside))


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
