"""What follows from a run's rows: evaluations, counts over groups, luck shares. Nothing here is drawn anew.

Counts are exact. The luck share's interval resamples the tasks with a fixed seed, as registered.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from math import fsum
from typing import Any

from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.episode_counts import CountedRun, count_groups, count_run
from toolkit.registers.schema import EVALUATIONS

ENVIRONMENT = "toolkit-1"
TARGETS = {"true_success": "true_successes", "observed_reward": "observed_rewards"}
"""Reward that is diagnosed → the column of `luck_share` that holds it."""

RESAMPLES = 10_000
RNG_SEED = 0
LEVEL = 0.95
_OF_OTHER_STUDIES = ("tasks", "episodes_per_task", "task_set")
"""Columns of `evaluations` for sets that are not registered as the first tasks of a pool."""

SUMMARIES = ("runs", "evaluations", "groups_summary", "luck_share_summary")
"""Tables whose rows follow from a run's own."""

_MICRO = Decimal("0.000001")


def episodes(counted: CountedRun | None, tables: Mapping[str, Any]) -> int:
    """Return how many episodes a run has, those of training groups and of diagnostics included."""
    evaluated = 0 if counted is None else counted.episodes
    return sum((evaluated, *(rollouts(tables.get(name)) for name in ("groups", "luck_share"))))


def rollouts(table: Any) -> int:
    """Return how many rollouts a table of groups has."""
    return 0 if table is None else len(table["true_successes"].combine_chunks().flatten())


def evaluations(run: arrow.Row, counted: CountedRun | None) -> list[arrow.Row]:
    """Return a row an evaluation of a run; none where it has no episode."""
    return [] if counted is None else [{**run, **row} for row in counted.evaluations]


def count_episodes(run: str, episodes: Any) -> CountedRun | None:
    """Count a run's episodes, as a study of registered runs says it."""
    names = [name for name in EVALUATIONS.column_names if name not in _OF_OTHER_STUDIES]
    return count_run(run, episodes, names) if episodes.num_rows else None


def groups_summary(run: arrow.Row, groups: Any) -> list[arrow.Row]:
    """Return counts over a run's training groups: one row, or none where it has no group."""
    return [] if groups is None else [{**run, **count_groups(run["run_id"], groups)}]


def luck_share_summary(run: arrow.Row, rows: Iterable[Row], policy: str) -> list[arrow.Row]:
    """Return a row a diagnostic and reward; none where the reward never varies: no data is not zero."""
    places: dict[tuple[int, str, str], list[Row]] = {}
    for row in rows:
        places.setdefault((row["step"], row["pool"], row["regime"]), []).append(row)
    return [
        {
            **run,
            "environment": ENVIRONMENT,
            "policy": policy,
            "regime": regime,
            "step": step,
            "pool": pool,
            "target": target,
            **shares,
        }
        for (step, pool, regime), diagnosed in sorted(places.items())
        for target, column in TARGETS.items()
        for shares in _shares(list(_tables(diagnosed, column)))
    ]


def _tables(rows: Iterable[Mapping[str, Any]], column: str) -> Iterator[list[list[bool]]]:
    """Yield each task's table: a row a schedule, a column a rollout."""
    tasks: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    for _, of_task in sorted(tasks.items()):
        yield [row[column] for row in sorted(of_task, key=lambda row: row["schedule"])]


def _shares(tables: list[list[list[bool]]]) -> Iterator[dict[str, Any]]:
    from toolkit.estimators import luck_share, luck_share_interval, mean_luck_share

    over_tasks = mean_luck_share(tables)
    if over_tasks.mean is None:
        return
    interval = luck_share_interval(tables, RESAMPLES, RNG_SEED, LEVEL)
    split = [luck_share(table) for table in tables]
    yield {
        "luck_share": over_tasks.mean,
        "luck_share_pooled": over_tasks.pooled,
        "interval_low": None if interval is None else _rounded(interval.low),
        "interval_high": None if interval is None else _rounded(interval.high),
        "variance_between": fsum(part.between for part in split) / len(split),
        "variance_within": fsum(part.within for part in split) / len(split),
        "tasks": over_tasks.tasks,
        "tasks_defined": over_tasks.defined,
    }


def _rounded(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(_MICRO)
