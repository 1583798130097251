"""Rollouts of verl: the JSON lines that `trainer.rollout_data_dir` and `trainer.validation_data_dir` name."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.registers.importing.readers.runs import (
    Run,
    check_cells,
    check_within,
    files_below,
    joined,
    numbered,
    set_apart,
)
from toolkit.registers.importing.source import LONGEST_LINE, ROW, Log, read_source

if TYPE_CHECKING:
    import polars as pl

NAME = "verl rollouts"
SOURCES = "folders that verl dumps rollouts in (STEP.jsonl), or a folder of them"
NEEDED = {"input", "output", "score", "step"}
POOL = "pool"
_FILE = re.compile(r"\d+\.jsonl")
_KIND = re.compile(r"train|rollout|val|eval|test|generation|dump", re.IGNORECASE)


def recognizes(path: Path) -> bool:
    """Whether a path is a dump of a step, or a folder that has one."""
    return any(_is_dump(file) for file in files_below(path, _FILE)[:1])


def _is_dump(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            first = json.loads(opened.readline(LONGEST_LINE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.keys() >= NEEDED


def read(paths: list[Path]) -> Log:
    """Read the rollouts of runs.

    A row is a rollout: `step`, `task` (of its prompt), `prompt` (verl's `input`), `schedule` (which rollout
    of its prompt at its step), `output`, `gts`, `score`, and what the reward function said beside it. Where
    folders of a run are called after what is in them, such as `rollouts` and `validation`, `pool` says which.
    verl writes no configuration there: arms and seeds are sought in the names of the folders.
    """
    import polars as pl

    runs: list[Run] = []
    left_out: set[str] = set()
    for path in paths:
        files = files_below(path, _FILE)
        check_within(path, files)
        for folder, own in groupby(
            sorted(files, key=lambda file: (file.parent, int(file.stem))), lambda file: file.parent
        ):
            steps = list(own)
            table = _steps(steps, left_out)
            is_kind = _KIND.search(folder.name) is not None
            if is_kind:
                table = set_apart(table, [POOL]).with_columns(pl.lit(folder.name).alias(POOL))
            runs.append(Run(folder.parent if is_kind else folder, table, files=tuple(steps)))
    return joined(NAME, runs, sorted(left_out))


def _steps(files: list[Path], left_out: set[str]) -> pl.DataFrame:
    """Return the rollouts of a folder."""
    import polars as pl

    steps: list[pl.DataFrame] = []
    rows = 0
    for file in files:
        step = read_source(file, left_out).drop(ROW)
        rows += step.height
        check_cells(rows, step.width)
        steps.append(set_apart(step, ["prompt"]).rename({"input": "prompt"}))
    return numbered(pl.concat(steps, how="diagonal_relaxed"))
