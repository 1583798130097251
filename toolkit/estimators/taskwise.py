"""Figures over tasks: covariance traces pooled over them, and how far other tasks would move a figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.secondary import t_quantile

Figures: TypeAlias = Callable[[NDArray[np.float64]], Mapping[str, NDArray[np.float64]]]

SMALLEST_SAMPLE = 2
ROWS = 32
"""Resamples that are multiplied at a time."""


@dataclass(frozen=True)
class PooledTrace:
    """A plug-in covariance trace of the group gradient and its parts, each a number or shape (B,)."""

    total: NDArray[np.float64]  # (1/T) Σ_t E‖g_t‖² - ‖(1/T) Σ_t E g_t‖², in score²
    within: NDArray[np.float64]  # mean over tasks of E‖g_t‖² - ‖E g_t‖²
    between: NDArray[np.float64]  # the rest: spread of the tasks' mean gradients
    squared_norm: NDArray[np.float64]  # ‖(1/T) Σ_t E g_t‖²


def pooled_trace(second: ArrayLike, products: ArrayLike, counts: ArrayLike | None = None) -> PooledTrace:
    """Pool the moments of tasks.

    `second` is E‖g_t‖² of each task, shape (T,), in score²; `products` (T, T) are inner products of the
    tasks' mean gradients: the pooled mean needs those of different tasks. `counts` (B, T) say how often each
    task counts in each resample, and give a number each; once each where left out.

    Source: paper app:probe, "Transition noise": pooled and within-task traces and the remainder.
    """
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
        number, moment, own, norm = _summed(n, np.stack([np.ones_like(s), s, diagonal], axis=1), m)
        moment, own, norm = moment / number, own / number, norm / number**2
    return PooledTrace(moment - norm, moment - own, own - norm, norm)


def _summed(
    counts: NDArray[np.float64], columns: NDArray[np.float64], products: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Return n·c of each column c, shape (T, C), and n'Mn of the products M, row n by row: each shape (B,).

    Rows are taken a few at a time: what they give stays in the processor's cache, and the library that
    multiplies starts no threads, which would wait for each other wherever a processor is busy.
    """
    tasks = counts.shape[1]
    both, sums = np.hstack([products, columns]), []
    whole = len(counts) - len(counts) % ROWS
    for rows in (counts[:whole].reshape(-1, ROWS, tasks), counts[None, whole:]):
        product = rows @ both
        norms = np.einsum("krt,krt->kr", product[..., :tasks], rows)
        sums.append(
            np.concatenate([product[..., tasks:], norms[..., None]], axis=2).reshape(
                -1, both.shape[1] - tasks + 1
            )
        )
    return list(np.concatenate(sums).T)


def noise_within_share(tasks: int, groups: int) -> float:
    """Within-task share of a plug-in trace where T >= 2 tasks do not differ at all.

    `groups` N >= 1 are the disjoint groups a task; where groups overlap, those that the rollouts would make.

    Source: a plug-in variance of N groups is (1 - 1/N) of what it estimates, one of all TN groups (1 - 1/TN).
    """
    _check_sizes(tasks, groups)
    return (1 - 1 / groups) / (1 - 1 / (tasks * groups))


def debiased_between_share(within: float, between: float, tasks: int, groups: int) -> float:
    """Between-task share of the variance of a group's gradient, without the plug-in's bias: τ²/(τ² + σ²).

    From plug-in traces within and between T >= 2 tasks of N >= 2 disjoint groups; below zero where the task
    means vary less than noise alone would make them.

    Source: one-way random effects: E[within] = (1 - 1/N)σ², E[between] = (1 - 1/T)(τ² + σ²/N).
    """
    _check_sizes(tasks, groups)
    if groups < SMALLEST_SAMPLE or not within > 0:
        raise ValueError(f"expected two groups a task and a variance within them, found {groups}, {within}")
    noise = within / (1 - 1 / groups)
    real = between / (1 - 1 / tasks) - noise / groups
    return real / (real + noise)


def norm_over_floor(squared_norm: float, trace: float, groups: int) -> float:
    """Squared norm of the mean gradient of n >= 2 groups over its own sampling variance, trace/n.

    A mean gradient of zero gives n/(n - 1) on average, the trace > 0 being plug-in, of one group's gradient.

    Source: E‖mean g‖² = ‖E g‖² + trace/n for n independent groups.
    """
    if not trace > 0 or groups < SMALLEST_SAMPLE:
        raise ValueError(f"expected a variance and two groups, found {trace}, {groups}")
    return squared_norm * groups / trace


def _check_sizes(tasks: int, groups: int) -> None:
    if tasks < SMALLEST_SAMPLE or groups < 1:
        raise ValueError(f"expected two tasks and a group each, found {tasks}, {groups}")


