"""Reward contrasts between siblings: what pairing does to their variance, and nothing about gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SMALLEST_GROUP = 2


@dataclass(frozen=True)
class ContrastVariance:
    """Variance of the difference of two siblings' rewards, in reward², under each design."""

    independent: float
    paired: float


def contrast_variance(between: float, within: float) -> ContrastVariance:
    """Variance of a reward contrast under both designs, from the parts of the reward's variance.

    Args:
        between: variance of the schedules' means, σ²_env, in reward², >= 0.
        within: mean variance within a schedule, σ²_pol, in reward², >= 0.

    Raises:
        ValueError: a variance is negative or not finite.

    Source:
        Paper prop:contrast: 2(σ²_env + σ²_pol) independent, 2σ²_pol paired.
    """
    import math

    if not (math.isfinite(between) and math.isfinite(within)) or min(between, within) < 0:
        raise ValueError(f"variances are finite and not negative, found {between}, {within}")
    return ContrastVariance(2 * (between + within), 2 * within)


def reward_contrast(groups: ArrayLike) -> float:
    """Estimate the variance of the difference of two siblings' rewards, in the design the groups came from.

    Args:
        groups: rewards, shape (N, G): group, rollout.

    Returns:
        Twice the sample variance within a group, averaged over groups, in reward²; unbiased.

    Raises:
        ValueError: no group, fewer than two rollouts, or a reward that is not finite.

    Source:
        Paper prop:contrast; the mean of (R_i - R_j)² over pairs of siblings is twice the sample variance.
    """
    import numpy as np

    r = np.asarray(groups, dtype=float)
    if r.ndim != 2 or not len(r) or r.shape[1] < SMALLEST_GROUP:  # noqa: PLR2004 - a table
        raise ValueError(f"expected groups × rollouts, two rollouts at least, found shape {r.shape}")
    if not np.isfinite(r).all():
        raise ValueError("a reward is not finite")
    return float(2 * r.var(axis=1, ddof=1).mean())
