"""What an estimator refuses: the function, its arguments, and a part of what it says of them."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from math import inf, nan

import numpy as np
import pytest

from toolkit import estimators as e
from toolkit.estimators.moments import LARGEST_ENUMERATION, LARGEST_GROUP

ONE, EYE, EYES, PAIR = Fraction(1), np.eye(2)[None], np.eye(3)[None], [[[0, 1]]]
WEIGHTS, TABLE = e.draw_weights(3, 64, 10, 1), np.ones((3, 64))
HOLED = np.where(np.arange(64) == 3, nan, TABLE)
OUTCOMES = np.zeros((3, 6, 10, 2))
SIXTH = (1 / 6,) * 6
REWARDS = np.eye(8)[None].repeat(3, axis=0)
FEW = e.coordinate_moments(np.random.default_rng(0).normal(size=(4, 50)))
OTHER = e.coordinate_moments([[1.0], [2.0]])
SUMS = e.task_sums(np.ones((4, 2)), [0, 1, 2, 3])
OWN = [0.11, -0.05, 0.06, -0.02, 0.02, -0.02, 0.05, -0.01, 0.0]

ADVANTAGES = (e.mean_centred, e.leave_one_out, e.standardized)
RESAMPLED = (
    lambda d: e.crossed_bootstrap(d, WEIGHTS, 0.95),
    lambda d: e.crossed_bootstraps([TABLE, d], WEIGHTS, 0.95),
    lambda d: e.nested_bootstrap(d, 10, 1, 0.95),
    lambda d: e.seed_enumerated_bootstrap(d, WEIGHTS, 0.95),
    e.bootstrap_variance,
)
OF_TASKS = (
    partial(e.clustered_t_interval, denominator=1, level=0.95),
    partial(e.clustered_bca_interval, denominator=1, drawn=e.draw_tasks(2, 50, 1), level=0.95),
)
EXACT = (e.sign_flip_test, e.wilcoxon_test, e.mcnemar_test)
MASKED = (e.outcome_moments, e.enumerated_outcome_moments)


def ratio(own: object = OWN, shared: object = OWN, level: float = 0.95) -> object:
    return e.variance_ratio(own, shared, level, 99, 1)


def uncertainties(tasks: int = 4, level: float = 0.95, resamples: int = 10) -> object:
    return e.task_uncertainties(dict, tasks, level=level, resamples=resamples, rng_seed=1)


def masks(outcomes: object, gram: object, flip_rate: float = 0.1, weights: object = None) -> list[object]:
    """Return one row for each of the two that list or sum masks."""
    return [partial(f, outcomes, gram, flip_rate, weights=weights) for f in MASKED]


def rows(function: Callable[..., object], problem: str, *arguments: tuple[object, ...]) -> list[object]:
    """Return a row for each set of arguments that a function has the same to say of."""
    return [(function, given, problem) for given in arguments]


REFUSED = [
    *((f, (r,), "at least two rollouts") for f, r in product(ADVANTAGES, ([], [1.0], [[1.0]], 1.0))),
    *((f, ([1.0, bad],), "not finite") for f, bad in product(ADVANTAGES, (nan, inf))),
    (partial(e.standardized, epsilon=0), ([0, 1],), "epsilon"),
    *rows(e.group_gradient, "expected advantages", ([1] * 3, np.ones((4, 2))), ([], np.ones((0, 2)))),
    (e.group_gradient, ([1] * 3, [1] * 3), "expected advantages"),
    (partial(e.importance_weights, level="token_mask"), ([0.0],), "expected sequence_mask"),
    (partial(e.importance_weights, most=0.0), ([0.0],), "a number"),
    (partial(e.importance_weights, most=nan), ([0.0],), "a number"),
    (e.importance_weights, ([nan],), "a number"),
    *((f, (np.ones(shape),), "two of each") for f in RESAMPLED for shape in ((1, 64), (3, 1), 64)),
    *((f, (HOLED,), "not finite") for f in RESAMPLED),
    *((f, (np.ones(shape),), "3 × 64") for f in RESAMPLED[:2] for shape in ((4, 64), (3, 63))),
    (e.crossed_bootstrap, (TABLE, WEIGHTS, 1.0), "level"),
    (e.draw_weights, (1, 64, 10, 1), "two seeds and tasks"),
    (e.nested_bootstrap, (TABLE, 0, 1, 0.95), "a resample"),
    (e.seed_enumerated_bootstrap, (np.ones((9, 64)), WEIGHTS, 0.95), "at most 8 seeds"),
    (e.counted_bootstrap, (TABLE / 2, 20, WEIGHTS, 0.95), "whole numerators"),
    (e.counted_bootstrap, (TABLE, 0, WEIGHTS, 0.95), "whole numerators"),
    (e.counted_bootstrap, (2.0**50 * TABLE, 1, WEIGHTS, 0.95), "too large"),
    (e.counted_bootstrap, ([[2.0**51, 0], [0, 0]], 1, e.draw_weights(2, 2, 9, 7), 0.95), "too large"),
    *((f, (totals,), "expected two tasks|expected a finite") for f in OF_TASKS for totals in ([1], [])),
    *((f, ([1.0, bad],), "finite") for f, bad in product(OF_TASKS, (nan, inf))),
    *((partial(f, denominator=0), ([1, 2],), "expected two tasks") for f in OF_TASKS),
    *((partial(f, level=level), ([1, 2],), "expected two tasks") for f in OF_TASKS for level in (0, 1)),
    *rows(e.t_interval, "two differences", ([],), ([1.0],)),
    (e.t_interval, ([1.0, nan],), "not finite"),
    (e.t_interval, ([0.0, 1.0], 1.0), "level"),
    (e.sign_flip, ([ONE],), "found 1"),
    (e.sign_flip, ([ONE] * 21,), "found 21"),
    (e.leave_one_out_means, ([ONE],), "found 1"),
    (e.t_quantile, (0.5, 0), "degree"),
    *rows(e.minimal_detectable_effect, "expected", (0, 3, 0.9, 0.8), (nan, 3, 0.9, 0.8), (1, 1, 0.9, 0.8)),
    *rows(e.minimal_detectable_effect, "between", (0.1, 3, 1, 0.8), (0.1, 3, 0.9, 0)),
    (e.bca_interval, (TABLE, WEIGHTS, 0.95), "alike"),
    *((f, ([],), "one difference") for f in EXACT),
    *((f, ([1], "other"), "two-sided, greater, less") for f in EXACT),
    (e.sign_flip_test, ([10**9 + n for n in range(31)],), "too many different sums"),
    (e.mcnemar_test, ([2],), "binary"),
    (partial(e.wilcoxon_test, zeros="split"), ([1],), "dropped or ranked"),
    *rows(ratio, "8 seeds at least", (OWN[:7], OWN[:7])),
    *rows(ratio, "the same of both", (OWN[:8], OWN)),
    *rows(ratio, "found shapes", ([OWN], [OWN])),
    *rows(ratio, "missing", ([*OWN[:8], nan], OWN)),
    *rows(ratio, "never vary", (OWN, [0.1] * 9)),
    *rows(ratio, "between 0 and 1", (OWN, OWN, 1.0)),
    *rows(e.auc_weights, "step", ((),), ((0,),), ((0, 0),), ((20, 0),)),
    *rows(e.auc, "zip", ([ONE], (0, 1))),
    *rows(e.steps_to_threshold, "zip", ([ONE], (0, 1), ONE / 2)),
    *(
        (e.task_differences, (OUTCOMES, np.delete(OUTCOMES, 0, axis), SIXTH), f"differ in their {name}")
        for axis, name in enumerate(("seed pairs", "evaluated steps", "tasks", "schedules"))
    ),
    *(
        (e.task_differences, (np.zeros(shape), np.zeros(shape), SIXTH), "at least one of each")
        for shape in ((3, 6, 10), (3, 6, 0, 2), (3, 6, 10, 0))
    ),
    *((e.task_differences, (OUTCOMES, OUTCOMES, w), "finite weights") for w in ((), (1.0,), (nan,) * 6)),
    *((e.luck_share, (np.ones(shape),), "expected schedules") for shape in ((1, 8), (8, 1), 8)),
    (e.luck_share, (np.full((2, 2), nan),), "not finite"),
    (e.mean_luck_share, (np.ones((8, 8)),), "expected tasks"),
    (e.luck_share_null_bias, (1, 8, 0.5, 1), "expected two schedules"),
    *rows(e.luck_share_interval, "expected a resample", (REWARDS, 0, 1, 0.95), (REWARDS, 10, 1, 1.0)),
    *((e.luck_share_interval, (np.ones(s), 10, 1, 0.9), "expected") for s in ((3, 1, 8), (3, 8, 1))),
    *((f, (), "expected outcomes") for f in masks([1, 0], np.eye(2))),
    *((f, (), "expected outcomes") for f in masks(np.zeros((0, 2)), np.zeros((0, 2, 2)))),
    *((f, (), "2 <= G <= 64") for f in masks([[1]], [[[1]]])),
    *((f, (), "2 <= G") for f in masks(np.zeros((1, LARGEST_GROUP + 1)), np.eye(LARGEST_GROUP + 1)[None])),
    *((f, (), "a Gram matrix a group") for f in masks([[1, 0]], EYES)),
    *((f, (), "a weight a rollout") for f in masks([[1, 0]], EYE, weights=[[1, 1, 1]])),
    *((f, (), "outcomes are 0 or 1") for f in masks([[1, 0.5]], EYE)),
    *((f, (), "not finite") for f in masks([[1, 0]], EYE * nan)),
    *((f, (), "not finite") for f in masks([[1, 0]], EYE, weights=[[1, inf]])),
    *((f, (), "rate") for f in masks([[1, 0]], EYE, 1.1)),
    *((f, (), "at most 16") for f in masks([[1] * (LARGEST_ENUMERATION + 1)], np.eye(17)[None])[1:]),
    *rows(e.regrouped_moments, "does not have", ([[1, 0, 1]], EYES, [[[0, 3]]])),
    *rows(e.regrouped_moments, "does not have", ([[1, 0, 1]], EYES, [[[-1, 0]]])),
    *rows(e.regrouped_moments, "or one twice", ([[1, 0, 1]], EYES, [[[0, 1], [2, 2]]])),
    *rows(e.regrouped_moments, "groups of 4 cannot", ([[1, 0, 1]], EYES, [[[0, 1, 2, 0]]])),
    *rows(e.regrouped_moments, "0 groups", ([[1, 0, 1]], EYES, np.zeros((1, 0, 2), dtype=int))),
    *rows(e.regrouped_moments, "of positions", ([[1, 0, 1]], EYES, [[[0.0, 1.0]]])),
    *rows(e.regrouped_moments, "of positions", ([[1, 0, 1]], EYES, PAIR * 2)),
    *rows(e.regrouped_moments, "expected rewards", ([1, 0, 1], EYES[0], PAIR), ([[1, 0, 1]], EYE, PAIR)),
    *rows(e.regrouped_moments, "finite", ([[1, 0, nan]], EYES, PAIR)),
    (partial(e.regrouped_moments, weights=[[1, 1, nan]]), ([[1, 0, 1]], EYES, PAIR), "finite"),
    (partial(e.regrouped_moments, weights=[[1, 1]]), ([[1, 0, 1]], EYES, PAIR), "finite weight"),
    *rows(e.signal_variance, "4 tasks", (np.eye(3),), (np.eye(5), [0, 0, 1, 1, 2])),
    *rows(e.signal_variance, r"\(N, N\)", (np.ones((4, 5)),)),
    *rows(e.signal_variance, "whole numbers", (np.eye(4), [0.0, 1.0, 2.0, 3.0])),
    *rows(e.signal_variance, "not finite", (np.full((4, 4), nan),)),
    *rows(e.signal_variance, "not symmetric", (np.triu(np.ones((4, 4))),)),
    (partial(e.signal_interval, rng_seed=1), (np.eye(5), range(5), [True] * 4), "a design for each"),
    (partial(e.signal_interval, rng_seed=1), (np.eye(5), [0, 1, 2, 3, 3], [1] * 4 + [0]), "no group of one"),
    *rows(e.coordinate_moments, r"\(N, P\)", ([1.0, 2.0],)),
    *rows(e.coordinate_moments, "two tasks", ([[1.0]],), ([[1.0], [2.0]], [3, 3])),
    *rows(e.coordinate_moments, "whole numbers", ([[1.0], [2.0]], [3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *rows(e.coordinate_moments, "not finite", ([[1.0], [nan]],)),
    *rows(e.task_sums, "not finite", ([[1.0], [inf]], [0, 1])),
    *rows(e.moments_of_sums, "expected sums", (2, [1.0], [1.0, 2.0])),
    *rows(e.moments_of_sums, "smaller than any", (2, [4.0, 1.0], [1.0, 9.0])),
    *rows(FEW.merged, "coordinates", (OTHER,)),
    *rows(e.drift, "expected one of adam, gradient, sign", (FEW, 2, "lion")),
    *rows(e.drift, "at least one group", (FEW, 0), (FEW, nan)),
    *((partial(e.drift, along=a), (FEW, 2), "finite direction") for a in ([1.0], [inf] * 50)),
    *rows(e.exact_drift, "variances >= 0", ([1.0, 1.0], [-1.0, 1.0], 2), ([1.0], [1.0, 2.0], 2)),
    *rows(e.drift_ratio, "coordinates", (FEW, OTHER, 2)),
    *rows(e.drift_interval, "tasks × coordinates", (SUMS, e.task_sums(np.ones((3, 2)), [0, 1, 2]), 2)),
    *rows(e.pooled_trace, "expected moments", ([], np.eye(0)), ([1, 2], np.eye(3)), ([[1, 2]], np.eye(2))),
    *rows(e.pooled_trace, "not finite", ([1, nan], np.eye(2)), ([1, 2], [[1, inf], [0, 1]])),
    *rows(e.pooled_trace, "expected counts", ([1, 2], np.eye(2), [[1, 1, 1]])),
    *rows(e.noise_within_share, "expected", (1, 8), (16, 0)),
    *rows(e.debiased_between_share, "expected", (1, 1, 1, 8), (1, 1, 16, 1), (0, 1, 16, 8)),
    *rows(e.norm_over_floor, "expected", (1, 0, 8), (1, 1, 1)),
    *rows(uncertainties, "expected two tasks", (1,), (4, 0.0), (4, 1.0), (4, nan), (4, 0.9, 0)),
    *((partial(e.task_jackknife, level=at), (dict, 4), "expected two tasks") for at in (0.0, 1.0, nan)),
    (partial(e.task_jackknife, level=0.95), (dict, 1), "expected two tasks"),
    *rows(e.spurious_rate, "found", (-0.1, 8), (1.1, 8), (0.1, 0)),
    *rows(e.bandit, "found", (1.5, 8, 0.1), (0.5, 8, -0.1), (0.5, 1, 0.1), (0.5, 5000, 0.1)),
    *rows(e.success_probability, "finite", (nan,)),
    *rows(e.reward_contrast, "reward|expected", ([],), ([[1.0]],), ([1.0, 2.0],), ([[1.0, nan]],)),
    *rows(e.contrast_variance, "variances", (-0.1, 1), (1, -0.1), (nan, 1), (1, inf)),
    *rows(e.exact_condition, "expected outcomes", ([1, 0], np.eye(3)), ([], np.eye(0)), (1, np.eye(1))),
    *rows(e.exact_condition, "expected outcomes", (np.zeros((0, 2)), np.eye(2))),
    *rows(e.exact_condition, "outcomes are", ([0.5, 1], np.eye(2)), ([1, 0], [[1, nan], [0, 1]])),
    *rows(e.orthogonal_condition, "0 <= k <= G", (9, 8), (-1, 8), (0, 0)),
    *rows(e.silent_condition, "0 <= k <= G", (9, 8)),
    *rows(e.effective_group_size, "found", (8, -0.1), (0, 0.1)),
    *rows(e.contrast_replicates, "found", (1.1,)),
    *rows(e.equal_variance_batch, "found", (0, 0.5), (8, 0), (8, inf), (8, nan)),
]


@pytest.mark.parametrize(("function", "arguments", "problem"), REFUSED)
def test_what_does_not_fit_is_refused(function, arguments, problem) -> None:
    with pytest.raises(ValueError, match=problem):
        function(*arguments)


def test_a_missing_episode_is_named_by_its_place() -> None:
    second = OUTCOMES.copy()
    second[1, 2, 3, 0] = inf
    with pytest.raises(ValueError, match=r"second arm .* pairs 1, evaluated steps 2, tasks 3, schedules 0"):
        e.task_differences(OUTCOMES, second, SIXTH)
