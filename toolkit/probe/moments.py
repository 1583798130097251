"""Moments of the group gradient task by task: by estimator and design, from rewards and Gram matrices.

MC is the mean-centred estimator, weighted 1/G. SW is standardized and importance-weighted; its fixed
normalizer T_ref is a constant of the checkpoint and divides its traces and norms later.

Source:
    Paper sec:probe and app:probe, "Estimators".
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import outcome_moments, regrouped_moments
from toolkit.probe.design import INDEPENDENT, OUTCOME, PAIRED, Groups

MC, SW = "MC", "SW"
ESTIMATORS = (MC, SW)


@dataclass(frozen=True)
class Moments:
    """The moments of one estimator under one design.

    Args:
        second: E‖g_t‖², shape (T,), in score².
        coefficients: c with E[g_t] = Σ_i c_ti S_ti, shape (T, N).
        contrast: variance of a reward contrast within a group, shape (T,), in reward².
    """

    second: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    contrast: NDArray[np.float64]


def moments(
    noise: str,
    rewards: NDArray[np.float64],
    weights: NDArray[np.float64],
    gram: NDArray[np.float64],
    *,
    flip_rate: float,
    groups: Mapping[str, Mapping[int, Groups]] | None,
) -> dict[str, dict[str, Moments]]:
    """Return estimator → design → moments.

    Args:
        noise: `outcome` or `transition`.
        rewards: reward of each rollout, shape (T, N); the true outcomes for outcome noise.
        weights: importance weight of each rollout, shape (T, N).
        gram: inner products of each task's scores, shape (T, N, N).
        flip_rate: q, for outcome noise.
        groups: design → task → groups, for transition noise.

    Raises:
        ValueError: what the estimators refuse.
    """
    return {
        estimator: (
            _outcome(rewards, weights, gram, flip_rate, estimator)
            if noise == OUTCOME
            else _transition(rewards, weights, gram, groups or {}, estimator)
        )
        for estimator in ESTIMATORS
    }


def _outcome(
    rewards: NDArray[np.float64],
    weights: NDArray[np.float64],
    gram: NDArray[np.float64],
    flip_rate: float,
    estimator: str,
) -> dict[str, Moments]:
    weighted = weights if estimator == SW else None
    both = outcome_moments(rewards, gram, flip_rate, weights=weighted, standardized=estimator == SW)
    return {
        name: Moments(of_design.second, of_design.coefficients, of_design.contrast)
        for name, of_design in ((PAIRED, both.paired), (INDEPENDENT, both.independent))
    }


def _transition(
    rewards: NDArray[np.float64],
    weights: NDArray[np.float64],
    gram: NDArray[np.float64],
    groups: Mapping[str, Mapping[int, Groups]],
    estimator: str,
) -> dict[str, Moments]:
    return {
        design: Moments(regrouped.second, regrouped.coefficients, regrouped.contrast)
        for design, by_task in groups.items()
        for regrouped in (
            regrouped_moments(
                rewards,
                gram,
                np.array([by_task[task] for task in range(len(rewards))]),
                weights=weights if estimator == SW else None,
                standardized=estimator == SW,
            ),
        )
    }