@dataclass(frozen=True)
class TaskUncertainty:
    """A figure over tasks and its uncertainty, which is whole or not there: no data is not zero."""

    value: float | None  # the figure, each task counting once; None where the tasks do not define it
    low: float | None = None  # lower end of the interval: the percentiles', or the jackknife's
    high: float | None = None  # its upper end
    standard_error: float | None = None  # the jackknife's
    corrected: float | None = None  # the figure, its bias of order 1/T taken off by the jackknife

    @property
    def best(self) -> float | None:
        """What to quote: the corrected figure where there is one."""
        return self.value if self.corrected is None else self.corrected


def is_nonzero(figure: TaskUncertainty) -> bool:
    """Say whether a figure's interval excludes zero; without an interval it is not told from it."""
    if figure.low is None or figure.high is None:
        return False
    return not figure.low <= 0 <= figure.high


def task_uncertainties(
    figures: Figures, tasks: int, *, level: float, resamples: int, rng_seed: int
) -> dict[str, TaskUncertainty]:
    """Resample T >= 2 tasks, all their groups together, and leave them out one by one.

    `figures` makes named figures (B,) of how often each task counts, shape (B, T). A figure has its value
    alone where it is not finite on every resample.

    Source: percentile bootstrap, order statistics interpolated linearly; the jackknife of Quenouille and
    Tukey.
    """
    if tasks < SMALLEST_SAMPLE or resamples < 1 or not 0 < level < 1:
        raise ValueError(f"expected two tasks and a level in (0, 1), found {tasks}, {resamples}, {level}")
    with np.errstate(divide="ignore", invalid="ignore"):
        values = figures(_counts(tasks, resamples, rng_seed))
    return {name: _judged(of_figure, tasks, level) for name, of_figure in values.items()}


def task_jackknife(figures: Figures, tasks: int, *, level: float) -> dict[str, TaskUncertainty]:
    """Leave tasks out one by one: intervals for figures that few tasks bias, which percentiles would repeat.

    As `task_uncertainties`, with `corrected` ± Student's quantile of the errors; a figure has its value alone
    where it is not finite without some task.

    Source: the jackknife of Quenouille and Tukey; T - 1 degrees of freedom.
    """
    if tasks < SMALLEST_SAMPLE or not 0 < level < 1:
        raise ValueError(f"expected two tasks and a level in (0, 1), found {tasks}, {level}")
    with np.errstate(divide="ignore", invalid="ignore"):
        values = figures(np.vstack([np.ones((1, tasks)), 1.0 - np.eye(tasks)]))
    reach = t_quantile((1 + level) / 2, tasks - 1)
    found = {}
    for name, of_figure in values.items():
        value, error, corrected = _left_out(of_figure)
        if error is None or corrected is None:
            found[name] = TaskUncertainty(value)
        else:
            half = reach * error
            found[name] = TaskUncertainty(value, corrected - half, corrected + half, error, corrected)
    return found


def _judged(of_figure: NDArray[np.float64], tasks: int, level: float) -> TaskUncertainty:
    value, error, corrected = _left_out(of_figure[: tasks + 1])
    drawn = of_figure[tasks + 1 :]
    if error is None or not np.isfinite(drawn).all():
        return TaskUncertainty(value)
    # Sorting is vectorized where selecting is not, and what is sorted is selected from at once.
    low, high = np.quantile(np.sort(drawn), [(1 - level) / 2, (1 + level) / 2])
    return TaskUncertainty(value, float(low), float(high), error, corrected)


def _left_out(of_figure: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Return a figure, its error and its corrected value, from it and from those without each task."""
    value, without = float(of_figure[0]), of_figure[1:]
    if not np.isfinite(value):
        return None, None, None
    if not np.isfinite(without).all():
        return value, None, None
    tasks, mean = len(without), float(without.mean())
    spread = float(((without - mean) ** 2).sum()) * (tasks - 1) / tasks
    return value, float(np.sqrt(spread)), tasks * value - (tasks - 1) * mean


@lru_cache(maxsize=8)
def _counts(tasks: int, resamples: int, rng_seed: int) -> NDArray[np.float64]:
    """Return how often each task counts, shape (1 + T + B, T): in the whole, without each task, resampled."""
    picked = np.random.default_rng(rng_seed).integers(0, tasks, (resamples, tasks))
    at = picked + np.arange(resamples)[:, None] * tasks
    drawn = np.bincount(at.ravel(), minlength=resamples * tasks).reshape(resamples, tasks)
    return np.vstack([np.ones((1, tasks)), 1.0 - np.eye(tasks), drawn])
