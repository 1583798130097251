"""Moments of each coordinate of a group's gradient, from sums that a model of any size can keep.

What a group's gradient is, scaled by the group's deviation or not, weighted or not, is the caller's: any
advantages go in. Sums are kept in double precision, whatever comes in. Tasks are the unit: gradients of one
task may be correlated, those of different tasks are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class CoordinateMoments:
    """What group gradients say about each coordinate, as sums."""

    groups: int  # groups N >= 2
    pairs: int  # ordered pairs of groups of different tasks, N(N - 1) where every group has its own
    total: NDArray[np.float64]  # s₁ = Σ g, shape (P,), in score
    squares: NDArray[np.float64]  # s₂ = Σ g², shape (P,), in score²
    # Σ over tasks of the squared sum of a task's gradients, shape (P,); `squares` itself where every group
    # has a task of its own.
    of_tasks: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean gradient, shape (P,)."""
        return self.total / self.groups

    @property
    def squared_mean(self) -> NDArray[np.float64]:
        """An unbiased estimate of μ², shape (P,): may be negative.

        The mean product of two gradients of different tasks, (s₁² - Σ_t s_t²) / pairs.
        """
        return (self.total**2 - self.of_tasks) / self.pairs

    @property
    def variance(self) -> NDArray[np.float64]:
        """An unbiased estimate of the variance of one group's gradient, tasks included, shape (P,)."""
        return self.squares / self.groups - self.squared_mean

    @property
    def trace(self) -> float:
        """The covariance trace of one group's gradient, unbiased, in score²."""
        return float(self.variance.sum())

    def merged(self, other: CoordinateMoments) -> CoordinateMoments:
        """Pool with the moments of groups of other tasks."""
        if self.total.shape != other.total.shape:
            raise ValueError(f"expected {self.total.shape} coordinates, found {other.total.shape}")
        return CoordinateMoments(
            self.groups + other.groups,
            self.pairs + other.pairs + 2 * self.groups * other.groups,
            self.total + other.total,
            self.squares + other.squares,
            self.of_tasks + other.of_tasks,
        )


@dataclass(frozen=True)
class TaskSums:
    """A design's group gradients, summed task by task: what a bootstrap over tasks needs."""

    groups: NDArray[np.float64]  # groups of each task, shape (T,), >= 1
    totals: NDArray[np.float64]  # Σ g over a task's groups, shape (T, P); may be mapped from a file
    squares: NDArray[np.float64]  # Σ g², shape (T, P)

    @property
    def moments(self) -> CoordinateMoments:
        """The moments over all tasks."""
        number = int(self.groups.sum())
        return _checked_moments(
            number,
            number**2 - int((self.groups**2).sum()),
            self.totals.sum(axis=0),
            self.squares.sum(axis=0),
            (self.totals**2).sum(axis=0),
        )


def coordinate_moments(gradients: ArrayLike, tasks: ArrayLike | None = None) -> CoordinateMoments:
    """Moments of each coordinate of a group's gradient, from gradients (N, P), N >= 2, in score.

    `tasks` are whole numbers (N,), two different ones at least; a task each where left out.

    Source: unbiased for groups of tasks drawn independently: products of gradients of different tasks have
    expectation μ², squares μ² + v. Equal in expectation to products of independent halves, with less spread.
    """
    g = np.asarray(gradients, dtype=float)
    if tasks is None:
        if g.ndim != 2:  # noqa: PLR2004 - a table
            raise ValueError(f"expected gradients (N, P), found {g.shape}")
        return moments_of_sums(len(g), g.sum(axis=0), (g**2).sum(axis=0))
    return task_sums(g, tasks).moments


def moments_of_sums(groups: int, total: ArrayLike, total_of_squares: ArrayLike) -> CoordinateMoments:
    """Moments from two running sums over N >= 2 groups, each of its own task: for a model of any size.

    `total` is Σ g, shape (P,), in score, and `total_of_squares` Σ g², in score²; squares that no gradients
    with this sum have are refused.

    Source: μ² by (s₁² - s₂)/(N(N - 1)), v by (s₂ - s₁²/N)/(N - 1).
    """
    squares = np.asarray(total_of_squares, dtype=float)
    return _checked_moments(groups, groups * (groups - 1), np.asarray(total, dtype=float), squares, squares)


def task_sums(gradients: ArrayLike, tasks: ArrayLike) -> TaskSums:
    """Sum group gradients (N, P), in score, task by task: whole numbers (N,), in ascending order.

    Source: paper app:probe: tasks are the unit, all their groups together.
    """
    g, labels = np.asarray(gradients, dtype=float), np.asarray(tasks)
    if g.ndim != 2 or labels.shape != g.shape[:1] or not np.issubdtype(labels.dtype, np.integer):  # noqa: PLR2004
        raise ValueError(f"expected gradients (N, P) and whole numbers (N,), found {g.shape}, {labels.shape}")
    if not np.isfinite(g).all():
        raise ValueError("a gradient is not finite")
    _, at, counts = np.unique(labels, return_inverse=True, return_counts=True)
    totals = np.zeros((len(counts), g.shape[1]))
    squares = np.zeros_like(totals)
    np.add.at(totals, at, g)
    np.add.at(squares, at, g**2)
    return TaskSums(counts.astype(float), totals, squares)


def _checked_moments(
    groups: int,
    pairs: int,
    total: NDArray[np.float64],
    squares: NDArray[np.float64],
    of_tasks: NDArray[np.float64],
) -> CoordinateMoments:
    if total.ndim != 1 or squares.shape != total.shape:
        raise ValueError(f"expected sums (P,), found {total.shape} and {squares.shape}")
    if pairs < 1:
        raise ValueError(f"expected groups of two tasks at least, found {groups} groups of one")
    if not (np.isfinite(total).all() and np.isfinite(squares).all()):
        raise ValueError("a sum is not finite")
    # Cauchy and Schwarz, up to rounding: otherwise the squares are those of other gradients.
    if (total**2 > groups * squares * (1 + 1e-5)).any():
        raise ValueError("the sum of squares is smaller than any gradients with this sum have")
    return CoordinateMoments(groups, pairs, total, squares, of_tasks)
