"""The drift: how far one step of the optimizer is expected to move along the mean gradient.

A batch averages B group gradients, so that coordinate k of its gradient has mean μ_k and variance v_k/B.
Adam divides a step by the root of the running mean of the squared gradient, which is μ_k² + v_k/B where the
gradients are stationary: its expected progress along μ is D = Σ_k μ_k²/√(μ_k² + v_k/B), in units of the
learning rate. A plain gradient step makes Σ_k μ_k² whatever the variance.

Where advantages are not scaled, both designs have one mean gradient (prop:unbiased). Where they are, they may
not, and `along` measures both along a gradient that they share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.coordinates import CoordinateMoments, TaskSums
from toolkit.estimators.taskwise import TaskUncertainty, is_nonzero, task_jackknife
from toolkit.estimators.theory import ByDesign, Number, bandit

Array: TypeAlias = NDArray[np.float64]

BLOCK_ENTRIES = 2**20
"""Numbers that a block of coordinates holds: 8 MB an array."""


def adam_step(squared_mean: Array, noise: Array) -> Array:
    """Expected step of Adam for one unit of mean gradient, from μ² and σ² = v/B, in score²: 1/√(μ² + σ²).

    Zero for a coordinate that never moves.

    Source: Kingma and Ba 2015, algorithm 1, with stationary gradients, averages longer than their noise, and
    ε = 0: the first moment is μ on average, the second μ² + σ².
    """
    return _over(np.ones_like(noise), np.sqrt(squared_mean + noise))


def sign_step(squared_mean: Array, noise: Array) -> Array:
    """Expected sign of the batch's gradient for one unit of mean: erf(√(z/2))/√z over σ, z = μ²/σ².

    Source: E sign(x) = 2Φ(μ/σ) - 1 = erf(μ/(σ√2)) for a normal x: the central limit, poor for few groups that
    are mostly constant. Towards μ = 0 the step is √(2/π)/σ, four fifths of Adam's.
    """
    length, deviation = np.sqrt(squared_mean), np.sqrt(noise)
    erf = np.frompyfunc(math.erf, 1, 1)
    with np.errstate(over="ignore"):  # a noise of zero: the sign is certain
        signs = np.asarray(erf(_over(length, deviation * math.sqrt(2), otherwise=math.inf)), dtype=float)
    # Below this the quotient of two tiny numbers is less exact than the limit.
    small = length < 1e-6 * deviation
    return np.where(
        small, _over(np.full_like(noise, math.sqrt(2 / math.pi)), deviation), _over(signs, length)
    )


def _over(number: Array, divisor: Array, otherwise: float = 0.0) -> Array:
    return np.divide(number, divisor, out=np.full_like(divisor, otherwise), where=divisor > 0)


OPTIMIZERS: dict[str, Callable[[Array, Array], Array]] = {
    "adam": adam_step,
    "gradient": lambda _, noise: np.ones_like(noise),  # of plain ascent, for one unit of mean
    "sign": sign_step,
}


def step_of(optimizer: str, groups: float) -> Callable[[Array, Array], Array]:
    """Return what gives an optimizer's expected step, for a number of groups that there can be."""
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"expected one of {', '.join(OPTIMIZERS)}, found {optimizer!r}")
    if not groups > 0:
        raise ValueError(f"a step has at least one group, found {groups}")
    return OPTIMIZERS[optimizer]


@dataclass(frozen=True)
class DriftInterval:
    """Both designs' drift and their ratio, each with its uncertainty over tasks."""

    paired: TaskUncertainty
    independent: TaskUncertainty
    ratio: TaskUncertainty

    @property
    def has_denominator(self) -> bool:
        """Whether the independent drift is told from zero; the ratio says little where it is not."""
        return is_nonzero(self.independent)


def exact_drift(
    mean: ArrayLike,
    variance: ArrayLike,
    groups: float,
    optimizer: str = "adam",
    *,
    along: ArrayLike | None = None,
) -> float:
    """The drift where the moments are known, in units of the learning rate.

    Args:
        mean: μ, the mean group gradient, shape (P,), in score.
        variance: v of one group's gradient, shape (P,), >= 0, in score².
        groups: groups B in a step, > 0; infinity leaves Adam's and the sign's Σ |μ|.
        optimizer: `adam`, `gradient` (plain ascent) or `sign` (the normal approximation of its step).
        along: gradient that progress is measured along, shape (P,); the mean gradient where left out.

    Returns Σ_k a_k E[step_k], a the direction: in score for Adam and sign, score² for plain ascent.

    Source: `adam_step`, `sign_step`; diagonal second moments, one step's linear term.
    """
    m, v = np.atleast_1d(np.asarray(mean, dtype=float)), np.atleast_1d(np.asarray(variance, dtype=float))
    if m.ndim != 1 or v.shape != m.shape or not (v >= 0).all():
        raise ValueError(f"expected a mean (P,) and variances >= 0, found {m.shape} and {v.shape}")
    step = step_of(optimizer, groups)
    return float(_Part(m, m**2, v).progress(groups, step, _direction(along, m)))


