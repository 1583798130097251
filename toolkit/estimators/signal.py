"""Where a gradient's variance lies, from inner products alone: any number of parameters.

The covariance trace adds up the variance in every direction. What can hide the signal lies along it: the
variance of one group's gradient along the mean gradient, μ'Σμ/μ'μ. Both follow from the inner products of
group gradients. Products of groups of different tasks are independent, and only those stand for a mean: each
estimate here is unbiased, but for the quotients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.taskwise import TaskUncertainty, is_nonzero, task_uncertainties

Array: TypeAlias = NDArray[np.float64]

SMALLEST_TASKS = 4
"""Σ along μ, squared, takes products of four different tasks."""


@dataclass(frozen=True)
class SignalVariance:
    """Variance of one group's gradient in one design."""

    trace: float  # in all directions together, tr Σ, in score²
    # Along the mean gradient, μ'Σμ/μ'μ, in score²; None where the groups show no mean gradient.
    along: float | None
    squared_norm: float  # ‖μ‖², unbiased, in score²; may be negative


@dataclass(frozen=True)
class SignalInterval:
    """Both designs' variances and their ratios, paired over independent, with uncertainty over tasks."""

    # In all directions together.
    trace_paired: TaskUncertainty
    trace_independent: TaskUncertainty
    trace_ratio: TaskUncertainty
    # Along the mean gradient of both designs' groups.
    along_paired: TaskUncertainty
    along_independent: TaskUncertainty
    along_ratio: TaskUncertainty
    # Of that mean gradient: where its interval holds zero, there is no direction to speak of.
    squared_norm: TaskUncertainty

    @property
    def has_direction(self) -> bool:
        """Whether the mean gradient is told from zero; what lies along it says little where it is not."""
        return is_nonzero(self.squared_norm)


def signal_variance(gram: ArrayLike, tasks: ArrayLike | None = None) -> SignalVariance:
    """Estimate a design's variance, in all directions and along its mean gradient.

    `gram` holds inner products of group gradients, shape (N, N), in score², symmetric; `tasks` are whole
    numbers (N,), four different ones at least, and a task each where left out.

    Source: with groups i, j, k, l of different tasks, E[K_ij K_ik] = μ'(Σ + μμ')μ and E[K_ij K_kl] = (μ'μ)².
    """
    labels = np.arange(len(np.asarray(gram))) if tasks is None else np.asarray(tasks)
    sums = _Products(gram, labels, np.ones(len(labels), dtype=bool))
    norm, (trace, along) = sums.squared_norm(sums.once), sums.of(0, sums.once)
    return SignalVariance(float(trace[0]), float(along[0] / norm[0]) if norm[0] > 0 else None, float(norm[0]))


def signal_interval(
    gram: ArrayLike,
    tasks: ArrayLike,
    paired: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    rng_seed: int,
) -> SignalInterval:
    """Both designs' variances and their ratios, tasks resampled with the groups of both designs together.

    As `signal_variance`, along the mean over all groups, one direction for both designs; `paired` (N,) says
    whether a group is of the paired design, and every task has groups of both. Each figure comes with its
    percentile interval, the jackknife's standard error and its value corrected for bias. Memory is about six
    arrays of R × N numbers.

    Source: as `signal_variance`; a U-statistic with the weights of a bootstrap, different tasks alone.
    """
    labels, of_paired = np.asarray(tasks), np.asarray(paired, dtype=bool)
    if of_paired.shape != labels.shape:
        raise ValueError(f"expected a design for each of {len(labels)} groups, found {of_paired.shape}")
    sums = _Products(gram, labels, of_paired, ~of_paired)

    def figures(counts: Array) -> dict[str, Array]:
        norm = sums.squared_norm(counts)
        # Along nothing there is no variance.
        length = np.where(norm > 0, norm, np.nan)
        (trace_paired, paired), (trace_independent, independent) = (sums.of(d, counts) for d in (0, 1))
        return {
            "trace_paired": trace_paired,
            "trace_independent": trace_independent,
            "trace_ratio": trace_paired / trace_independent,
            "along_paired": paired / length,
            "along_independent": independent / length,
            "along_ratio": paired / independent,
            "squared_norm": norm,
        }

    tasks_number = sums.once.shape[1]
    found = task_uncertainties(figures, tasks_number, level=level, resamples=resamples, rng_seed=rng_seed)
    return SignalInterval(**found)


