"""Moments of the group gradient task by task, by estimator and design, and the drift that follows."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import (
    drift_interval,
    outcome_forms,
    outcome_moments,
    regrouped_forms,
    regrouped_moments,
)
from toolkit.estimators.coordinates import TaskSums
from toolkit.estimators.moments import GroupMoments
from toolkit.lab.probe.design import COMPARED, DESIGNS, INDEPENDENT, OUTCOME, PAIRED, Listed, Steps
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]

MC, SW = "MC", "SW"
ESTIMATORS = (MC, SW)
ByEstimator = Mapping[str, Mapping[str, GroupMoments]]
"""Estimator → design → moments."""


def moments(
    noise: str, rewards: Array, weights: Array, gram: Array, *, flip_rate: float, groups: Listed | None
) -> ByEstimator:
    """Return estimator → design → moments."""
    of_outcomes = partial(outcome_moments, rewards, gram, flip_rate)
    return _by_estimator(noise, weights, of_outcomes, partial(regrouped_moments, rewards, gram), groups)


def forms(
    noise: str, rewards: Array, weights: Array, *, flip_rate: float, groups: Listed | None
) -> Mapping[str, Mapping[str, Array]]:
    """Return estimator → design → second moments as forms in a task's scores, shape (T, N, N)."""
    compared = groups and {design: groups[design] for design in COMPARED}
    of_outcomes = partial(outcome_forms, rewards, flip_rate)
    return _by_estimator(noise, weights, of_outcomes, partial(regrouped_forms, rewards), compared)


def _by_estimator(
    noise: str,
    weights: Array,
    of_outcomes: Callable[..., Any],
    of_groups: Callable[..., Any],
    groups: Listed | None,
) -> dict[str, dict[str, Any]]:
    by_estimator = {}
    for estimator, standardized in ((MC, False), (SW, True)):
        how = {"weights": weights if standardized else None, "standardized": standardized}
        if noise == OUTCOME:
            both = of_outcomes(**how)
            by_estimator[estimator] = {PAIRED: both.paired, INDEPENDENT: both.independent}
        else:
            by_estimator[estimator] = {
                design: of_groups(np.array([of_task[task] for task in range(len(weights))]), **how)
                for design, of_task in (groups or {}).items()
            }
    return by_estimator


CANCELLED = 1e-12
"""Sums smaller than this, beside what was summed, are rounding."""
DIGITS = 6
"""Significant digits, as of every figure over tasks."""


class Progress:
    """Sums of the tasks' group gradients by coordinate, block after block of the coordinates."""

    def __init__(
        self, noise: str, rewards: Array, weights: Array, *, flip_rate: float, groups: Listed | None
    ) -> None:
        self._designs = DESIGNS[noise]
        self._forms = forms(noise, rewards, weights, flip_rate=flip_rate, groups=groups)
        self._groups = np.ones(len(rewards))
        self._totals: dict[tuple[str, str], list[Array]] = {}
        self._squares: dict[tuple[str, str], list[Array]] = {}

    def add(self, scores: NDArray[np.float32], means: Mapping[str, Array]) -> None:
        """Add a block."""
        for estimator, of_design in self._forms.items():
            squares = mean_squares(scores, list(of_design.values()))
            totals = means[estimator].reshape(len(self._designs), len(scores), -1)
            for design, of_tasks in zip(of_design, squares, strict=True):
                at = (estimator, design)
                self._squares.setdefault(at, []).append(of_tasks)
                self._totals.setdefault(at, []).append(totals[self._designs.index(design)])

    def sums(self) -> dict[str, dict[str, TaskSums]]:
        """Return estimator → design → the sums of all blocks so far: one gradient a task, and its square."""
        return {
            estimator: {
                design: TaskSums(
                    self._groups,
                    np.concatenate(self._totals[estimator, design], axis=1),
                    np.concatenate(self._squares[estimator, design], axis=1),
                )
                for design in designs
            }
            for estimator, designs in self._forms.items()
        }


def mean_squares(scores: NDArray[np.float32], quadratic: Sequence[Array]) -> Array:
    """Return E[g_k²] of each task and coordinate, the same bits on every machine."""
    stacked = np.stack(quadratic)
    # What is taken together lies together in memory.
    by_rollout = np.ascontiguousarray(scores.transpose(1, 0, 2), dtype=float)
    squares: Array
    squares, sizes = np.zeros((2, len(stacked), *by_rollout.shape[1:]))
    for i, j in combinations_with_replacement(range(len(by_rollout)), 2):
        both = stacked[:, :, i, j] + stacked[:, :, j, i] if i != j else stacked[:, :, i, i]
        if both.any():
            part = both[:, :, None] * (by_rollout[i] * by_rollout[j])
            squares += part
            sizes += np.abs(part)
    # Where everybody does the same, a gradient cancels: what rounding leaves would be a step of full size.
    squares[np.abs(squares) <= CANCELLED * sizes] = 0.0
    return squares


def drift_rows(noise: str, sums: Mapping[str, Mapping[str, TaskSums]], steps: Steps) -> list[Row]:
    """Return the rows of `probe_drift` of one checkpoint under one noise, without the checkpoint."""
    rows = []
    for estimator, designs in sums.items():
        is_common = estimator == MC
        for batch in steps.batches:
            along = None if is_common else sums[MC][INDEPENDENT]
            found = drift_interval(
                *(designs[PAIRED], designs[INDEPENDENT], batch, "adam"),
                along=along,
                common_mean=is_common,
                level=steps.level,
            )
            ratio = found.ratio
            figures = {
                "drift_paired": found.paired.value,
                "drift_independent": found.independent.value,
                "ratio": ratio.value,
                "corrected": ratio.corrected,
                "low": ratio.low,
                "high": ratio.high,
            }
            rows.append(
                {"noise": noise, "estimator": estimator, "prompts_per_step": batch, "level": steps.level}
                | {n: None if v is None else float(f"{v:.{DIGITS}g}") for n, v in figures.items()}
            )
    return rows
