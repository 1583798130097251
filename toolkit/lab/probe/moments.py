"""Moments of the group gradient task by task: by estimator and design, from rewards and Gram matrices.

MC is the mean-centred estimator, weighted 1/G. SW is standardized and importance-weighted; its fixed
normalizer T_ref is a constant of the checkpoint and divides its traces and norms later.

Source:
    Paper sec:probe and app:probe, "Estimators".
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import outcome_forms, outcome_moments, regrouped_forms, regrouped_moments
from toolkit.estimators.moments import GroupMoments
from toolkit.lab.probe.design import COMPARED, INDEPENDENT, OUTCOME, PAIRED, Listed

MC, SW = "MC", "SW"
ESTIMATORS = (MC, SW)
ByEstimator = Mapping[str, Mapping[str, GroupMoments]]
"""Estimator → design → moments."""


def moments(
    noise: str,
    rewards: NDArray[np.float64],
    weights: NDArray[np.float64],
    gram: NDArray[np.float64],
    *,
    flip_rate: float,
    groups: Listed | None,
) -> ByEstimator:
    """Return estimator → design → moments."""
    by_estimator: dict[str, dict[str, GroupMoments]] = {}
    positions = _positions(groups, len(rewards))
    for estimator in ESTIMATORS:
        standardized = estimator == SW
        weighted = weights if standardized else None
        if noise == OUTCOME:
            both = outcome_moments(rewards, gram, flip_rate, weights=weighted, standardized=standardized)
            by_estimator[estimator] = {PAIRED: both.paired, INDEPENDENT: both.independent}
            continue
        by_estimator[estimator] = {
            design: regrouped_moments(rewards, gram, at, weights=weighted, standardized=standardized)
            for design, at in positions.items()
        }
    return by_estimator


def forms(
    noise: str,
    rewards: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    flip_rate: float,
    groups: Listed | None,
) -> Mapping[str, Mapping[str, NDArray[np.float64]]]:
    """Return estimator → design → second moments as forms in a task's scores, shape (T, N, N).

    Of both designs that learning is compared under: the stratified one trains nobody. Arguments and errors
    as of `moments`.
    """
    by_estimator: dict[str, dict[str, NDArray[np.float64]]] = {}
    positions = _positions(groups, len(rewards))
    for estimator in ESTIMATORS:
        standardized = estimator == SW
        weighted = weights if standardized else None
        if noise == OUTCOME:
            both = outcome_forms(rewards, flip_rate, weights=weighted, standardized=standardized)
            by_estimator[estimator] = {PAIRED: both.paired, INDEPENDENT: both.independent}
            continue
        by_estimator[estimator] = {
            design: regrouped_forms(rewards, positions[design], weights=weighted, standardized=standardized)
            for design in COMPARED
        }
    return by_estimator


def _positions(groups: Listed | None, tasks: int) -> dict[str, NDArray[np.int64]]:
    return {
        design: np.array([by_task[task] for task in range(tasks)])
        for design, by_task in (groups or {}).items()
    }
