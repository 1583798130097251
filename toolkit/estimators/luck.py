"""Luck share: how much of a task's reward variance the schedule explains."""

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_SIDE = 2


@dataclass(frozen=True)
class LuckShare:
    """One task's split of reward variance."""

    between: float  # variance of the schedules' means, σ²_env, in reward²; clipped at zero
    within: float  # mean variance within a schedule, σ²_pol, in reward²
    share: float | None  # between over their sum, in [0, 1]; None where the sum is zero


@dataclass(frozen=True)
class MeanLuckShare:
    """Luck share over tasks."""

    mean: float | None  # mean of the per-task shares where defined; None where none is
    pooled: float | None  # share of the averaged components; None where both are zero
    tasks: int  # tasks given
    defined: int  # tasks whose share is defined


def luck_share(rewards: ArrayLike) -> LuckShare:
    """Between-schedule fraction of the variance of one task's rewards (K, M): schedule, rollout.

    A table that is constant within every schedule but not between them has share 1.

    Source: paper sec:protocol, "Luck-share diagnostic": one-way random effects, σ²_env = max(0, (MS_between -
    MS_within)/M), σ²_pol = MS_within. Clipping biases a table without any schedule effect upwards, by about
    0.03 for 8 × 8; it is reported (`luck_share_null_bias`), not corrected.
    """
    r = np.asarray(rewards, dtype=float)
    if r.ndim != SMALLEST_SIDE or min(r.shape) < SMALLEST_SIDE:
        raise ValueError(f"expected schedules × rollouts, two of each at least, found shape {r.shape}")
    if not np.isfinite(r).all():
        raise ValueError("a reward is not finite")
    between, within = (float(part) for part in _components(r))
    total = between + within
    return LuckShare(between, within, between / total if total > 0 else None)


def mean_luck_share(tables: ArrayLike) -> MeanLuckShare:
    """Luck share averaged over tasks, as registered: rewards (T, K, M), task, schedule, rollout.

    Source: registered analysis plan: λ = mean of per-task ratios where defined; pooled = ratio of averaged
    components.
    """
    r = np.asarray(tables, dtype=float)
    if r.ndim != SMALLEST_SIDE + 1 or not len(r):
        raise ValueError(f"expected tasks × schedules × rollouts, found shape {r.shape}")
    tasks = [luck_share(table) for table in r]
    shares = [task.share for task in tasks if task.share is not None]
    between, within = fsum(task.between for task in tasks), fsum(task.within for task in tasks)
    return MeanLuckShare(
        mean=fsum(shares) / len(shares) if shares else None,
        pooled=between / (between + within) if between + within > 0 else None,
        tasks=len(tasks),
        defined=len(shares),
    )


@dataclass(frozen=True)
class LuckShareInterval:
    """A percentile interval of the mean luck share over tasks."""

    estimate: float  # mean of the per-task shares where defined
    low: float  # lower end
    high: float  # upper end
    level: float  # confidence level
    defined: int  # tasks whose share is defined: those that were resampled
    unit: str = "tasks whose share is defined"  # what was resampled


def luck_share_interval(
    tables: ArrayLike, resamples: int, rng_seed: int, level: float
) -> LuckShareInterval | None:
    """Task bootstrap of the mean luck share of rewards (T, K, M); None where fewer than two tasks have one.

    Source: registered analysis plan: zero-shot luck share with its 95% task bootstrap; tasks without a share
    take no part.
    """
    if resamples < 1 or not 0 < level < 1:
        raise ValueError(f"expected a resample and a level between 0 and 1, found {resamples}, {level}")
    mean_luck_share(tables)
    split = [luck_share(table).share for table in np.asarray(tables, dtype=float)]
    shares = np.array([share for share in split if share is not None])
    if len(shares) < SMALLEST_SIDE:
        return None
    drawn = np.random.default_rng(rng_seed).integers(0, len(shares), (resamples, len(shares)))
    low, high = np.quantile(shares[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return LuckShareInterval(float(shares.mean()), float(low), float(high), level, len(shares))


def luck_share_null_bias(
    schedules: int, rollouts: int, success: float, rng_seed: int, tables: int = 20_000
) -> float:
    """Mean luck share, where defined, if the schedule explains nothing: what clipping at zero alone gives.

    Tables of K >= 2 schedules and M >= 2 rollouts are simulated, with a success probability in (0, 1).

    Source: paper sec:protocol, "Under the null the estimator has a clipping bias of about 0.03".
    """
    if min(schedules, rollouts) < SMALLEST_SIDE or not 0 < success < 1 or tables < 1:
        raise ValueError("expected two schedules and rollouts at least, 0 < success < 1, and a table")
    rng = np.random.default_rng(rng_seed)
    r = (rng.random((tables, schedules, rollouts)) < success).astype(float)
    between, within = _components(r)
    total = between + within
    return float((between[total > 0] / total[total > 0]).mean())


def _components(r: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return σ²_env and σ²_pol of tables (..., K, M)."""
    rollouts = r.shape[-1]
    within = r.var(axis=-1, ddof=1).mean(axis=-1)
    between = rollouts * r.mean(axis=-1).var(axis=-1, ddof=1)
    return np.maximum(0.0, (between - within) / rollouts), within
