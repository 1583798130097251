"""Secondary analyses of seed differences: what a few seeds can say. None of them changes a verdict."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators import bootstrap

LARGEST_SAMPLE = 20


@dataclass(frozen=True)
class SignFlip:
    """The exact sign-flip test of a zero mean."""

    p_value: Fraction  # two-sided p
    smallest: Fraction  # the smallest p that this number of seeds can give


USUAL_LEVEL = 0.95


def t_interval(differences: Sequence[float], level: float = USUAL_LEVEL) -> tuple[float, float]:
    """Student's interval of the mean over seeds, of two differences at least, one a seed, in their unit.

    Source: Student's t with S - 1 degrees of freedom; seeds are the unit, tasks are not resampled.
    """
    values = _checked(differences)
    bootstrap.check_level(level)
    size = len(values)
    mean = math.fsum(values) / size
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (size - 1))
    reach = t_quantile((1 + level) / 2, size - 1) * deviation / math.sqrt(size)
    return mean - reach, mean + reach


def minimal_detectable_effect(deviation: float, seeds: int, level: float, power: float) -> float:
    """Smallest mean difference that a two-sided t test over S >= 2 seeds finds with a power in (0, 1).

    `deviation` > 0 is that of a seed's difference, in whose unit the effect is.

    Source: (t_{(1+level)/2} + t_power) · sd / √S with S - 1 degrees of freedom: the usual approximation to
    the noncentral t. It speaks of a t test; `toolkit power` simulates a registered rule itself.
    """
    if not (math.isfinite(deviation) and deviation > 0) or seeds < bootstrap.SMALLEST_SAMPLE:
        raise ValueError(f"expected a positive deviation and two seeds at least, found {deviation}, {seeds}")
    if not (0 < level < 1 and 0 < power < 1):
        raise ValueError(f"level and power lie between 0 and 1, found {level}, {power}")
    quantiles = t_quantile((1 + level) / 2, seeds - 1) + t_quantile(power, seeds - 1)
    return quantiles * deviation / math.sqrt(seeds)


def sign_flip(differences: Sequence[Fraction]) -> SignFlip:
    """Exact two-sided test of symmetry about zero, of 2 to 20 differences, one a seed: all 2^S signs.

    The share of sign patterns whose mean is at least as far from zero as the observed one, and the smallest
    such share that is attainable, 2/2^S.

    Source: Fisher's randomization test; with three seeds p cannot fall below 1/4.
    """
    from toolkit.estimators.exact_tests import sign_flip_test  # no verdict asks for it

    if not bootstrap.SMALLEST_SAMPLE <= len(differences) <= LARGEST_SAMPLE:
        raise ValueError(
            f"expected {bootstrap.SMALLEST_SAMPLE} to {LARGEST_SAMPLE} differences, found {len(differences)}"
        )
    scale = math.lcm(*(d.denominator for d in differences))
    test = sign_flip_test([int(d * scale) for d in differences])
    return SignFlip(test.p_value, Fraction(2, 2 ** len(differences)))


def leave_one_out_means(differences: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Means of two differences at least, one a seed, without each seed in turn, in order, exactly.

    Source: jackknife over seeds.
    """
    if len(differences) < bootstrap.SMALLEST_SAMPLE:
        raise ValueError(f"expected two differences at least, found {len(differences)}")
    total = sum(differences, Fraction(0))
    return tuple((total - d) / (len(differences) - 1) for d in differences)


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t at a probability in (0, 1), for a whole number >= 1 of degrees of freedom.

    Source: bisection of the closed form of the distribution function for whole degrees of freedom.
    """
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(f"expected 0 < p < 1 and a degree of freedom, found {probability}, {degrees}")
    return _t_quantile(probability, degrees)


@lru_cache
def _t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile; a simulation asks for the same one each time."""
    if probability < 0.5:  # noqa: PLR2004 - the distribution is symmetric
        return -_t_quantile(1 - probability, degrees)
    return _bisected(lambda t: _t_cdf(t, degrees) >= probability)


def _bisected(reached: Callable[[float], bool]) -> float:
    """Return from where on a number above zero has reached something."""
    low, high = 0.0, 1.0
    while not reached(high):
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return (low + high) / 2


