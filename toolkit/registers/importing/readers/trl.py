"""Rollouts of a TRL trainer: the Parquet files that it writes with `log_completions`.

A trainer writes the completions of the batch that it generated last, each time that it logs: with
`logging_steps` above 1 the batches between are in no file, and a batch that it trains on twice is in two.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_text
from toolkit.registers.importing.log import Log
from toolkit.registers.importing.pickled import attributes
from toolkit.registers.importing.readers.runs import (
    Run,
    check_cells,
    check_within,
    files_below,
    flattened,
    joined,
    numbered,
    set_apart,
)
from toolkit.registers.importing.source import ROW, read_source

if TYPE_CHECKING:
    import polars as pl

NAME = "TRL rollouts"
SOURCES = "output folders of a TRL trainer with log_completions, or a folder of them"
ARGUMENTS = "training_args.bin"
STATE = "trainer_state.json"
NEEDED = ("step", "prompt", "completion")
_FILE = re.compile(r"completions_\d+\.parquet")
_REWARD = re.compile(r"(?:eval_)?rewards/(.+)/mean")


def recognizes(path: Path) -> bool:
    """Whether a path is a completions file, or a folder that has one."""
    return bool(files_below(path, _FILE))


def read(paths: list[Path]) -> Log:
    """Read the rollouts of runs.

    A row is a rollout: `step`, `task` (of its prompt), `prompt`, `schedule` (which rollout of its prompt at
    its step), `completion`, the reward functions' columns and `advantage` as TRL wrote them, `score` (their
    weighted sum, which TRL logs as reward), and `config.NAME` of the training arguments in which runs differ.
    """
    files = [file for path in paths for file in files_below(path, _FILE)]
    for path in paths:
        check_within(path, files_below(path, _FILE))
    left_out: dict[str, None] = {}
    runs = [_run(folder, list(own), left_out) for folder, own in groupby(files, _folder)]
    return joined(NAME, runs, left_out)


def _folder(file: Path) -> Path:
    """Return the folder of the run that wrote a file."""
    return file.parent.parent if file.parent.name == "completions" else file.parent


def _run(folder: Path, files: list[Path], left_out: dict[str, None]) -> Run:
    import polars as pl

    told = [file for file in (_newest(folder, ARGUMENTS), _newest(folder, STATE)) if file]
    check_within(folder, told)
    arguments = next((attributes(file) for file in told if file.name == ARGUMENTS), None)
    rewards = next((_rewards(file) for file in told if file.name == STATE), None)
    nested: set[str] = set()
    table = numbered(pl.concat(_batches(files, nested, left_out), how="diagonal_relaxed"))
    settings_left: set[str] = set()
    settings = {
        f"config.{name}": value for name, value in flattened(arguments or {}, settings_left, folder).items()
    }
    left_out |= dict.fromkeys(f"completions: {name}" for name in sorted(nested))
    left_out |= dict.fromkeys(f"{ARGUMENTS}: {name}" for name in sorted(settings_left))
    if rewards is not None:
        left_out[f"{STATE}: the figures of whole steps"] = None
    return Run(folder, _scored(table, arguments, rewards), settings, (*files, *told))


def _batches(files: list[Path], nested: set[str], left_out: dict[str, None]) -> list[pl.DataFrame]:
    """Return the rows of each file; one that has the batch of the file before again is left out."""
    batches: list[pl.DataFrame] = []
    rows, before = 0, None
    for file in files:
        batch = read_source(file, nested).drop(ROW)
        absent = [name for name in NEEDED if name not in batch.columns]
        if absent:
            raise DamagedError(
                "the file has no completions of a TRL trainer",
                expected=", ".join(NEEDED),
                found=f"no {', no '.join(absent)}",
                where=file,
            )
        rollouts = batch.drop("step")
        if before is not None and rollouts.equals(before):
            left_out[f"{file.name}: the rollouts of the file before, which were trained on again"] = None
            continue
        batches.append(batch)
        before = rollouts
        rows += batch.height
        check_cells(rows, batch.width)
    return batches


def _newest(folder: Path, name: str) -> Path | None:
    """Return a file of the run's own folder, or of its last checkpoint."""
    steps = {
        int(path.parent.name.partition("-")[2]): path
        for path in folder.glob(f"checkpoint-*/{name}")
        if path.parent.name.partition("-")[2].isdecimal()
    }
    own = folder / name
    return own if own.is_file() else steps[max(steps)] if steps else None


def _rewards(file: Path) -> list[str]:
    """Return the names of the reward functions, which the trainer's state has figures of."""
    try:
        history = json.loads(read_text(file))["log_history"]
        named = [_REWARD.fullmatch(name) for entry in history for name in entry]
    except ToolkitError:
        raise
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DamagedError(f"{STATE} is not what a trainer writes", found=error, where=file) from None
    return list(dict.fromkeys(match[1] for match in named if match))


def _scored(table: pl.DataFrame, arguments: dict[str, Any] | None, rewards: list[str] | None) -> pl.DataFrame:
    """Return rollouts with what TRL calls their reward: the weighted sum of the functions that gave one.

    Without the trainer's state and arguments it is known only where a single function can have been.
    """
    import polars as pl

    columns = [
        name
        for name, kind in table.schema.items()
        if (name in rewards if rewards is not None else kind.is_float() and name != "advantage")
    ]
    weights = (arguments or {}).get("reward_weights") or [1.0] * len(columns)
    is_known = len(columns) == 1 or (rewards is not None and arguments is not None)
    if not columns or not is_known or len(weights) != len(columns):
        return table
    given = [pl.col(name) * weight for name, weight in zip(columns, weights, strict=True)]
    total = pl.when(~pl.all_horizontal(pl.col(name).is_null() for name in columns)).then(
        pl.sum_horizontal(given, ignore_nulls=True)
    )
    values = table.select(total.alias("score"))["score"]
    return set_apart(table, ["score"]).with_columns(values)