@dataclass(frozen=True)
class BanditDrift:
    """The bandit's drift under both designs, along its mean-centred mean gradient, which they share."""

    mean_centred: ByDesign
    standardized: ByDesign


def bandit_drift(
    success: Number, group_size: int, flip_rate: Number, groups: float, optimizer: str = "adam"
) -> BanditDrift:
    """The drift in the aligned bandit, every outcome of a group enumerated: as `bandit` and `exact_drift`.

    Standardized advantages give the designs different mean gradients: their progress is measured along the
    mean-centred one.

    Source: `bandit`, paper app:bandit; `exact_drift`, of one coordinate.
    """
    moments = bandit(success, group_size, flip_rate)

    def of(design: str, norms: ByDesign, traces: ByDesign) -> float:
        # Rounding must not make a variance negative.
        variance = max(0.0, float(getattr(traces, design)))
        along = float(getattr(moments.mean_centred_norm, design))
        return exact_drift([float(getattr(norms, design))], [variance], groups, optimizer, along=[along])

    def both(norms: ByDesign, traces: ByDesign) -> ByDesign:
        return ByDesign(of("independent", norms, traces), of("paired", norms, traces))

    return BanditDrift(
        both(moments.mean_centred_norm, moments.mean_centred_trace),
        both(moments.standardized_norm, moments.standardized_trace),
    )


def drift(
    moments: CoordinateMoments, groups: float, optimizer: str = "adam", *, along: ArrayLike | None = None
) -> float:
    """Estimate the drift from the moments of a design's group gradients, as `exact_drift`.

    The numerator is the unbiased μ̂², of either sign, so that noise may make the drift negative; in the step,
    where it stands under a root, it is taken to be zero at least. What bias is left is of order B/N: see
    "Drift" in the estimators' README. These groups must have had no part in the gradient `along` (it is of
    other tasks, or of the other half), or the product of the two is biased by what they share.

    Source: as `exact_drift`; products of different tasks have expectation μ².
    """
    step, direction = step_of(optimizer, groups), _direction(along, moments.total)
    parts = (
        _part(moments.groups, moments.pairs, *(column[at] for column in _columns(moments))).progress(
            groups, step, None if direction is None else direction[at]
        )
        for at in _blocks(len(moments.total), 1)
    )
    return float(sum(parts))


def drift_ratio(
    paired: CoordinateMoments,
    independent: CoordinateMoments,
    groups: float,
    optimizer: str = "adam",
    *,
    along: ArrayLike | None = None,
    common_mean: bool = False,
) -> float:
    """Estimate paired over independent drift; nan where the independent design has no drift.

    `common_mean` says that both designs have one mean gradient, as they have where advantages are not scaled
    (prop:unbiased): μ̂² is then that of both together, its noise nearly cancels, and plain ascent has a ratio
    of one. `along` is one gradient for both designs.

    Source: as `drift`.
    """
    if paired.total.shape != independent.total.shape:
        raise ValueError(f"expected {paired.total.shape} coordinates, found {independent.total.shape}")
    step, direction = step_of(optimizer, groups), _direction(along, paired.total)
    sums = np.zeros(2)
    for at in _blocks(len(paired.total), 1):
        parts = [
            _part(m.groups, m.pairs, *(column[at] for column in _columns(m))) for m in (paired, independent)
        ]
        if common_mean:
            parts = _with_common_mean(parts, [paired.pairs, independent.pairs])
        sums += [part.progress(groups, step, None if direction is None else direction[at]) for part in parts]
    return float(sums[0] / sums[1]) if sums[1] else math.nan


