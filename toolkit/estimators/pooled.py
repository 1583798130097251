"""Covariance traces pooled over tasks, their parts within and between tasks, and what few groups leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

SMALLEST_SAMPLE = 2


@dataclass(frozen=True)
class PooledTrace:
    """A plug-in covariance trace of the group gradient and its parts, each a number or shape (B,).

    Args:
        total: (1/T) Σ_t E‖g_t‖² - ‖(1/T) Σ_t E g_t‖², in score².
        within: mean over tasks of E‖g_t‖² - ‖E g_t‖².
        between: the rest: spread of the tasks' mean gradients.
        squared_norm: ‖(1/T) Σ_t E g_t‖².
    """

    total: NDArray[np.float64]
    within: NDArray[np.float64]
    between: NDArray[np.float64]
    squared_norm: NDArray[np.float64]


def pooled_trace(second: ArrayLike, products: ArrayLike, counts: ArrayLike | None = None) -> PooledTrace:
    """Pool the moments of tasks.

    Args:
        second: E‖g_t‖² of each task, shape (T,), in score².
        products: inner products of the tasks' mean gradients, shape (T, T): the pooled mean needs those of
            different tasks.
        counts: how often each task counts, shape (B, T), for resamples; once each where left out.

    Returns:
        Numbers, or one a resample, shape (B,).

    Raises:
        ValueError: shapes that do not fit, no task, or a value that is not finite.

    Source:
        Paper app:probe, "Transition noise": pooled and within-task traces and the remainder.
    """
    import numpy as np

    s, m = np.asarray(second, dtype=float), np.asarray(products, dtype=float)
    if s.ndim != 1 or not len(s) or m.shape != (len(s), len(s)):
        raise ValueError(f"expected moments (T,) and products (T, T), found {s.shape}, {m.shape}")
    if not (np.isfinite(s).all() and np.isfinite(m).all()):
        raise ValueError("a moment is not finite")
    diagonal = np.diagonal(m)
    if counts is None:
        norm = m.sum() / len(s) ** 2
        moment, own = s.mean(), diagonal.mean()
    else:
        n = np.asarray(counts, dtype=float)
        if n.ndim != 2 or n.shape[1] != len(s):  # noqa: PLR2004 - a table
            raise ValueError(f"expected counts (B, {len(s)}), found {n.shape}")
        share = n / n.sum(axis=1, keepdims=True)
        norm = ((share @ m) * share).sum(axis=1)
        moment, own = share @ s, share @ diagonal
    return PooledTrace(moment - norm, moment - own, own - norm, norm)


def noise_within_share(tasks: int, groups: int) -> float:
    """Within-task share of a plug-in trace where tasks do not differ at all.

    Args:
        tasks: tasks T >= 2.
        groups: disjoint groups a task, N >= 1; where groups overlap, those that the rollouts would make.

    Raises:
        ValueError: fewer.

    Source:
        A plug-in variance of N groups is (1 - 1/N) of what it estimates, one of all TN groups (1 - 1/TN).
    """
    _check_sizes(tasks, groups)
    return (1 - 1 / groups) / (1 - 1 / (tasks * groups))


def debiased_between_share(within: float, between: float, tasks: int, groups: int) -> float:
    """Between-task share of the variance of a group's gradient, without the plug-in's bias.

    Args:
        within: plug-in within-task trace, in score².
        between: plug-in between-task trace, in score².
        tasks: tasks T >= 2.
        groups: disjoint groups a task, N >= 2.

    Returns:
        τ²/(τ² + σ²); below zero where the task means vary less than noise alone would make them.

    Raises:
        ValueError: fewer tasks or groups, or no variance within.

    Source:
        One-way random effects: E[within] = (1 - 1/N)σ², E[between] = (1 - 1/T)(τ² + σ²/N).
    """
    _check_sizes(tasks, groups)
    if groups < SMALLEST_SAMPLE or not within > 0:
        raise ValueError(f"expected two groups a task and a variance within them, found {groups}, {within}")
    noise = within / (1 - 1 / groups)
    real = between / (1 - 1 / tasks) - noise / groups
    return real / (real + noise)


def norm_over_floor(squared_norm: float, trace: float, groups: int) -> float:
    """Squared norm of a mean gradient over its own sampling variance.

    A mean gradient of zero gives n/(n - 1) on average, the trace being plug-in.

    Args:
        squared_norm: ‖mean g‖² over all groups, in score².
        trace: plug-in covariance trace of one group's gradient, > 0, in score².
        groups: groups n that the mean is over.

    Raises:
        ValueError: no variance, or fewer than two groups.

    Source:
        E‖mean g‖² = ‖E g‖² + trace/n for n independent groups.
    """
    if not trace > 0 or groups < SMALLEST_SAMPLE:
        raise ValueError(f"expected a variance and two groups, found {trace}, {groups}")
    return squared_norm * groups / trace


def _check_sizes(tasks: int, groups: int) -> None:
    if tasks < SMALLEST_SAMPLE or groups < 1:
        raise ValueError(f"expected two tasks and a group each, found {tasks}, {groups}")
