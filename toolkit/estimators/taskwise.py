"""How far figures over tasks would move with other tasks: bootstrap and jackknife, the task as the unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    Figures = Callable[[NDArray[np.float64]], Mapping[str, NDArray[np.float64]]]

SMALLEST_SAMPLE = 2


@dataclass(frozen=True)
class TaskUncertainty:
    """A figure over tasks and its uncertainty, which is whole or not there: no data is not zero.

    Args:
        value: the figure, each task counting once; None where the tasks do not define it.
        low: lower end of the percentile interval.
        high: its upper end.
        standard_error: the jackknife's.
        corrected: the figure, its bias of order 1/T taken off by the jackknife.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    corrected: float | None = None


def task_uncertainties(
    figures: Figures, tasks: int, *, level: float, resamples: int, rng_seed: int
) -> dict[str, TaskUncertainty]:
    """Resample tasks, all their groups together, and leave them out one by one.

    Args:
        figures: from counts, shape (B, T), how often each task counts, to named figures, each of shape (B,).
        tasks: tasks T >= 2.
        level: confidence level, in (0, 1).
        resamples: resamples B >= 1, the same for every figure.
        rng_seed: explicit seed, >= 0.

    Returns:
        Each figure by name; its value alone where it is not finite on every resample.

    Raises:
        ValueError: fewer than two tasks, no resample, or a level outside (0, 1).

    Source:
        Percentile bootstrap, order statistics interpolated linearly; the jackknife of Quenouille and Tukey.
    """
    import numpy as np

    if tasks < SMALLEST_SAMPLE or resamples < 1 or not 0 < level < 1:
        raise ValueError(f"expected two tasks and a level in (0, 1), found {tasks}, {resamples}, {level}")
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = figures(_drawn(tasks, resamples, rng_seed))
        left_out = figures(1.0 - np.eye(tasks))
        whole = figures(np.ones((1, tasks)))
    return {name: _judged(float(whole[name][0]), left_out[name], drawn[name], level) for name in whole}


def _judged(
    value: float, left_out: NDArray[np.float64], drawn: NDArray[np.float64], level: float
) -> TaskUncertainty:
    import numpy as np

    if not np.isfinite(value):
        return TaskUncertainty(None)
    if not (np.isfinite(drawn).all() and np.isfinite(left_out).all()):
        return TaskUncertainty(value)
    tasks, mean = len(left_out), float(left_out.mean())
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    spread = float(((left_out - mean) ** 2).sum()) * (tasks - 1) / tasks
    corrected = tasks * value - (tasks - 1) * mean
    return TaskUncertainty(value, float(low), float(high), float(np.sqrt(spread)), corrected)


@lru_cache(maxsize=8)
def _drawn(tasks: int, resamples: int, rng_seed: int) -> NDArray[np.float64]:
    """Return how often each task occurs in each resample, shape (B, T)."""
    import numpy as np

    picked = np.random.default_rng(rng_seed).integers(0, tasks, (resamples, tasks))
    at = picked + np.arange(resamples)[:, None] * tasks
    return np.bincount(at.ravel(), minlength=resamples * tasks).reshape(resamples, tasks).astype(float)
