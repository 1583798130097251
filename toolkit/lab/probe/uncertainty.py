"""What the plain figures of a probe do not say: how far other tasks would move them, and what noise gives.

Tasks are the unit, all their groups together. A plug-in trace over few groups a task holds part of the noise
within tasks as if it lay between them; the mean gradient of many groups has a length of its own without any
gradient. Each such figure stands beside what pure noise would give, and beside its debiased value.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import debiased_between_share, noise_within_share, norm_over_floor, task_uncertainties
from toolkit.estimators.taskwise import Figures, PooledTrace
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, OUTCOME, PAIRED, STRATIFIED
from toolkit.lab.probe.summary import Estimate, Sides
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]

DIGITS = 6
"""Significant digits of what was resampled: more than its Monte Carlo error leaves."""

CONDITION = "condition_ratio"
RATIO, WITHIN_RATIO, STRATIFIED_RATIO = "trace_ratio", "within_ratio", "trace_ratio_stratified"
SHARE, FLOOR = "within_share", "norm_over_floor"
RESAMPLED = ("low", "high", "standard_error", "corrected")


class Resampling(NamedTuple):
    """How tasks are resampled."""

    level: float  # confidence level
    resamples: int  # resamples of the bootstrap
    rng_seed: int  # its seed
    groups: int  # disjoint groups a task, N, that the scored rollouts make


def interval_rows(
    noise: str, estimator: str, estimate: Estimate, both: Sides | None, how: Resampling
) -> list[Row]:
    """Return the rows of `probe_intervals` of one checkpoint, noise and estimator, without the checkpoint."""
    designs, tasks = DESIGNS[noise], len(estimate.second[PAIRED])

    def figures(counts: Array) -> dict[str, Array]:
        traces = {design: estimate.trace(design, counts) for design in designs}
        values = {}
        if both is not None:
            # Not by the library that starts threads for it, as in `pooled_trace`.
            left, right = (np.einsum("bt,t->b", counts, side) for side in (both.left, both.right))
            values[CONDITION] = left / right
        values |= {
            RATIO: traces[PAIRED].total / traces[INDEPENDENT].total,
            WITHIN_RATIO: traces[PAIRED].within / traces[INDEPENDENT].within,
        }
        if STRATIFIED in traces:
            values[STRATIFIED_RATIO] = traces[PAIRED].total / traces[STRATIFIED].total
        return values | {f"{SHARE}_{name}": trace.within / trace.total for name, trace in traces.items()}

    plain = {design: estimate.trace(design) for design in designs}
    rows = resampled_rows(figures, tasks, how)
    if noise != OUTCOME:
        rows = [row | _share_beside(row["figure"], plain, tasks, how.groups) for row in rows]
    rows += [
        floor_row(design, plain[design].squared_norm, plain[design].between, tasks) for design in designs
    ]
    common = {"noise": noise, "estimator": estimator, "tasks": tasks, "level": how.level}
    return [common | row for row in rows]


def resampled_rows(figures: Figures, tasks: int, how: Resampling) -> list[Row]:
    """Return a row a figure, resampled; one that some resample does not define has its value alone."""
    figures_of = task_uncertainties(
        figures, tasks, level=how.level, resamples=how.resamples, rng_seed=how.rng_seed
    )
    return [
        {
            "figure": name,
            **{
                part: None if (number := getattr(figure, part)) is None else _rounded(number)
                for part in ("value", *RESAMPLED)
            },
            "pure_noise": None,
            "debiased": None,
        }
        for name, figure in figures_of.items()
    ]


def _share_beside(figure: str, plain: Mapping[str, PooledTrace], tasks: int, groups: int) -> Row:
    """Return what stands beside a within-task share: that of pure noise, and the debiased one."""
    design = figure.removeprefix(f"{SHARE}_")
    if design not in plain or not float(plain[design].within) > 0:
        return {}
    between = debiased_between_share(float(plain[design].within), float(plain[design].between), tasks, groups)
    return {"pure_noise": _rounded(noise_within_share(tasks, groups)), "debiased": _rounded(1 - between)}


def floor_row(design: str, squared_norm: Array, between: Array, tasks: int) -> Row:
    """Return the squared norm of a mean gradient over its sampling variance, tasks being the unit.

    The mean is over tasks: its variance is the spread of the tasks' mean gradients over their number,
    whatever makes them differ. What lies beyond the noise is a share of the squared norm.
    """
    row: Row = {
        "figure": f"{FLOOR}_{design}",
        **dict.fromkeys(("value", *RESAMPLED, "pure_noise", "debiased")),
    }
    if not float(between) > 0:
        return row
    value, pure = norm_over_floor(float(squared_norm), float(between), tasks), tasks / (tasks - 1)
    return row | {
        "value": _rounded(value),
        "pure_noise": _rounded(pure),
        "debiased": _rounded(1 - pure / value) if value > 0 else None,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