def _t_cdf(t: float, degrees: int) -> float:
    """Distribution function of Student's t for t >= 0 and whole degrees of freedom: a finite sum."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(angle)
    odd = degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(odd, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + inside) / 2


def _checked(differences: Sequence[float]) -> list[float]:
    values = [float(d) for d in differences]
    if len(values) < bootstrap.SMALLEST_SAMPLE:
        raise ValueError(f"expected two differences at least, found {len(values)}")
    if not all(map(math.isfinite, values)):
        raise ValueError("a difference is missing or not finite")
    return values


UNIT = "seed pairs and tasks, crossed; bias-corrected and accelerated"


def bca_interval(
    differences: ArrayLike, weights: bootstrap.BootstrapWeights, level: float
) -> bootstrap.BootstrapInterval:
    """Interval of the mean of differences (S, T), corrected for the bootstrap's bias and skewness.

    `weights` are for S seeds and T tasks; the errors of the ends are not estimated. Differences that are all
    alike are refused, and those so skewed that the interval has no end at this level.

    Source: Efron 1987; the acceleration of two crossed samples is pooled from the jackknife over seeds and
    the jackknife over tasks, as for independent samples.
    """
    registered = bootstrap.crossed_bootstrap(differences, weights, level)
    d = np.asarray(differences, dtype=float)
    if np.ptp(d) == 0:
        raise ValueError("the differences are all alike: the interval's skewness is not defined")
    means = np.einsum("sb,sb->b", d @ weights.tasks.T, weights.seeds.T)
    shares = bca_shares(means, float(d.mean()), skewness([d.mean(axis=1), d.mean(axis=0)]), level)
    if shares is None:
        raise ValueError("the differences are too skewed for an interval at this level")
    ends = [float(np.quantile(means, share)) for share in shares[0]]
    return bootstrap.BootstrapInterval(registered.estimate, ends[0], ends[1], None, None, level, UNIT)


def bca_shares(
    means: NDArray[np.float64], estimate: float, acceleration: float, level: float
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the shares of resamples below the ends of a bias-corrected, accelerated interval, and errors.

    `means` (B,) are the estimate on every resample; errors are Monte Carlo errors times B; None where the
    acceleration leaves an end undefined. An end lies where the share below it is Φ(z), and z moves by about
    twice what the bias moves by. Its error is that of the share below the estimate times 2φ(z)/φ(0), less
    that of the share below the end; both come from the same resamples, so that their errors vary together.
    """
    from statistics import NormalDist

    normal = NormalDist()
    # Resamples equal to the estimate count half; shares of 0 and 1 have no quantile.
    below = (np.mean(means < estimate) + np.mean(means <= estimate)) / 2
    edge = 1 / (2 * len(means))
    bias = normal.inv_cdf(min(max(float(below), edge), 1 - edge))
    shares, errors = [], []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        reach = bias + normal.inv_cdf(tail)
        if 1 - acceleration * reach <= 0:
            return None
        z = bias + reach / (1 - acceleration * reach)
        share, moved = normal.cdf(z), 2 * normal.pdf(z) / normal.pdf(0)
        variance = moved**2 / 4 + share * (1 - share) - moved * min(share, 1 - share)
        shares.append(share)
        errors.append(math.sqrt(variance * len(means)))
    return (shares[0], shares[1]), (errors[0], errors[1])


def skewness(samples: Sequence[NDArray[np.float64]]) -> float:
    """Return the acceleration of the sum of the means of independent samples, by their jackknives."""
    cubes = squares = 0.0
    for along in samples:
        size = len(along)
        without = (along.sum() - along) / (size - 1)
        influence = (size - 1) * (without.mean() - without)
        cubes += float((influence**3).sum()) / size**3
        squares += float((influence**2).sum()) / size**2
    return cubes / squares**1.5 / 6 if squares > 0 else 0.0


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Probability that a chi-square variable is above a finite statistic >= 0, for whole degrees >= 1.

    Source: closed form of the incomplete gamma function: a Poisson sum for even degrees, and for odd ones
    erfc(√(x/2)) + e^(-x/2) Σ_{k=1}^{(d-1)/2} (x/2)^(k-1/2) / Γ(k+1/2).
    """
    if degrees < 1 or not (math.isfinite(statistic) and statistic >= 0):
        raise ValueError(f"expected a statistic >= 0 and a degree of freedom, found {statistic}, {degrees}")
    half, odd = statistic / 2, degrees % 2
    start = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    powers = [k - odd / 2 for k in range(1, (degrees + 1) // 2 if odd else degrees // 2)]
    return start + math.fsum(math.exp(-half) * half**p / math.gamma(p + 1) for p in powers)


def chi_square_quantile(probability: float, degrees: int) -> float:
    """Quantile of the chi-square distribution at a probability in (0, 1), for whole degrees >= 1.

    Source: bisection of `chi_square_tail`.
    """
    if not 0 < probability < 1:
        raise ValueError(f"a probability lies between 0 and 1, found {probability}")
    return _bisected(lambda statistic: chi_square_tail(statistic, degrees) <= 1 - probability)
