"""Episodes as registered: of several attempts one counts, and what has no outcome counts as it was said."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.columns import Type
from toolkit.registers.episode_counts import OUTCOMES, PLACE
from toolkit.registers.imported.source import ROW
from toolkit.registers.missing_data import MissingData
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.schema import RUNS

if TYPE_CHECKING:
    import polars as pl

MOST_TASKS = MOST_EPISODES = 2**15
Scores = tuple[Fraction, Fraction]
_SET = ("phase", "pool", "regime")
_KEY = list(EPISODES.key)


def identities(rows: pl.DataFrame) -> pl.Series:
    """Return a number for each episode, ordered as the key of `episodes` is: less to sort than its parts."""
    import polars as pl

    place = ["run_id", *PLACE]
    places = rows.select(place).unique().sort(place).with_row_index("number")
    numbers = rows.select(place).join(places, on=place, how="left", maintain_order="left")["number"]
    most = MOST_TASKS * MOST_EPISODES
    return numbers.cast(pl.Int64) * most + rows["task"].cast(pl.Int64) * MOST_EPISODES + rows["schedule"]


def check_unique(rows: pl.DataFrame) -> None:
    """Check that every episode is there once.

    Raises:
        DamagedError: one is there twice.
    """
    twice = rows.filter(identities(rows).is_duplicated()).sort(*_KEY, ROW)
    if twice.height:
        first = twice.row(0, named=True)
        numbers = twice.filter(*(twice[name] == first[name] for name in _KEY))[ROW].to_list()
        raise DamagedError(
            "an episode is in the table twice",
            expected="one row a run, evaluation, task and schedule",
            found=f"rows {' and '.join(map(str, numbers[:5]))}: "
            + ", ".join(f"{name}={first[name]}" for name in _KEY),
            remedy="map the column that tells them apart: schedule, or condition, regime, step; if they are "
            "repetitions that no column tells apart, leave schedule out to have them numbered; if they are "
            "attempts, register under [missing] which counts",
        )


def completed(rows: pl.DataFrame, missing: MissingData, scores: Scores | None) -> pl.DataFrame:
    """Return episodes with what the registration says of those without an outcome.

    1. Of several attempts the registered one counts.
    2. Every evaluation has every task and schedule that any evaluation on its set has: what is lacking is
       there as missing.
    3. What is missing is a failure, or has the lowest score; of one that is excluded, so is its task.

    Args:
        rows: with the outcomes that there are, null elsewhere; tasks by their position.
        missing: what is registered.
        scores: the registered range of scores, where there are any.

    Raises:
        DamagedError: an episode is there twice, and one attempt was registered; or a column of what happened
            in an episode cannot be said of one that is not there.
    """
    import polars as pl

    if missing.attempts != "one":  # 1
        rows = rows.sort(ROW).unique(_KEY, keep="first" if missing.attempts == "first" else "last")
    check_unique(rows)
    lacking = _lacking(rows)  # 2
    rows = pl.concat([rows, lacking], how="diagonal") if lacking.height else rows
    outcomes = [name for name in OUTCOMES if name in rows.columns]
    rows = rows.with_columns(missing=pl.any_horizontal(pl.col(name).is_null() for name in outcomes))
    if not rows["missing"].any():
        return rows.drop("missing")
    lowest = {"true_success": False, "score": float(scores[0]) if scores else 0.0}  # 3
    rows = rows.with_columns(pl.col(name).fill_null(lowest[name]) for name in outcomes)
    if missing.counts_as == "excluded":
        rows = rows.with_columns(excluded=pl.col("missing").any().over(*_SET, "task")).drop("missing")
    return rows


def _lacking(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the episodes that an evaluation lacks and another on its set has, without outcomes."""
    import polars as pl

    grid = rows.select(*_SET, "task", "schedule").unique()
    sizes = grid.group_by(_SET).len("whole")
    counted = rows.group_by("run_id", *_SET, "step").len("there").join(sizes, on=_SET)
    if counted["there"].equals(counted["whole"]):  # each is there once
        return rows.clear()
    of_run = [name for name in RUNS.column_names if name in rows.columns and name != "run_id"]
    evaluations = rows.group_by("run_id", *_SET, "step").agg(pl.col(name).first() for name in of_run)
    lacking = evaluations.join(grid, on=_SET).join(rows, on=_KEY, how="anti")
    if not lacking.height:
        return rows.clear()
    tasks = rows.group_by("pool", "task").agg(pl.col("prompt").first()) if "prompt" in rows.columns else None
    lacking = lacking if tasks is None else lacking.join(tasks, on=["pool", "task"], how="left")
    told = {
        column.name: column
        for column in EPISODES.columns
        if column.name in rows.columns and column.name not in lacking.columns and column.name not in OUTCOMES
    }
    nothing = {Type.BOOL: False, Type.INT16: 0, Type.INT32: 0, Type.FLOAT64: 0.0}
    unsaid = [name for name, column in told.items() if column.type not in nothing]
    if unsaid:
        first = lacking.sort(_KEY).row(0, named=True)
        raise DamagedError(
            "the log lacks an episode, of which a mapped column cannot be made up",
            expected=", ".join(unsaid),
            found=", ".join(f"{name}={first[name]}" for name in _KEY),
            remedy="leave the column out of the mapping, or add the episode to the log",
        )
    return lacking.with_columns(
        pl.lit(nothing[column.type]).cast(rows.schema[name]).alias(name) for name, column in told.items()
    )
