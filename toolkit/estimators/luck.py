"""Luck share: how much of a task's reward variance the schedule explains."""

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_SIDE = 2


@dataclass(frozen=True)
class LuckShare:
    """One task's split of reward variance.

    Args:
        between: variance of the schedules' means, σ²_env, in reward²; clipped at zero.
        within: mean variance within a schedule, σ²_pol, in reward².
        share: between over their sum, in [0, 1]; None where the sum is zero.
    """

    between: float
    within: float
    share: float | None


@dataclass(frozen=True)
class MeanLuckShare:
    """Luck share over tasks.

    Args:
        mean: mean of the per-task shares where defined; None where none is.
        pooled: share of the averaged components; None where both are zero.
        tasks: tasks given.
        defined: tasks whose share is defined.
    """

    mean: float | None
    pooled: float | None
    tasks: int
    defined: int


def luck_share(rewards: ArrayLike) -> LuckShare:
    """Between-schedule fraction of one task's reward variance.

    Args:
        rewards: rewards of one task, shape (K, M): row = schedule, column = rollout.

    Returns:
        Variances and share. A table that is constant within every schedule but not between them has share 1.

    Raises:
        ValueError: fewer than two schedules or rollouts, or a reward that is not finite.

    Source:
        Paper sec:protocol, "Luck-share diagnostic": one-way random effects,
        σ²_env = max(0, (MS_between - MS_within)/M), σ²_pol = MS_within. Clipping biases a table without
        any schedule effect upwards, by about 0.03 for 8 × 8; it is reported (`luck_share_null_bias`), not
        corrected.
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
    """Luck share averaged over tasks, as registered.

    Args:
        tables: rewards, shape (T, K, M): task, schedule, rollout.

    Raises:
        ValueError: no task, or as `luck_share`.

    Source:
        Registered analysis plan: λ = mean of per-task ratios where defined; pooled = ratio of averaged
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
    """A percentile interval of the mean luck share over tasks.

    Args:
        estimate: mean of the per-task shares where defined.
        low: lower end.
        high: upper end.
        level: confidence level.
        defined: tasks whose share is defined: those that were resampled.
        unit: what was resampled.
    """

    estimate: float
    low: float
    high: float
    level: float
    defined: int
    unit: str = "tasks whose share is defined"


def luck_share_interval(
    tables: ArrayLike, resamples: int, rng_seed: int, level: float
) -> LuckShareInterval | None:
    """Task bootstrap of the mean luck share.

    Args:
        tables: rewards, shape (T, K, M): task, schedule, rollout.
        resamples: resamples of the tasks, B >= 1.
        rng_seed: explicit seed, >= 0; the same seed gives the same interval.
        level: confidence level, in (0, 1).

    Returns:
        The interval; None where fewer than two tasks have a share.

    Raises:
        ValueError: as `mean_luck_share`, no resample, or a level outside (0, 1).

    Source:
        Registered analysis plan: zero-shot luck share with its 95% task bootstrap; tasks without a share take
        no part.
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
    """Mean luck share where the schedule explains nothing: what clipping at zero alone gives.

    Args:
        schedules: rows of a table, K >= 2.
        rollouts: columns of a table, M >= 2.
        success: success probability of every rollout, in (0, 1).
        rng_seed: seed of the simulation.
        tables: simulated tables.

    Returns:
        Mean share over the tables where it is defined, in [0, 1].

    Raises:
        ValueError: a size below two, a probability outside (0, 1), or no table.

    Source:
        Paper sec:protocol, "Under the null the estimator has a clipping bias of about 0.03".
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
