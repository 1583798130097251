"""The drift of a probed policy, from what its group gradients are on average and in square.

Gram matrices do not hold it, since a coordinate's share is lost in an inner product. It is measured while the
scores are at hand, and again by who probes again.

Source:
    `toolkit.estimators.drift_interval`; tasks are the unit, as in every figure of the probe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import drift_interval
from toolkit.estimators.coordinates import TaskSums
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, PAIRED, Design, Listed
from toolkit.lab.probe.moments import MC, forms
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]

ADAM = "adam"
CANCELLED = 1e-12
"""Sums smaller than this, beside what was summed, are rounding."""
DIGITS = 6
"""Significant digits, as of every figure over tasks."""


@dataclass(frozen=True)
class Steps:
    """The steps whose drift is told."""

    batches: tuple[int, ...]  # groups in a step, B, each
    level: float  # confidence level of the intervals


def steps_of(design: Design) -> Steps:
    """Return the steps whose drift a probe tells."""
    return Steps(design.batches, design.level)


class Progress:
    """Sums of the tasks' group gradients by coordinate, block after block of the coordinates.

    Args:
        noise: `outcome` or `transition`.
        rewards: reward of each rollout, shape (T, N).
        weights: importance weight of each, shape (T, N).
        flip_rate: q, for outcome noise.
        groups: design → task → groups, for transition noise.
    """

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
    """Return the rows of `probe_drift` of one checkpoint under one noise, without the checkpoint.

    Both designs have one mean-centred mean gradient. Standardized ones may differ: their progress is measured
    along that one.
    """
    rows = []
    for estimator, designs in sums.items():
        is_common = estimator == MC
        for batch in steps.batches:
            found = drift_interval(
                designs[PAIRED],
                designs[INDEPENDENT],
                batch,
                ADAM,
                along=None if is_common else sums[MC][INDEPENDENT],
                common_mean=is_common,
                level=steps.level,
            )
            figures = {
                "drift_paired": found.paired.value,
                "drift_independent": found.independent.value,
                "ratio": found.ratio.value,
                "corrected": found.ratio.corrected,
                "low": found.ratio.low,
                "high": found.ratio.high,
            }
            rows.append(
                {"noise": noise, "estimator": estimator, "prompts_per_step": batch, "level": steps.level}
                | {name: _rounded(value) for name, value in figures.items()}
            )
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