class _Products:
    """Inner products added up task by task, weighted by how often each counts, for subsets of the groups."""

    def __init__(self, gram: ArrayLike, labels: NDArray[np.int64], *designs: NDArray[np.bool_]) -> None:
        k = np.asarray(gram, dtype=float)
        if k.shape != (len(labels), len(labels)) or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(
                f"expected products (N, N) and whole numbers (N,), found {k.shape}, {labels.shape}"
            )
        # The last bits of a product may depend on its place; those of one that nearly cancels, all of it.
        if not np.isfinite(k).all() or np.abs(k - k.T).max() > 1e-9 * np.abs(np.diagonal(k)).max():
            raise ValueError("expected inner products: a product is not finite, or they are not symmetric")
        names, at = np.unique(labels, return_inverse=True)
        if len(names) < SMALLEST_TASKS:
            raise ValueError(f"expected groups of {SMALLEST_TASKS} tasks at least, found {len(names)}")
        self.at, self.once = at, np.ones((1, len(names)))
        self.squares, self.designs = np.diagonal(k), designs
        self.member = (at[:, None] == np.arange(len(names))).astype(float)
        self.apart = 1 - np.eye(len(names))
        # Of a group with all groups of every other task.
        self.reach = (k @ self.member) * (1 - self.member)
        self.sizes = [self.member[design].sum(axis=0) for design in designs]
        if not all((size > 0).all() for size in self.sizes):
            raise ValueError("a task has no group of one of the designs")
        self.all = self.member.sum(axis=0)
        self.between = [self.member[design].T @ self.reach[design] for design in designs]
        self.own = [
            (self.member[design].T @ k[np.ix_(design, design)] @ self.member[design]) * self.apart
            for design in designs
        ]

    def squared_norm(self, counts: Array) -> Array:
        """Return ‖μ‖² of all groups together, shape (R,)."""
        pairs = np.outer(self.all, self.all) * self.apart
        return _quadratic(counts, self.member.T @ self.reach) / _quadratic(counts, pairs)

    def of(self, design: int, counts: Array) -> tuple[Array, Array]:
        """Return a design's trace and μ'Σμ, shape (R,) each, for counts (R, T)."""
        members, sizes = self.designs[design], self.sizes[design]
        pairs = np.outer(sizes, sizes) * self.apart
        per_task = self.member[members].T @ self.squares[members]
        second = counts @ per_task / (counts @ sizes)
        trace = second - _quadratic(counts, self.own[design]) / _quadratic(counts, pairs)
        towards = _triples(counts, self.at[members], self.reach[members])
        others = (np.ones((len(sizes), 1)) * self.all) * self.apart
        triples = _triples(counts * sizes, np.arange(len(sizes)), others, counts)
        quadruples = _quadruples(counts, np.outer(sizes, self.all) * self.apart)
        along = towards / triples - _quadruples(counts, self.between[design]) / quadruples
        return trace, along


def _quadratic(counts: Array, matrix: Array) -> Array:
    summed: Array = ((counts @ matrix) * counts).sum(axis=1)
    return summed


def _triples(own: Array, at: NDArray[np.int64], reach: Array, counts: Array | None = None) -> Array:
    """Return Σ_i n_t(i) Σ_{s≠u} n_s n_u q_is q_iu, row by row of the counts; q is zero at i's own task."""
    n = own if counts is None else counts
    products = (n @ reach.T) ** 2 - n**2 @ (reach**2).T
    summed: Array = (products * own[:, at]).sum(axis=1)
    return summed


def _quadruples(counts: Array, m: Array) -> Array:
    """Return Σ w_ts w_uv over four different tasks, w_ts = n_t n_s m_ts, row by row; m has a zero diagonal.

    All pairs of entries, less those that share a row or a column, or the row of one and the column of the
    other; entries that share both were taken off twice.
    """
    rows, columns = counts * (counts @ m.T), counts * (counts @ m)
    twice = _quadratic(counts**2, m * m + m * m.T)
    left: Array = rows.sum(axis=1) ** 2 - ((rows + columns) ** 2).sum(axis=1) + twice
    return left
