"""Arms that share their samples: the difference over seeds, and how much less it varies than without."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.bootstrap import check_level, draw_seeds
from toolkit.estimators.secondary import t_quantile

FEWEST_SEEDS = 8
"""With fewer, intervals of a ratio of variances hold it far less often than they say."""


@dataclass(frozen=True)
class CoupledDifference:
    """Two arms' difference over seeds."""

    seeds: int  # how many
    mean: float  # of the seeds' differences, first minus second arm, in the unit of the outcomes
    sd: float  # standard deviation of a seed's difference, divisor S - 1
    standard_error: float  # of the mean
    correlation: float | None  # of the arms' outcomes over seeds; None where an arm's never varies

    @property
    def variance(self) -> float:
        """Variance of a seed's difference, in squared units."""
        return self.sd**2


@dataclass(frozen=True)
class VarianceRatio:
    """How much less a difference varies when the arms share their samples."""

    # Variance of a seed's difference with samples of each arm's own, and with shared ones.
    own: float
    shared: float
    ratio: float  # own over shared: so many times the seeds, or episodes, does sharing save
    # Ends of the interval of the ratio; no high end where too many resamples of the shared differences never
    # vary.
    low: float
    high: float | None
    level: float  # its confidence level


def coupled_difference(first: ArrayLike, second: ArrayLike) -> CoupledDifference:
    """Difference of two arms that meet the same schedules, samples or both, paired by seed.

    Each arm has an outcome a seed, shape (S,), S >= 2, in one order of seeds.

    Source: Var(X - Y) = Var X + Var Y - 2 Cov(X, Y), estimated by the differences themselves; common random
    numbers: Glasserman and Yao 1992, Management Science 38.
    """
    x, y = _paired(first, second, 2)
    differences = x - y
    sd = float(differences.std(ddof=1))
    varies = x.std() > 0 and y.std() > 0
    correlation = float(np.corrcoef(x, y)[0, 1]) if varies else None
    return CoupledDifference(len(x), float(differences.mean()), sd, sd / math.sqrt(len(x)), correlation)


def variance_ratio(
    own: ArrayLike, shared: ArrayLike, level: float, resamples: int, rng_seed: int
) -> VarianceRatio:
    """Ratio of the variances of a difference over seeds, of own to shared sampling.

    `own` and `shared` hold a difference a seed, shape (S,), S >= 8, in one order: every arm with samples of
    its own, and with shared ones. Differences that never vary are refused.

    Seeds are drawn with replacement, the same for both: what a seed's two differences have in common, an arm
    or the training, stays together. The interval is that of percentiles, taken as much further out as
    Student's t with S - 1 degrees is than the normal distribution, times √(S / (S - 1)). In simulations a 95%
    interval of 8 to 40 seeds held the ratio in .93 to .98 of normal samples, related or not, and of whole
    numbers that are mostly zero, and in .91 to .96 of Student's with 5 degrees. The F interval, of two
    independent normal samples, held it in .94 to .95 of those, in .98 to .99 of related ones, in .85 to .95
    of whole numbers and in .81 to .87 of Student's.

    Source: Hesterberg 2015, "What Teachers Should Know About the Bootstrap", The American Statistician 69:
    expanded percentiles.
    """
    d, e = _paired(own, shared, FEWEST_SEEDS)
    check_level(level)
    # A mean of equal numbers may be off by its last digit: what never varies is told by its ends.
    if np.ptp(d) == 0 or np.ptp(e) == 0:
        raise ValueError("the differences of one sampling never vary: there is no ratio")
    size = len(d)
    rows = draw_seeds(size, resamples, rng_seed)
    drawn = np.full(len(rows), np.inf)
    np.divide(d[rows].var(axis=1), e[rows].var(axis=1), out=drawn, where=np.ptp(e[rows], axis=1) > 0)
    reach = t_quantile((1 + level) / 2, size - 1) * math.sqrt(size / (size - 1))
    tail = math.erfc(reach / math.sqrt(2)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    variances = float(d.var(ddof=1)), float(e.var(ddof=1))
    return VarianceRatio(
        *variances,
        variances[0] / variances[1],
        float(low),
        float(high) if math.isfinite(high) else None,
        level,
    )


def _paired(first: ArrayLike, second: ArrayLike, fewest: int) -> tuple[NDArray[np.float64], ...]:
    arrays = tuple(np.asarray(values, dtype=float) for values in (first, second))
    shapes = [array.shape for array in arrays]
    if arrays[0].ndim != 1 or shapes[0] != shapes[1] or len(arrays[0]) < fewest:
        raise ValueError(f"expected {fewest} seeds at least, the same of both, found shapes {shapes}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("a value is missing or not finite")
    return arrays
