"""Learning curves: the area under one, when it reaches a threshold, and how those of two arms differ."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray


def auc_weights(steps: Sequence[int]) -> tuple[Fraction, ...]:
    """Exact weights, which sum to one, of the trapezoidal mean over K >= 2 steps, strictly increasing.

    (0.1, 0.2, 0.2, 0.2, 0.2, 0.1) for steps 0, 20, …, 100.

    Source: paper sec:protocol, "Evaluation": trapezoidal mean of true success over the six evaluations.
    """
    if len(steps) < 2:  # noqa: PLR2004 - a curve has two ends
        raise ValueError("an area needs at least two steps")
    gaps = [after - before for before, after in pairwise(steps)]
    if min(gaps) <= 0:
        raise ValueError(f"steps must increase, found {list(steps)}")
    span = 2 * (steps[-1] - steps[0])
    return tuple(Fraction(left + right, span) for left, right in zip([0, *gaps], [*gaps, 0], strict=True))


def auc(success: Sequence[Fraction], steps: Sequence[int]) -> Fraction:
    """Trapezoidal mean of success over training steps, both of shape (K,): an exact fraction in [0, 1].

    Source: paper sec:protocol, "Evaluation".
    """
    weights = auc_weights(steps)
    return sum((w * s for w, s in zip(weights, success, strict=True)), Fraction(0))


def steps_to_threshold(
    success: Sequence[Fraction], steps: Sequence[int], threshold: Fraction
) -> Fraction | None:
    """Training steps until success first reaches a threshold, linearly interpolated, exactly.

    Success and threshold are fractions in [0, 1]; steps increase. The first step itself where the curve
    starts at the threshold or above it; None where no evaluation reaches it (censored, never imputed).

    Source: paper sec:protocol, "Evaluation", and the registered analysis plan: first evaluation at or above
    the threshold, interpolated from the evaluation before it.
    """
    curve = list(zip(steps, success, strict=True))
    if curve and curve[0][1] >= threshold:
        return Fraction(curve[0][0])
    for (before, low), (after, high) in pairwise(curve):
        if high >= threshold:
            return before + (after - before) * (threshold - low) / (high - low)
    return None


AXES = ("seed pairs", "evaluated steps", "tasks", "schedules")


def task_differences(first: ArrayLike, second: ArrayLike, weights: Sequence[float]) -> NDArray[np.float64]:
    """Difference of two arms for each seed pair and task, over all of the task's schedules and steps.

    Both arms have outcomes of shape (S, E, T, K): seed pair, evaluated step, task, schedule; `weights` (E,)
    are such as `auc_weights`, (1,) for one evaluation. Returns first minus second, shape (S, T), in the unit
    of the outcomes; its mean is the endpoint.

    Source: registered analysis plan: tasks are resampled within each evaluation set with all their schedules;
    episodes are never pooled.
    """
    left_arm, right_arm = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    for name, array in (("first", left_arm), ("second", right_arm)):
        if array.ndim != len(AXES) or 0 in array.shape:
            raise ValueError(
                f"the {name} arm needs {', '.join(AXES)}, at least one of each; found shape {array.shape}"
            )
    for axis, left, right in zip(AXES, left_arm.shape, right_arm.shape, strict=True):
        if left != right:
            raise ValueError(f"the arms differ in their {axis}: {left} and {right}")
    for name, array in (("first", left_arm), ("second", right_arm)):
        missing = np.argwhere(~np.isfinite(array))
        if len(missing):
            position = ", ".join(f"{axis} {at}" for axis, at in zip(AXES, missing[0].tolist(), strict=True))
            raise ValueError(f"an episode of the {name} arm is missing or not finite: {position}")
    w = np.asarray([float(weight) for weight in weights])
    if w.shape != (left_arm.shape[1],) or not np.isfinite(w).all():
        raise ValueError(f"expected {left_arm.shape[1]} finite weights, one a step, found {list(weights)}")
    table: NDArray[np.float64] = np.einsum("e,setk->st", w, left_arm - right_arm) / left_arm.shape[3]
    return table
