"""Learning curves: the area under one, the steps until a threshold, the difference of two arms by task."""

from fractions import Fraction

import numpy as np
import pytest

from toolkit import estimators


def test_area_agrees_with_numpy() -> None:
    values = [Fraction(k, 7) for k in (1, 5, 2, 6, 3)]
    steps = (0, 3, 10, 11, 40)
    expected = np.trapezoid([float(v) for v in values], steps) / 40
    assert float(estimators.auc(values, steps)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("success", "threshold", "expected"),
    [
        ((0, 1, 1), Fraction(1, 2), 10),
        ((Fraction(1, 2), 0, 0), Fraction(1, 2), 0),
        ((0, Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2), 30),
        ((0, Fraction(1, 2), 0), Fraction(1, 2), 20),
        ((0, 0, Fraction(49, 100)), Fraction(1, 2), None),
        ((1, 0, 1), Fraction(1, 2), 0),
    ],
)
def test_the_first_arrival_counts_interpolated(success, threshold, expected) -> None:
    assert estimators.steps_to_threshold([Fraction(s) for s in success], (0, 20, 40), threshold) == expected


RNG = np.random.default_rng(1)
SHAPE = (3, 6, 10, 2)
FIRST, SECOND = (RNG.integers(0, 2, SHAPE) for _ in range(2))
WEIGHTS = estimators.auc_weights([0, 20, 40, 60, 80, 100])


def test_it_is_the_loop_over_seeds_steps_tasks_and_schedules() -> None:
    table = estimators.task_differences(FIRST, SECOND, WEIGHTS)
    for seed in range(3):
        for task in range(10):
            exact = sum(
                WEIGHTS[step]
                * Fraction(int(FIRST[seed, step, task, k]) - int(SECOND[seed, step, task, k]), 2)
                for step in range(6)
                for k in range(2)
            )
            assert table[seed, task] == pytest.approx(float(exact))
