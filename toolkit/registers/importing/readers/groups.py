"""Groups of rollouts that `toolkit.noise.trainers` recorded in somebody's training: JSON lines, a group each.

A row is a rollout: its arm is the design, its schedule the number of its slot among the task's at its step.
`zero_variance` and `spurious` are its group's: whoever maps one of them as the outcome decides on its rate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, ToolkitError
from toolkit.files import read_up_to
from toolkit.registers.importing.readers import cells
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, LONGEST_LINE, Log

if TYPE_CHECKING:
    import polars as pl

NAME = "groups of paired rollouts"
SOURCES = "records of toolkit.noise.trainers (.jsonl), or a folder of them"
WHAT = "a record of groups"
_OF_SLOTS = {"schedule_seeds": "schedule_seed", "true_outcomes": "outcome", "observed_rewards": "observed"}
_OF_GROUPS = ("design", "regime", "seed", "step", "task", "repeat", "exposed", "zero_variance", "spurious")


def recognizes(path: Path) -> bool:
    """Whether a path is such a record, or a folder that has one."""
    return any(_is_record(file) for file in _files(path))


def read(paths: list[Path]) -> Log:
    """Read records; several processes of a run, and several runs, have one each."""
    import polars as pl

    files = [file for path in paths for file in _files(path) if _is_record(file)]
    cells.bounded("bytes", sum(file.stat().st_size for file in files), LARGEST_TABLE, paths[0])
    parts = []
    for file in files:
        with cells.reading(file, WHAT), file.open("rb") as lines:
            parts.append(_rollouts([json.loads(line) for line in lines], file.stem))
    table = pl.concat(parts)
    places = ["arm", "regime", "seed", "step", "task", "schedule"]
    twice = table.filter(table.select(places).is_duplicated())
    if twice.height:
        raise DamagedError(
            "a group is there twice",
            found=", ".join(f"{name} {twice[name][0]}" for name in places[:-1]),
            where=", ".join(twice[FILE].unique().sort()),
            remedy="`toolkit pairing verify` says which line it is",
        )
    table = cells.with_outcome(table, "outcome").drop("outcome")
    rewards = table["observed"]
    if rewards.is_in([0.0, 1.0]).all():
        table = table.with_columns(rewards.cast(pl.Boolean).alias("observed_reward")).drop("observed")
    return Log(NAME, table, of_run=("arm", "regime", FILE), files=tuple(files))


def _rollouts(groups: list[dict[str, object]], name: str) -> pl.DataFrame:
    """Return a row a slot of every group."""
    import polars as pl

    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "seed": pl.UInt64,
        "schedule_seeds": pl.List(pl.String),
        "true_outcomes": pl.List(pl.Float64),
        "observed_rewards": pl.List(pl.Float64),
    }
    told = [{key: group[key] for key in (*_OF_GROUPS, *_OF_SLOTS)} for group in groups]
    table = pl.DataFrame(told, infer_schema_length=None, schema_overrides=schema)
    size = pl.col("schedule_seeds").list.len().cast(pl.Int64)
    rollouts = (
        table.with_columns(schedule=pl.int_ranges(pl.col("repeat") * size, (pl.col("repeat") + 1) * size))
        .explode(*_OF_SLOTS, "schedule")
        .rename({**_OF_SLOTS, "design": "arm"})
        .drop("repeat")
        .with_columns(pl.lit(name).alias(FILE))
    )
    if sum(rollouts.null_count().row(0)):
        raise ValueError("a group has an empty value")
    return rollouts


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path] if path.suffix == ".jsonl" else []


def _is_record(file: Path) -> bool:
    try:
        first = json.loads(read_up_to(file, LONGEST_LINE).partition(b"\n")[0])
        return isinstance(first, dict) and {*_OF_GROUPS, *_OF_SLOTS} <= first.keys()
    except (ToolkitError, ValueError, RecursionError):
        return False
