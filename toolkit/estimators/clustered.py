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

    Args:
        totals: the difference of each task, times `denominator`, at least two; whole numbers or doubles.
        denominator: what they are divided by, >= 1.
        level: confidence level, in (0, 1).

    Returns:
        Lower and upper end, in the unit of the differences. Mean and variance are exact, and rounded last.

    Raises:
        ValueError: fewer than two tasks, a difference that is not finite, no denominator, or a level outside
            (0, 1).

    Source:
        The mean's cluster-robust standard error with clusters of one size, sd / √T, sample deviation, and
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
    """Bootstrap interval of the mean over tasks, corrected for bias and skewness.

    Args:
        totals: the difference of each task, times `denominator`, shape (T,).
        denominator: what they are divided by, >= 1.
        drawn: tasks drawn, as `draw_tasks` returns them, shape (B, T).
        level: confidence level, in (0, 1).

    Returns:
        The interval, its ends with their Monte Carlo errors, in the unit of the differences; None where the
        differences are all alike, or so skewed that there is no end at this level. Of whole numbers, the sums
        are exact.

    Raises:
        ValueError: as `clustered_t_interval`; draws of other tasks; whole sums beyond 2^53.

    Source:
        Efron, "Better bootstrap confidence intervals", JASA 82 (1987), eq. 2.3 to 6.6: the acceleration is
        the jackknife's. The errors: `bca_shares`.
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
