"""Coordinate moments and drifts: enumerated distributions, explicit pairs, other libraries, known limits."""

import itertools
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from toolkit import estimators
from toolkit.estimators import drifts
from toolkit.estimators.coordinates import CoordinateMoments, TaskSums
from toolkit.estimators.drifts import OPTIMIZERS, DriftInterval

GRADIENTS = arrays.arrays(
    float, st.tuples(st.integers(2, 7), st.integers(1, 5)), elements=st.floats(-8, 8, width=16)
)


def bruteforce_pairs(gradients: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Average the products of gradients of different tasks, pair by pair."""
    products = [
        gradients[i] * gradients[j]
        for i, j in itertools.permutations(range(len(tasks)), 2)
        if tasks[i] != tasks[j]
    ]
    return np.mean(products, axis=0)


@given(GRADIENTS, st.data())
def test_only_products_of_different_tasks_count(gradients: np.ndarray, data: st.DataObject) -> None:
    tasks = np.array([0, 1, *data.draw(st.lists(st.integers(0, 3), min_size=5, max_size=5))])[
        : len(gradients)
    ]
    found = estimators.coordinate_moments(gradients, tasks)
    assert found.squared_mean == pytest.approx(bruteforce_pairs(gradients, tasks), abs=1e-9)
    assert found.squared_mean + found.variance == pytest.approx((gradients**2).mean(axis=0), abs=1e-9)
    assert found.mean == pytest.approx(gradients.mean(axis=0), abs=1e-12)


@given(GRADIENTS)
def test_two_sums_are_enough(gradients: np.ndarray) -> None:
    found = estimators.moments_of_sums(len(gradients), gradients.sum(axis=0), (gradients**2).sum(axis=0))
    own_tasks = estimators.coordinate_moments(gradients, np.arange(len(gradients)))
    assert found.variance == pytest.approx(gradients.var(axis=0, ddof=1), abs=1e-9)
    assert found.squared_mean == pytest.approx(own_tasks.squared_mean, abs=1e-9)
    assert found.of_tasks is found.squares


@given(GRADIENTS, GRADIENTS)
def test_moments_merge_to_those_of_all_groups(one: np.ndarray, other: np.ndarray) -> None:
    width = min(one.shape[1], other.shape[1])
    one, other = one[:, :width], other[:, :width]
    merged = estimators.coordinate_moments(one).merged(estimators.coordinate_moments(other))
    whole = estimators.coordinate_moments(np.vstack([one, other]))
    assert (merged.groups, merged.pairs) == (whole.groups, whole.pairs)
    for name in ("mean", "squared_mean", "variance"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), abs=1e-9)


@given(arrays.arrays(float, 4, elements=st.floats(-5, 5)), arrays.arrays(float, 4, elements=st.floats(0, 9)))
def test_many_groups_leave_the_length_of_every_coordinate(mean: np.ndarray, variance: np.ndarray) -> None:
    for optimizer in ("adam", "sign"):
        assert estimators.exact_drift(mean, variance, math.inf, optimizer) == pytest.approx(
            np.abs(mean).sum(), rel=1e-12, abs=1e-12
        )
    assert estimators.exact_drift(mean, variance, 3, "gradient") == pytest.approx(mean @ mean, rel=1e-12)


def test_adams_drift_is_its_formula() -> None:
    mean, variance = [0.5, -2.0, 0.0, 1.0, 0.0], [1.0, 3.0, 2.0, 0.0, 0.0]
    by_hand = 0.25 / math.sqrt(0.25 + 0.5) + 4 / math.sqrt(4 + 1.5) + 0 + 1 + 0
    assert estimators.exact_drift(mean, variance, 2) == pytest.approx(by_hand, rel=1e-15)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_progress_along_the_mean_is_the_drift(optimizer: str) -> None:
    mean, variance = np.array([0.5, -2.0, 0.1]), np.array([1.0, 3.0, 0.4])
    plain = estimators.exact_drift(mean, variance, 2, optimizer)
    assert estimators.exact_drift(mean, variance, 2, optimizer, along=mean) == pytest.approx(plain, rel=1e-14)
    assert estimators.exact_drift(mean, variance, 2, optimizer, along=-3 * mean) == pytest.approx(
        -3 * plain, rel=1e-14
    )
    first = estimators.exact_drift(mean[:1], variance[:1], 2, optimizer)
    assert estimators.exact_drift(mean, variance, 2, optimizer, along=[0.5, 0, 0]) == pytest.approx(first)


def test_the_signs_drift_is_the_mean_sign_of_a_normal() -> None:
    mean, variance = np.array([0.2, -2.0, 1e-9, 0.0, 3.0]), np.array([1.0, 3.0, 2.0, 2.0, 0.0])
    signs = [
        1 - 2 * stats.norm.cdf(0, m, s) for m, s in zip(mean[:4], np.sqrt(variance[:4] / 5), strict=True)
    ]
    found = estimators.exact_drift(mean, variance, 5, "sign")
    assert found == pytest.approx(mean[:4] @ signs + 3.0, rel=1e-12)
    # Alone, so that its square is not lost beside the others.
    tiny = estimators.exact_drift([1e-9], [2.0], 5, "sign")
    assert tiny == pytest.approx(1e-18 * math.sqrt(2 / math.pi) / math.sqrt(2 / 5), rel=1e-9)


@pytest.mark.parametrize("optimizer", ["adam", "sign"])
def test_a_coordinate_that_never_moves_takes_no_step(optimizer: str) -> None:
    assert OPTIMIZERS[optimizer](np.zeros(2), np.array([0.0, 1.0]))[0] == 0


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_a_negative_square_is_zero_under_the_root_alone(groups: int) -> None:
    moments = estimators.coordinate_moments([[1.0], [-1.0], [0.5]])
    squared, variance = float(moments.squared_mean[0]), float(moments.variance[0])
    assert squared < 0
    assert estimators.drift(moments, groups) == pytest.approx(
        squared / math.sqrt(variance / groups), rel=1e-14
    )
    assert estimators.drift(moments, groups, "sign") == pytest.approx(
        squared * math.sqrt(2 / math.pi) / math.sqrt(variance / groups), rel=1e-14
    )


def test_a_negative_variance_is_no_noise() -> None:
    """A group of one task, three of another: the mean product, 3.6, is more than the mean square, 3.33."""
    moments = estimators.coordinate_moments([[3.0], [1.2], [1.2], [1.2]], [0, 1, 1, 1])
    assert moments.variance[0] == pytest.approx((9 + 3 * 1.44) / 4 - 3.6)
    assert estimators.drift(moments, 2) == pytest.approx(math.sqrt(3.6))


def noisy(seed: int, tasks: int, spread: float) -> CoordinateMoments:
    rng = np.random.default_rng(seed)
    mean = np.concatenate([np.linspace(0.1, 0.5, 10), np.zeros(40)])
    return estimators.coordinate_moments(mean + spread * rng.normal(size=(tasks, 50)))


def test_one_mean_is_that_of_every_pair_in_both_designs() -> None:
    rng = np.random.default_rng(4)
    designs = [rng.normal(0.8, 1, (number, 3)) for number in (4, 9)]
    products = [g[i] * g[j] for g in designs for i, j in itertools.permutations(range(len(g)), 2)]
    squared = np.mean(products, axis=0)
    noise = [g.var(axis=0, ddof=1) / 2 for g in designs]
    gains = [(squared / np.sqrt(np.maximum(squared, 0) + v)).sum() for v in noise]
    moments = [estimators.coordinate_moments(g) for g in designs]
    assert estimators.drift_ratio(*moments, 2, common_mean=True) == pytest.approx(gains[0] / gains[1])


def test_plain_ascent_with_one_mean_has_ratio_one() -> None:
    designs = noisy(1, 100, 1.5), noisy(2, 150, 1.0)
    assert estimators.drift_ratio(*designs, 2, "gradient", common_mean=True) == pytest.approx(1, rel=1e-14)
    assert estimators.drift_ratio(*designs, 2, "gradient") != 1


def test_a_design_that_never_moves_has_no_ratio() -> None:
    still = estimators.coordinate_moments(np.zeros((4, 3)))
    assert estimators.drift(still, 2) == 0
    assert math.isnan(estimators.drift_ratio(still, still, 2))


def designs_by_task(seed: int = 1, tasks: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gradients of both designs, two groups or one a task, and the task of each group."""
    rng = np.random.default_rng(seed)
    labels = np.sort(np.concatenate([np.arange(tasks), np.arange(0, tasks, 3)]))
    effects = 0.3 + 0.5 * rng.normal(size=(tasks, 4))
    paired, independent = (
        effects[labels] + spread * rng.normal(size=(len(labels), 4)) for spread in (1.5, 1.0)
    )
    return paired, independent, labels


def interval(paired: TaskSums, independent: TaskSums, **changed: object) -> DriftInterval:
    return estimators.drift_interval(paired, independent, **({"groups": 2} | changed))


def progress(gradients: np.ndarray, along: np.ndarray, tasks: np.ndarray) -> float:
    """Return Adam's progress with two groups a step along the mean of `along`, pair by pair."""
    pairs = [(i, j) for i, j in itertools.product(range(len(tasks)), repeat=2) if tasks[i] != tasks[j]]
    towards = np.mean([along[i] * gradients[j] for i, j in pairs], axis=0)
    squared = bruteforce_pairs(gradients, tasks)
    variance = (gradients**2).mean(axis=0) - squared
    return float((towards / np.sqrt(np.maximum(squared, 0) + np.maximum(variance, 0) / 2)).sum())


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_an_interval_is_of_the_estimates_themselves(optimizer: str, common: bool) -> None:
    """Its value is the estimate; its ends and its error are of estimates without a task, one by one."""
    paired, independent, tasks = designs_by_task()
    found = interval(
        *(estimators.task_sums(g, tasks) for g in (paired, independent)),
        optimizer=optimizer,
        common_mean=common,
        level=0.9,
    )

    def ratio(kept: np.ndarray) -> float:
        moments = [estimators.coordinate_moments(g[kept], tasks[kept]) for g in (paired, independent)]
        return estimators.drift_ratio(*moments, 2, optimizer, common_mean=common)

    whole, left_out = ratio(tasks >= 0), np.array([ratio(tasks != task) for task in range(12)])
    error = math.sqrt(11 / 12 * ((left_out - left_out.mean()) ** 2).sum())
    corrected = 12 * whole - 11 * left_out.mean()
    assert found.ratio.value == pytest.approx(whole, rel=1e-12)
    assert found.ratio.standard_error == pytest.approx(error, rel=1e-9, abs=1e-12)
    assert found.ratio.best == pytest.approx(corrected, rel=1e-9)
    ends = stats.t.interval(0.9, 11, loc=corrected, scale=error) if error else (corrected, corrected)
    assert (found.ratio.low, found.ratio.high) == pytest.approx(ends, rel=1e-9, abs=1e-12)
    assert found.has_denominator == (found.independent.low > 0)
    if not common:
        own = estimators.drift(estimators.coordinate_moments(paired, tasks), 2, optimizer)
        assert found.paired.value == pytest.approx(own, rel=1e-12)


def test_a_direction_of_the_same_tasks_is_left_out_with_them() -> None:
    paired, independent, tasks = designs_by_task()
    along = np.random.default_rng(8).normal(0.5, 1, paired.shape)
    found = interval(
        *(estimators.task_sums(g, tasks) for g in (paired, independent)),
        along=estimators.task_sums(along, tasks),
    ).paired
    left_out = [
        progress(paired[tasks != task], along[tasks != task], tasks[tasks != task]) for task in range(12)
    ]
    assert found.value == pytest.approx(progress(paired, along, tasks), rel=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(11) * np.std(left_out), rel=1e-9)


def test_noise_alone_is_not_told_from_no_drift() -> None:
    rng = np.random.default_rng(2)
    sums = estimators.task_sums(rng.normal(size=(40, 300)), np.arange(40))
    loud = estimators.task_sums(rng.normal(1, 1, size=(40, 300)), np.arange(40))
    found = interval(loud, sums, optimizer="gradient")
    assert not found.has_denominator
    found = interval(sums, loud, optimizer="gradient")
    assert found.has_denominator
    # The product of a task with itself would add the trace over the number of tasks.
    assert found.paired.high < 300 / 40


def test_sums_by_task_are_those_of_the_groups() -> None:
    paired, _, tasks = designs_by_task()
    sums = estimators.task_sums(paired[::-1], tasks[::-1] + 7)
    for task in range(12):
        own = paired[tasks == task]
        assert sums.groups[task] == len(own)
        assert sums.totals[task] == pytest.approx(own.sum(axis=0), abs=1e-12)
        assert sums.squares[task] == pytest.approx((own**2).sum(axis=0), abs=1e-12)


def test_blocks_of_coordinates_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    paired, independent, tasks = designs_by_task()
    sums = [estimators.task_sums(g, tasks) for g in (paired, independent)]
    along = np.array([1.0, 2.0, -1.0, 0.5])
    whole = interval(*sums, along=along), estimators.drift(sums[0].moments, 2, along=along)
    monkeypatch.setattr(drifts, "BLOCK_ENTRIES", 3)
    parts = interval(*sums, along=along), estimators.drift(sums[0].moments, 2, along=along)
    assert parts[1] == pytest.approx(whole[1], rel=1e-13)
    for one, other in zip(astuple(parts[0]), astuple(whole[0]), strict=True):
        assert one == pytest.approx(other, rel=1e-11)
