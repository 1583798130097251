"""From evidence to figures: both sides of the condition, covariance traces by design, mean gradients.

Every figure follows from the evidence alone; nothing is played or scored here.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import exact_conditions, pooled_trace
from toolkit.estimators.taskwise import PooledTrace
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, OUTCOME, PAIRED, STRATIFIED
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.moments import ESTIMATORS, MC, SW, ByEstimator
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """What one estimator gives under one noise."""

    second: dict[str, Array]  # design → E‖g_t‖² of each task, shape (T,), in score² (SW: score²/token²)
    # (design, design) → inner products of the tasks' mean gradients, shape (T, T)
    products: dict[tuple[str, str], Array]
    contrasts: dict[str, float]  # design → variance of a reward contrast, in reward²

    def trace(self, design: str, counts: Array | None = None) -> PooledTrace:
        """Return the pooled trace of a design, or one a resample of tasks."""
        return pooled_trace(self.second[design], self.products[design, design], counts)


@dataclass(frozen=True)
class Sides:
    """Both sides of the exact condition, clean group by clean group."""

    successes: NDArray[np.int64]  # true successes, shape (T,)
    left: Array  # ‖g_c‖², shape (T,), in score²
    right: Array  # score spread of the successes over G², shape (T,), in score²


def estimates(evidence: GramEvidence, by_design: ByEstimator, reference_tokens: float) -> dict[str, Estimate]:
    """Return estimator → what it gives."""
    designs = DESIGNS[evidence.noise]
    by_estimator = {}
    for estimator in ESTIMATORS:
        scale = reference_tokens**2 if estimator == SW else 1.0
        products = evidence.products[estimator]
        by_estimator[estimator] = Estimate(
            {design: by_design[estimator][design].second / scale for design in designs},
            {
                (design, other): products[i, :, j, :] / scale
                for i, design in enumerate(designs)
                for j, other in enumerate(designs)
            },
            {design: float(by_design[estimator][design].contrast.mean()) for design in designs},
        )
    return by_estimator


def sides(evidence: GramEvidence) -> Sides:
    """Return both sides of the exact condition for every clean group.

    Source:
        Paper eq:condition, per group; averaged over groups before a ratio is taken.
    """
    left, right = exact_conditions(evidence.rewards, evidence.gram)
    # Both are sums of squares, which rounding must not make negative.
    return Sides(evidence.rewards.sum(axis=1).astype(int), np.maximum(left, 0.0), np.maximum(right, 0.0))


def probe_row(evidence: GramEvidence, estimator: str, estimate: Estimate, flip_rate: float) -> Row:
    """Return the figures of a row of `probe`, without the checkpoint that they belong to."""
    row: Row = {"noise": evidence.noise, "estimator": estimator}
    row |= dict.fromkeys(("condition_left", "condition_right", "identity_residual"))
    pooled = {design: estimate.trace(design) for design in estimate.second}
    if (evidence.noise, estimator) == (OUTCOME, MC):
        both = sides(evidence)
        left, right = float(both.left.mean()), float(both.right.mean())
        difference = float(pooled[PAIRED].total - pooled[INDEPENDENT].total)
        row["condition_left"], row["condition_right"] = left, right
        row["identity_residual"] = difference - flip_rate * (1 - flip_rate) * (left - right)
    for design in (PAIRED, INDEPENDENT, STRATIFIED):
        trace = pooled.get(design)
        row |= {
            f"trace_{design}": None if trace is None else _floored(trace.total),
            f"trace_within_{design}": None if trace is None else _floored(trace.within),
            f"trace_between_{design}": None if trace is None else _floored(trace.between),
            f"mean_norm_{design}": None if trace is None else math.sqrt(max(0.0, float(trace.squared_norm))),
            f"reward_contrast_{design}": estimate.contrasts.get(design),
        }
    row["cosine"] = _cosine(estimate)
    return row


def _floored(value: Array) -> float:
    """Return a variance, which rounding must not make negative."""
    return max(0.0, float(value))


def _cosine(estimate: Estimate) -> float | None:
    """Return the cosine of the pooled mean gradients; None where one of them is zero."""
    own = [float(estimate.products[design, design].sum()) for design in (PAIRED, INDEPENDENT)]
    if min(own) <= 0:
        return None
    inner = float(estimate.products[PAIRED, INDEPENDENT].sum())
    return max(-1.0, min(1.0, inner / math.sqrt(own[0] * own[1])))
