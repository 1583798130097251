"""Episodes as registered: of several attempts one counts, and what has no outcome counts as it was said."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.columns import MissingData, Type
from toolkit.registers.episode_counts import OUTCOMES, PLACE
from toolkit.registers.importing.source import ROW
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
    return _numbered_within(rows, ["run_id", *PLACE])


def combinations(rows: pl.DataFrame, names: Sequence[str]) -> tuple[pl.Series, pl.DataFrame]:
    """Return which of the different combinations of some columns each row has, and these, in order.

    A join or a grouping by several columns would copy all of them.
    """
    import polars as pl

    codes = pl.zeros(rows.height, pl.Int64, eager=True)
    for name in names:
        values = rows[name].to_physical()
        different = values.unique().sort()
        codes = codes * len(different) + different.search_sorted(values)
    firsts = pl.DataFrame({"code": codes}).with_row_index("first").unique("code", keep="first").sort("code")
    return firsts["code"].search_sorted(codes), rows.select(names)[firsts["first"]]


def _numbered_within(rows: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return numbers of episodes that are alike where these columns, task and schedule are."""
    import polars as pl

    numbers = combinations(rows, names)[0].cast(pl.Int64)
    return (numbers * MOST_TASKS + rows["task"]) * MOST_EPISODES + rows["schedule"]


def check_unique(rows: pl.DataFrame) -> None:
    """Check that every episode is there once."""
    episodes = identities(rows)
    ordered = episodes.sort()
    if (ordered == ordered.shift(1)).any():
        twice = rows.filter(episodes.is_duplicated()).sort(*_KEY, ROW)
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
        empty = rows.filter(pl.col("excluded").all().over(*_SET))
        if empty.height:
            raise DamagedError(
                "no task of a set is left: of each some run lacks an outcome, and it is excluded",
                expected="one task at least that every run has in full",
                where=", ".join(f"{name}={empty[name][0]}" for name in _SET),
                remedy="give the rows that are lacking; that a run has none is for an amendment to say",
            )
    return rows


def _episodes_in_full(rows: pl.DataFrame) -> int:
    """Return how many episodes there would be if every evaluation had what any on its set has."""
    _, sets = combinations(rows, _SET)
    met = _numbered_within(rows, _SET).unique() // (MOST_TASKS * MOST_EPISODES)
    sizes = sets.with_columns(met.alias("set").value_counts(name="size").sort("set")["size"])
    _, evaluations = combinations(rows, ["run_id", *_SET, "step"])
    return int(evaluations.join(sizes, on=_SET)["size"].sum())


def _lacking(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the episodes that an evaluation lacks and another on its set has, without outcomes."""
    import polars as pl

    if rows.height == _episodes_in_full(rows):
        return rows.clear()
    grid = rows.select(*_SET, "task", "schedule").unique()
    of_run = [name for name in RUNS.column_names if name in rows.columns and name != "run_id"]
    evaluations = rows.group_by("run_id", *_SET, "step").agg(pl.col(name).first() for name in of_run)
    lacking = evaluations.join(grid, on=_SET).join(rows, on=_KEY, how="anti")
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