def drift_interval(
    paired: TaskSums,
    independent: TaskSums,
    groups: float,
    optimizer: str = "adam",
    *,
    along: ArrayLike | TaskSums | None = None,
    common_mean: bool = False,
    level: float = 0.95,
) -> DriftInterval:
    """Both drifts and their ratio, tasks left out one by one, the groups of both designs together.

    Few tasks bias a drift, which percentiles of resampled tasks repeat: measured in the estimators' README,
    "Drift". The jackknife takes the bias off, and no random number is drawn.

    The designs' sums are of the same tasks in the same order. `along` and `common_mean` are as in
    `drift_ratio`; `along` may also be the sums of gradients of the same tasks whose mean it is, left out with
    them: only its products with other tasks count. Beside the sums, 4TP numbers of the caller's, memory is
    about 20 blocks of 8 MB and T² numbers.

    Source: `task_jackknife`, of a U-statistic: pairs of different tasks alone.
    """
    if paired.totals.shape != independent.totals.shape:
        raise ValueError(
            f"expected tasks × coordinates {paired.totals.shape}, found {independent.totals.shape}"
        )
    tasks, number = paired.totals.shape
    step = step_of(optimizer, groups)
    of_tasks = along if isinstance(along, TaskSums) else None
    direction = None if isinstance(along, TaskSums) else _direction(along, paired.totals[0])
    if of_tasks is not None and of_tasks.totals.shape != paired.totals.shape:
        raise ValueError(f"expected a direction {paired.totals.shape}, found {of_tasks.totals.shape}")

    def figures(kept: Array) -> dict[str, Array]:
        sums = np.zeros((2, len(kept)))
        designs = (paired, independent)
        sizes = [_sizes(design, kept) for design in designs]
        for at in _blocks(number, len(kept)):
            parts = [
                _part(*size, *_kept_sums(design, kept, at))
                for size, design in zip(sizes, designs, strict=True)
            ]
            if common_mean:
                parts = _with_common_mean(parts, [pairs for _, pairs in sizes])
            towards = [
                None if of_tasks is None else _products(of_tasks, design, kept, at) for design in designs
            ]
            sums += [
                part.progress(groups, step, None if direction is None else direction[at], product)
                for part, product in zip(parts, towards, strict=True)
            ]
        return {"paired": sums[0], "independent": sums[1], "ratio": sums[0] / sums[1]}

    return DriftInterval(**task_jackknife(figures, tasks, level=level))


@dataclass(frozen=True)
class _Part:
    """Moments of some coordinates, each shape (..., b)."""

    mean: Array
    squared_mean: Array
    variance: Array

    def progress(
        self,
        groups: float,
        step: Callable[[Array, Array], Array],
        along: Array | None,
        towards: Array | None = None,
    ) -> Array:
        """Return Σ direction × expected step, shape (...); `towards`: direction × mean, where it is known."""
        noise = np.maximum(self.variance, 0.0) / groups
        if towards is None:
            towards = self.squared_mean if along is None else along * self.mean
        summed: Array = (towards * step(np.maximum(self.squared_mean, 0.0), noise)).sum(axis=-1)
        return summed


def _part(
    groups: float | Array, pairs: float | Array, total: Array, squares: Array, of_tasks: Array
) -> _Part:
    squared_mean = (total**2 - of_tasks) / pairs
    return _Part(total / groups, squared_mean, squares / groups - squared_mean)


def _with_common_mean(parts: Sequence[_Part], pairs: Sequence[float | Array]) -> list[_Part]:
    """Give both designs the μ̂² of both, each with the weight of its pairs; a variance stays its own."""
    (one, other), (mine, others) = parts, pairs
    shared = one.squared_mean + (other.squared_mean - one.squared_mean) * (others / (mine + others))
    return [_Part(part.mean, shared, part.variance) for part in parts]


def _sizes(sums: TaskSums, kept: Array) -> tuple[Array, Array]:
    """Return the groups, and their pairs of different tasks, of the tasks kept, (R, T): shape (R, 1) each."""
    number = kept @ sums.groups
    return number[:, None], (number**2 - kept @ sums.groups**2)[:, None]


def _kept_sums(sums: TaskSums, kept: Array, at: slice) -> tuple[Array, Array, Array]:
    totals = np.asarray(sums.totals[:, at], dtype=float)
    squares = np.asarray(sums.squares[:, at], dtype=float)
    return kept @ totals, kept @ squares, kept @ totals**2


def _products(along: TaskSums, sums: TaskSums, kept: Array, at: slice) -> Array:
    """Return the mean product of a gradient of `along` and one of another task, shape (R, b)."""
    one, other = (np.asarray(of.totals[:, at], dtype=float) for of in (along, sums))
    pairs = (kept @ along.groups) * (kept @ sums.groups) - kept @ (along.groups * sums.groups)
    summed: Array = (kept @ one) * (kept @ other) - kept @ (one * other)
    return summed / pairs[:, None]


def _columns(moments: CoordinateMoments) -> tuple[Array, Array, Array]:
    return moments.total, moments.squares, moments.of_tasks


def _blocks(number: int, rows: int) -> Iterator[slice]:
    width = max(1, BLOCK_ENTRIES // rows)
    for start in range(0, number, width):
        yield slice(start, start + width)


def _direction(along: ArrayLike | None, coordinates: Array) -> Array | None:
    if along is None:
        return None
    direction = np.atleast_1d(np.asarray(along, dtype=float))
    if direction.shape != coordinates.shape or not np.isfinite(direction).all():
        raise ValueError(f"expected a finite direction {coordinates.shape}, found {direction.shape}")
    return direction
