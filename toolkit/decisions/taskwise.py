"""Intervals made of the differences of tasks, averaged over seeds: Student's, and the corrected bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.interval import Interval, unavailable
from toolkit.decisions.methods import T_OVER_TASKS
from toolkit.decisions.values import Missing
from toolkit.estimators import clustered_bca_interval, clustered_t_interval, draw_tasks

SOURCE: Final = "computed from tasks"
Draws = dict[tuple[int, int, int], Any]
"""(tasks, resamples, seed) → the tasks drawn, as `draw_tasks` returns them."""


def interval_over_tasks(
    spec: IntervalSpec, differences: Sequence[Sequence[float]], denominator: int, drawn: Draws
) -> Interval | Missing:
    """Compute an interval from the differences of tasks."""
    totals = [sum(of_task) for of_task in zip(*differences, strict=True)]
    whole, level = denominator * len(differences), float(spec.level)
    named = (spec.id, spec.endpoint, spec.level)
    if spec.method == T_OVER_TASKS:
        low, high = clustered_t_interval(totals, whole, level)
        return Interval(*named, Fraction(low), Fraction(high), SOURCE, spec.made)
    key = (len(totals), spec.resamples, spec.rng_seed)
    if key not in drawn:
        drawn[key] = draw_tasks(*key)
    made = clustered_bca_interval(totals, whole, drawn[key], level)
    if made is None:
        return unavailable(
            f"the tasks' differences in {spec.endpoint} are all alike, or too skewed for {spec.id}"
        )
    errors = (Fraction(made.low_error or 0), Fraction(made.high_error or 0))
    ends = (Fraction(made.low), Fraction(made.high))
    return Interval(*named, *ends, SOURCE, spec.made, errors, spec.resamples)
