"""From two arms' episodes to the table that intervals resample: a difference for each seed pair and task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

AXES = ("seed pairs", "evaluated steps", "tasks", "schedules")


def task_differences(first: ArrayLike, second: ArrayLike, weights: Sequence[float]) -> NDArray[np.float64]:
    """Difference of two arms for each seed pair and task, over all of the task's schedules and steps.

    Args:
        first: outcomes of the first arm, shape (S, E, T, K): seed pair, evaluated step, task, schedule.
        second: outcomes of the second arm on the same tasks and schedules, same shape.
        weights: weight of each step, shape (E,), such as `auc_weights`; (1,) for one evaluation.

    Returns:
        First minus second, shape (S, T), in the unit of the outcomes; its mean is the endpoint.

    Raises:
        ValueError: arms that differ in seeds, steps, tasks or schedules; an outcome that is missing or not
            finite; no schedule; weights that do not fit or are not finite.

    Source:
        Registered analysis plan: tasks are resampled within each evaluation set with all their schedules;
        episodes are never pooled.
    """
    import numpy as np

    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    for name, array in (("first", one), ("second", other)):
        if array.ndim != len(AXES) or 0 in array.shape:
            raise ValueError(
                f"the {name} arm needs {', '.join(AXES)}, at least one of each; found shape {array.shape}"
            )
    for axis, left, right in zip(AXES, one.shape, other.shape, strict=True):
        if left != right:
            raise ValueError(f"the arms differ in their {axis}: {left} and {right}")
    for name, array in (("first", one), ("second", other)):
        missing = np.argwhere(~np.isfinite(array))
        if len(missing):
            place = ", ".join(f"{axis} {at}" for axis, at in zip(AXES, missing[0].tolist(), strict=True))
            raise ValueError(f"an episode of the {name} arm is missing or not finite: {place}")
    w = np.asarray([float(weight) for weight in weights])
    if w.shape != (one.shape[1],) or not np.isfinite(w).all():
        raise ValueError(f"expected {one.shape[1]} finite weights, one a step, found {list(weights)}")
    table: NDArray[np.float64] = np.einsum("e,setk->st", w, one - other) / one.shape[3]
    return table
