"""Numbers in, numbers out: plain arrays, plain numbers, and a source for every formula.

For all of them: letters in brackets are shapes, (S, T) of seeds and tasks, G rollouts of a group, P
coordinates of a gradient, B resamples. `level` is a confidence level in (0, 1), `resamples` a number >= 1,
`rng_seed` an explicit seed >= 0: the same seed gives the same draws. ValueError says what does not fit: a
shape, too few of something, a value that is missing or not finite, a number outside its range.

Names are loaded when they are used: a verdict needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.estimators.advantages import (
        group_gradient,
        importance_weights,
        leave_one_out,
        mean_centred,
        standardized,
    )
    from toolkit.estimators.bootstrap import (
        bootstrap_variance,
        counted_bootstrap,
        crossed_bootstrap,
        crossed_bootstraps,
        draw_seeds,
        draw_tasks,
        draw_weights,
        nested_bootstrap,
        percentile_interval,
        seed_enumerated_bootstrap,
    )
    from toolkit.estimators.clustered import clustered_bca_interval, clustered_t_interval
    from toolkit.estimators.coordinates import coordinate_moments, moments_of_sums, task_sums
    from toolkit.estimators.coupling import coupled_difference, variance_ratio
    from toolkit.estimators.curves import auc, auc_weights, steps_to_threshold, task_differences
    from toolkit.estimators.drifts import bandit_drift, drift, drift_interval, drift_ratio, exact_drift
    from toolkit.estimators.exact_tests import (
        benjamini_hochberg,
        holm,
        mcnemar_test,
        sign_flip_test,
        wilcoxon_test,
    )
    from toolkit.estimators.luck import luck_share, luck_share_interval, luck_share_null_bias, mean_luck_share
    from toolkit.estimators.moments import (
        enumerated_outcome_moments,
        outcome_forms,
        outcome_moments,
        regrouped_forms,
        regrouped_moments,
    )
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
    from toolkit.estimators.signal import signal_interval, signal_variance
    from toolkit.estimators.taskwise import (
        debiased_between_share,
        noise_within_share,
        norm_over_floor,
        pooled_trace,
        task_jackknife,
        task_uncertainties,
    )
    from toolkit.estimators.theory import (
        bandit,
        contrast_replicates,
        contrast_variance,
        effective_group_size,
        equal_variance_batch,
        exact_condition,
        exact_conditions,
        orthogonal_condition,
        reward_contrast,
        silent_condition,
        spurious_rate,
        success_probability,
    )

__all__ = ["group_gradient", "importance_weights", "leave_one_out", "mean_centred", "standardized"]
__all__ += ["bootstrap_variance", "counted_bootstrap", "crossed_bootstrap", "crossed_bootstraps"]
__all__ += ["draw_tasks", "draw_weights", "nested_bootstrap", "seed_enumerated_bootstrap"]
__all__ += ["clustered_bca_interval", "clustered_t_interval"]
__all__ += ["coupled_difference", "variance_ratio"]
__all__ += ["auc", "auc_weights", "steps_to_threshold", "task_differences"]
__all__ += ["contrast_replicates", "effective_group_size", "equal_variance_batch", "silent_condition"]
__all__ += ["bandit_drift", "coordinate_moments", "drift", "drift_interval", "drift_ratio", "exact_drift"]
__all__ += ["moments_of_sums", "signal_interval", "signal_variance", "task_sums"]
__all__ += ["benjamini_hochberg", "holm", "mcnemar_test", "sign_flip_test", "wilcoxon_test"]
__all__ += ["luck_share", "luck_share_interval", "luck_share_null_bias", "mean_luck_share"]
__all__ += ["enumerated_outcome_moments", "outcome_forms", "outcome_moments"]
__all__ += ["regrouped_forms", "regrouped_moments"]
__all__ += ["bca_interval", "chi_square_quantile", "chi_square_tail", "leave_one_out_means"]
__all__ += ["minimal_detectable_effect", "sign_flip", "t_interval", "t_quantile"]
__all__ += ["debiased_between_share", "noise_within_share", "norm_over_floor", "pooled_trace"]
__all__ += ["draw_seeds", "percentile_interval", "task_jackknife", "task_uncertainties"]
__all__ += ["bandit", "contrast_variance", "exact_condition", "exact_conditions", "orthogonal_condition"]
__all__ += ["reward_contrast", "spurious_rate", "success_probability"]

if not TYPE_CHECKING:  # a type checker reads the imports above
    # What a verdict reads comes first.
    _MODULES = ("curves", "bootstrap", "advantages", "luck", "theory", "moments", "secondary", "taskwise")
    _MODULES += ("clustered", "coordinates", "coupling", "drifts", "exact_tests", "signal")

    def __getattr__(name: str) -> Any:
        """Return an estimator; its module is imported now."""
        for module in _MODULES if name in __all__ else ():
            names = vars(import_module(f"{__name__}.{module}"))
            if name in names:
                return names[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted(__all__)
