"""The upper tail of the chi-square distribution for whole degrees of freedom."""

from __future__ import annotations

import math


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Probability that a chi-square variable is above a statistic.

    Args:
        statistic: finite and >= 0.
        degrees: degrees of freedom, a whole number >= 1.

    Raises:
        ValueError: a statistic that is negative or not finite, or no degree of freedom.

    Source:
        Closed form of the incomplete gamma function: a Poisson sum for even degrees, and for odd ones
        erfc(√(x/2)) + e^(-x/2) Σ_{k=1}^{(d-1)/2} (x/2)^(k-1/2) / Γ(k+1/2).
    """
    if degrees < 1 or not (math.isfinite(statistic) and statistic >= 0):
        raise ValueError(f"expected a statistic >= 0 and a degree of freedom, found {statistic}, {degrees}")
    half, odd = statistic / 2, degrees % 2
    start = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    powers = [k - odd / 2 for k in range(1, (degrees + 1) // 2 if odd else degrees // 2)]
    return start + math.fsum(math.exp(-half) * half**p / math.gamma(p + 1) for p in powers)


def chi_square_quantile(probability: float, degrees: int) -> float:
    """Quantile of the chi-square distribution, by bisection of its upper tail.

    Args:
        probability: in (0, 1).
        degrees: degrees of freedom, a whole number >= 1.

    Raises:
        ValueError: a probability outside (0, 1), or no degree of freedom.

    Source:
        `chi_square_tail`.
    """
    if not 0 < probability < 1:
        raise ValueError(f"a probability lies between 0 and 1, found {probability}")
    low, high = 0.0, 1.0
    while chi_square_tail(high, degrees) > 1 - probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_square_tail(middle, degrees) > 1 - probability else (low, middle)
    return (low + high) / 2
