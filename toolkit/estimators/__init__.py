"""Numbers in, numbers out: plain arrays, plain numbers, and a source for every formula."""

from toolkit.estimators.advantages import group_gradient, leave_one_out, mean_centred, standardized
from toolkit.estimators.bootstrap import (
    bootstrap_variance,
    counted_bootstrap,
    crossed_bootstrap,
    crossed_bootstraps,
    draw_weights,
    nested_bootstrap,
    seed_enumerated_bootstrap,
)
from toolkit.estimators.curves import auc, auc_weights, steps_to_threshold, task_differences
from toolkit.estimators.luck import luck_share, luck_share_interval, luck_share_null_bias, mean_luck_share
from toolkit.estimators.moments import enumerated_outcome_moments, outcome_moments, regrouped_moments
from toolkit.estimators.secondary import (
    bca_interval,
    chi_square_quantile,
    chi_square_tail,
    leave_one_out_means,
    minimal_detectable_effect,
    sign_flip,
    t_interval,
    t_quantile,
)
from toolkit.estimators.taskwise import (
    debiased_between_share,
    noise_within_share,
    norm_over_floor,
    pooled_trace,
    task_uncertainties,
)
from toolkit.estimators.theory import (
    bandit,
    contrast_variance,
    exact_condition,
    exact_conditions,
    orthogonal_condition,
    reward_contrast,
    spurious_rate,
    success_probability,
)

__all__ = [
    "auc",
    "auc_weights",
    "bandit",
    "bca_interval",
    "bootstrap_variance",
    "chi_square_quantile",
    "chi_square_tail",
    "contrast_variance",
    "counted_bootstrap",
    "crossed_bootstrap",
    "crossed_bootstraps",
    "debiased_between_share",
    "draw_weights",
    "enumerated_outcome_moments",
    "exact_condition",
    "exact_conditions",
    "group_gradient",
    "leave_one_out",
    "leave_one_out_means",
    "luck_share",
    "luck_share_interval",
    "luck_share_null_bias",
    "mean_centred",
    "mean_luck_share",
    "minimal_detectable_effect",
    "nested_bootstrap",
    "noise_within_share",
    "norm_over_floor",
    "orthogonal_condition",
    "outcome_moments",
    "pooled_trace",
    "regrouped_moments",
    "reward_contrast",
    "seed_enumerated_bootstrap",
    "sign_flip",
    "spurious_rate",
    "standardized",
    "steps_to_threshold",
    "success_probability",
    "t_interval",
    "t_quantile",
    "task_differences",
    "task_uncertainties",
]
