"""The registered interval from whole numbers: every sum exact, so that every machine gives the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.estimators.bootstrap import BootstrapInterval, BootstrapWeights, crossed_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Doubles hold every whole number up to here.
LARGEST_WHOLE = 2**53


def counted_bootstrap(
    numerators: ArrayLike, denominator: int, weights: BootstrapWeights, level: float
) -> BootstrapInterval:
    """The interval of `crossed_bootstrap` for differences that share a denominator.

    A resample's sum over seeds and tasks is a whole number and exact in any order of summation, which a
    matrix product chooses by processor. Only the percentile and one division round.

    Args:
        numerators: whole numbers, shape (S, T): the difference of a seed pair on a task, times `denominator`.
        denominator: what they are divided by, >= 1.
        weights: resamples for S seeds and T tasks.
        level: confidence level, in (0, 1).

    Returns:
        The interval, in the unit of the differences.

    Raises:
        ValueError: as `crossed_bootstrap`; a numerator that is not whole; sums beyond 2^53.

    Source:
        Paper sec:protocol, "Evaluation", as `crossed_bootstrap`.
    """
    import numpy as np

    table = np.asarray(numerators, dtype=float)
    size = weights.seeds.shape[1] * weights.tasks.shape[1]
    if denominator < 1 or not np.array_equal(table, np.rint(table)):
        raise ValueError("expected whole numerators over a denominator of at least one")
    if table.size and np.abs(table).max() * size >= LARGEST_WHOLE:
        raise ValueError("the sums are too large to be exact")
    times = BootstrapWeights(
        np.rint(weights.seeds * weights.seeds.shape[1]),
        np.rint(weights.tasks * weights.tasks.shape[1]),
        weights.rng_seed,
    )
    found = crossed_bootstrap(table, times, level)
    whole = size * denominator
    return replace(
        found,
        estimate=float(table.sum()) / (table.size * denominator),
        low=found.low / whole,
        high=found.high / whole,
        low_error=None if found.low_error is None else found.low_error / whole,
        high_error=None if found.high_error is None else found.high_error / whole,
    )
