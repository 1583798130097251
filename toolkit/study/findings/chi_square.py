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
