"""Intervals over tasks: a task's episodes are one cluster, averaged over seeds, schedules and steps.

They speak of other tasks for the policies that were evaluated. How much policies differ from seed to seed
does not enter: where each seed is a training run of its own, they are too narrow for other runs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators import bootstrap
from toolkit.estimators.secondary import bca_shares, skewness, t_quantile

UNIT = "tasks; bias-corrected and accelerated"


def clustered_t_interval(
    totals: Sequence[float], denominator: int = 1, level: float = 0.95
) -> tuple[float, float]:
    """Student's interval of the mean over tasks, its standard error clustered by task.

    `totals` are each task's difference times `denominator` >= 1: two at least, whole numbers or doubles. Mean
    and variance are exact, and rounded last.

    Source: the mean's cluster-robust standard error with clusters of one size, sd / √T, sample deviation, and
    Student's t with T - 1 degrees of freedom; Miller, "Adding error bars to evals", arXiv:2411.00640, for
    differences paired by task.
    """
    _check(len(totals), denominator, level)
    if not all(map(math.isfinite, totals)):
        raise ValueError("a difference is missing or not finite")
    ratios = [total.as_integer_ratio() for total in totals]
    scale = max(below for _, below in ratios)  # powers of two: the largest is common to all
    values = [above * (scale // below) for above, below in ratios]
    size, total, unit = len(values), sum(values), scale * denominator
    spread = size * sum(value * value for value in values) - total * total
    centre = float(Fraction(total, size * unit))
    error = math.sqrt(Fraction(spread, size**2 * (size - 1) * unit**2))
    reach = t_quantile((1 + level) / 2, size - 1) * error
    return centre - reach, centre + reach


def clustered_bca_interval(
    totals: ArrayLike, denominator: int, drawn: NDArray[np.float64], level: float
) -> bootstrap.BootstrapInterval | None:
    """Bootstrap interval of the mean over tasks, corrected for bias and skewness, with Monte Carlo errors.

    `totals` (T,) are each task's difference times `denominator` >= 1; `drawn` (B, T) is made by `draw_tasks`.
    None where the differences are all alike, or so skewed that there is no end at this level. Of whole
    numbers, the sums are exact, and refused beyond 2^53.

    Source: Efron, "Better bootstrap confidence intervals", JASA 82 (1987), eq. 2.3 to 6.6: the acceleration
    is the jackknife's. The errors: `bca_shares`.
    """
    values = np.asarray(totals, dtype=float)
    _check(len(values), denominator, level)
    if drawn.shape[1:] != values.shape or not np.isfinite(values).all():
        raise ValueError(f"expected a finite difference for each of {drawn.shape[1]} tasks")
    if np.abs(values).max() * values.size >= bootstrap.LARGEST_WHOLE:
        raise ValueError("the sums are too large to be exact")
    if np.ptp(values) == 0:
        return None
    sums, total = drawn @ values, float(values.sum())
    shares = bca_shares(sums, total, skewness([values]), level)
    if shares is None:
        return None
    ((low, high, *errors),) = bootstrap.ends_at(sums[None], *shares)
    made = bootstrap.BootstrapInterval(total, low, high, errors[0], errors[1], level, UNIT)
    return bootstrap.divided(made, values.size * denominator)


def _check(tasks: int, denominator: int, level: float) -> None:
    if tasks < bootstrap.SMALLEST_SAMPLE or denominator < 1 or not 0 < level < 1:
        raise ValueError(
            "expected two tasks, a denominator of one and a level between 0 and 1, found "
            f"{tasks}, {denominator} and {level}"
        )
