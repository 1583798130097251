"""Numbers in, numbers out. Names are loaded when they are used: a verdict needs no numpy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "auc": "area",
    "auc_weights": "area",
    "bandit": "bernoulli",
    "bca_interval": "bca",
    "bootstrap_variance": "bootstrap",
    "contrast_variance": "contrast",
    "counted_bootstrap": "counted",
    "crossed_bootstrap": "bootstrap",
    "crossed_bootstraps": "bootstrap",
    "debiased_between_share": "pooled",
    "draw_weights": "bootstrap",
    "enumerated_outcome_moments": "outcome",
    "exact_condition": "condition",
    "exact_conditions": "condition",
    "group_gradient": "advantages",
    "leave_one_out": "advantages",
    "leave_one_out_means": "secondary",
    "luck_share": "luck",
    "luck_share_interval": "luck",
    "luck_share_null_bias": "luck",
    "mean_centred": "advantages",
    "mean_luck_share": "luck",
    "minimal_detectable_effect": "secondary",
    "nested_bootstrap": "bootstrap",
    "noise_within_share": "pooled",
    "norm_over_floor": "pooled",
    "orthogonal_condition": "condition",
    "outcome_moments": "outcome",
    "pooled_trace": "pooled",
    "regrouped_moments": "regrouping",
    "reward_contrast": "contrast",
    "seed_enumerated_bootstrap": "bootstrap",
    "sign_flip": "secondary",
    "spurious_rate": "spurious",
    "standardized": "advantages",
    "steps_to_threshold": "threshold",
    "success_probability": "bernoulli",
    "t_interval": "secondary",
    "t_quantile": "secondary",
    "task_differences": "differences",
    "task_uncertainties": "taskwise",
}

__all__ = [  # noqa: PLE0604 - the names are the keys above
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    """Return an estimator, imported now."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
