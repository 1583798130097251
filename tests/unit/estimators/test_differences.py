from fractions import Fraction

import numpy as np
import pytest

from toolkit.estimators import auc_weights, crossed_bootstrap, draw_weights, task_differences

RNG = np.random.default_rng(1)
SHAPE = (3, 6, 10, 2)
FIRST, SECOND = (RNG.integers(0, 2, SHAPE) for _ in range(2))
WEIGHTS = auc_weights([0, 20, 40, 60, 80, 100])


def test_it_is_the_loop_over_seeds_steps_tasks_and_schedules() -> None:
    table = task_differences(FIRST, SECOND, WEIGHTS)
    for seed in range(3):
        for task in range(10):
            exact = sum(
                WEIGHTS[step]
                * Fraction(int(FIRST[seed, step, task, k]) - int(SECOND[seed, step, task, k]), 2)
                for step in range(6)
                for k in range(2)
            )
            assert table[seed, task] == pytest.approx(float(exact))


def test_its_mean_is_the_difference_of_the_areas_of_the_pooled_counts() -> None:
    weights = np.array([float(w) for w in WEIGHTS])
    areas = [(arm.mean(axis=(2, 3)) @ weights).mean() for arm in (FIRST, SECOND)]
    assert task_differences(FIRST, SECOND, WEIGHTS).mean() == pytest.approx(areas[0] - areas[1])


def test_a_constant_column_is_a_task_like_any_other() -> None:
    first, second = FIRST.copy(), SECOND.copy()
    first[:, :, 4] = second[:, :, 4] = 1
    table = task_differences(first, second, WEIGHTS)
    assert not table[:, 4].any()
    interval = crossed_bootstrap(table, draw_weights(3, 10, 500, 1), 0.95)
    assert interval.low < interval.high


@pytest.mark.parametrize(
    ("axis", "name"), [(0, "seed pairs"), (1, "evaluated steps"), (2, "tasks"), (3, "schedules")]
)
def test_arms_that_differ_are_refused_by_what_they_differ_in(axis: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"differ in their {name}"):
        task_differences(FIRST, np.delete(SECOND, 0, axis=axis), WEIGHTS)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_episode_is_named_by_its_place(value: float) -> None:
    second = SECOND.astype(float)
    second[1, 2, 3, 0] = value
    place = "second arm .* seed pairs 1, evaluated steps 2, tasks 3, schedules 0"
    with pytest.raises(ValueError, match=place):
        task_differences(FIRST, second, WEIGHTS)


@pytest.mark.parametrize("shape", [(3, 6, 10), (3, 6, 0, 2), (3, 6, 10, 0)])
def test_a_table_without_an_axis_or_its_members_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least one of each"):
        task_differences(np.zeros(shape), np.zeros(shape), WEIGHTS)


@pytest.mark.parametrize("weights", [(), (1.0,), (float("nan"),) * 6])
def test_weights_that_do_not_fit_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="finite weights"):
        task_differences(FIRST, SECOND, weights)


def test_one_seed_or_one_task_has_a_table_and_no_interval() -> None:
    for first, second in ((FIRST[:1], SECOND[:1]), (FIRST[:, :, :1], SECOND[:, :, :1])):
        table = task_differences(first, second, WEIGHTS)
        with pytest.raises(ValueError, match="two"):
            crossed_bootstrap(table, draw_weights(3, 10, 100, 1), 0.95)
