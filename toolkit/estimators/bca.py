"""The bias-corrected and accelerated interval of the crossed bootstrap: a secondary analysis."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

from toolkit.estimators.bootstrap import BootstrapInterval, BootstrapWeights, crossed_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

UNIT = "seed pairs and tasks, crossed; bias-corrected and accelerated"


def bca_interval(differences: ArrayLike, weights: BootstrapWeights, level: float) -> BootstrapInterval:
    """Interval of the mean difference, corrected for the bootstrap's bias and skewness.

    Args:
        differences: paired minus independent, shape (S, T): seed pair, task.
        weights: resamples for S seeds and T tasks.
        level: confidence level, in (0, 1).

    Returns:
        The interval; the errors of its ends are not estimated.

    Raises:
        ValueError: as `crossed_bootstrap`, differences that are all alike, whose skewness is not defined, or
            so skewed that the interval has no end at this level.

    Source:
        Efron 1987; the acceleration of two crossed samples is pooled from the jackknife over seeds and the
        jackknife over tasks, as for independent samples.
    """
    import numpy as np

    registered = crossed_bootstrap(differences, weights, level)
    d = np.asarray(differences, dtype=float)
    if np.ptp(d) == 0:
        raise ValueError("the differences are all alike: the interval's skewness is not defined")
    means = np.einsum("sb,sb->b", d @ weights.tasks.T, weights.seeds.T)
    normal = NormalDist()
    # Resamples equal to the estimate count half; shares of 0 and 1 have no quantile.
    below = (np.mean(means < d.mean()) + np.mean(means <= d.mean())) / 2
    edge = 1 / (2 * len(means))
    bias = normal.inv_cdf(min(max(float(below), edge), 1 - edge))
    acceleration = _acceleration(d)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        reach = bias + normal.inv_cdf(tail)
        if 1 - acceleration * reach <= 0:
            raise ValueError("the differences are too skewed for an interval at this level")
        ends.append(float(np.quantile(means, normal.cdf(bias + reach / (1 - acceleration * reach)))))
    return BootstrapInterval(registered.estimate, ends[0], ends[1], None, None, level, UNIT)


def _acceleration(d: NDArray[np.float64]) -> float:
    cubes = squares = 0.0
    for axis in (0, 1):
        size = d.shape[axis]
        along = d.mean(axis=1 - axis)
        without = (along.sum() - along) / (size - 1)
        influence = (size - 1) * (without.mean() - without)
        cubes += float((influence**3).sum()) / size**3
        squares += float((influence**2).sum()) / size**2
    return cubes / squares**1.5 / 6 if squares > 0 else 0.0
