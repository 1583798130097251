"""Finding: both sides of the exact condition, with task-bootstrap intervals and group by group."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from findings.checkpoints import SCORED, named, order
from findings.evidence import Analysis, Unavailable, span
from toolkit.estimators import task_uncertainties
from toolkit.lab.probing.figures import LEVEL, RESAMPLES, RNG_SEED

if TYPE_CHECKING:
    from findings.evidence import Evidence
    from toolkit.decisions.measure import Row

RATIO = "left_over_right"
# Relative rounding of sums of squared norms: sides this close are one number.
ROUNDING = 1e-9


def condition_intervals(evidence: Evidence) -> Analysis:
    """Resample tasks within each checkpoint, and count the single groups in which the condition fails."""
    rows = sorted((r for r in evidence.rows("probe_clean_tasks") if r["scored"] == SCORED), key=order)
    checkpoints: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        checkpoints[named(row)].append(row)
    summaries = {name: ratio_interval(_sides(tasks)) for name, tasks in checkpoints.items()}
    ratios, lows, highs = (list(column) for column in zip(*summaries.values(), strict=True))
    ties = [row for row in rows if _tied(row)]
    reversed_ = [row for row in rows if row["condition_left"] > row["condition_right"] and not _tied(row)]
    few = sum(row["successes"] <= 1 for row in ties)
    verdict = "below one at every checkpoint" if max(highs) < 1 else "not below one at every checkpoint"
    return Analysis(
        {
            "checkpoints": list(checkpoints),
            "tasks": [len(tasks) for tasks in checkpoints.values()],
            RATIO: ratios,
            "interval_low": lows,
            "interval_high": highs,
            "level": LEVEL,
            "resamples": RESAMPLES,
            "rng_seed": RNG_SEED,
            "groups": len(rows),
            "groups_left_above_right": len(reversed_),
            "which": [f"{named(row)} {row['task_id']}" for row in reversed_],
            "groups_tied": len(ties),
            "groups_tied_with_one_success_or_none": few,
        },
        f"L/R is {span(ratios)} and its upper interval ends are {span(highs)}: {verdict}, with tasks "
        f"resampled. In {len(reversed_)} of {len(rows)} single groups L exceeds R and pairing raises the "
        f"trace. In {len(ties)} both sides are equal and pairing does not change it; {few} of these "
        f"{len(ties)} have at most one success, where equality is exact.",
        f"probe_clean_tasks; ratio of sums, percentile bootstrap over tasks, {RESAMPLES} resamples, RNG seed "
        f"{RNG_SEED}, the same tasks drawn for every checkpoint of a size",
    )


def ratio_interval(
    sides: list[tuple[float, float]],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    rng_seed: int = RNG_SEED,
) -> tuple[float, float, float]:
    """Percentile interval of a ratio of sums, tasks drawn with replacement.

    Source:
        As `toolkit.estimators.task_uncertainties`.
    """
    import numpy as np

    if len(sides) < 2:
        raise Unavailable("a checkpoint has fewer than two tasks")
    left, right = np.asarray(sides, dtype=float).T
    found = task_uncertainties(
        lambda counts: {RATIO: (counts @ left) / (counts @ right)},
        len(left),
        level=level,
        resamples=resamples,
        rng_seed=rng_seed,
    )[RATIO]
    if found.value is None or found.low is None or found.high is None:
        raise Unavailable("a resample has no score spread")
    return found.value, found.low, found.high


def _sides(tasks: list[Row]) -> list[tuple[float, float]]:
    return [(row["condition_left"], row["condition_right"]) for row in tasks]


def _tied(row: Row) -> bool:
    return math.isclose(row["condition_left"], row["condition_right"], rel_tol=ROUNDING)
