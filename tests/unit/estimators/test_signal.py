"""Variance along the mean gradient: explicit tuples of tasks, every sample of a small distribution."""

import itertools
import math

import numpy as np
import pytest

from toolkit import estimators
from toolkit.estimators.signal import SignalInterval


def two_designs(seed: int = 3, tasks: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gradients, the task of each, and whether it is paired: one or two groups a task and design."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(tasks), np.arange(tasks), [0, 3]])
    paired = np.arange(len(labels)) >= tasks
    effects = 2 + rng.normal(size=(tasks, 3))
    return (
        effects[labels] + rng.normal(size=(len(labels), 3)) * np.where(paired, 2, 1)[:, None],
        labels,
        paired,
    )


def by_tuples(gradients: np.ndarray, labels: np.ndarray, own: np.ndarray) -> tuple[float, float, float]:
    """Return the trace of the groups `own`, μ'Σμ with μ of all groups, and ‖μ‖², tuple by tuple."""
    k = gradients @ gradients.T
    everyone, mine = range(len(labels)), np.flatnonzero(own)

    def mean(values: list[float]) -> float:
        return math.fsum(values) / len(values)

    def apart(*at: int) -> bool:
        return len({labels[i] for i in at}) == len(at)

    trace = mean([k[i, i] for i in mine]) - mean(
        [k[i, j] for i, j in itertools.product(mine, mine) if apart(i, j)]
    )
    three = mean(
        [k[i, j] * k[i, m] for i, j, m in itertools.product(mine, everyone, everyone) if apart(i, j, m)]
    )
    four = mean(
        [
            k[i, j] * k[m, n]
            for i, j, m, n in itertools.product(mine, everyone, mine, everyone)
            if apart(i, j, m, n)
        ]
    )
    return (
        trace,
        three - four,
        mean([k[i, j] for i, j in itertools.product(everyone, everyone) if apart(i, j)]),
    )


def interval(gradients: np.ndarray, labels: np.ndarray, paired: np.ndarray, **how: object) -> SignalInterval:
    how = {"resamples": 50, "rng_seed": 1} | how
    return estimators.signal_interval(gradients @ gradients.T, labels, paired, **how)


@pytest.mark.parametrize("seed", [3, 4])
def test_the_figures_are_those_of_explicit_tuples(seed: int) -> None:
    gradients, labels, paired = two_designs(seed)
    found = interval(gradients, labels, paired)
    for design, own in (("paired", paired), ("independent", ~paired)):
        trace, along, norm = by_tuples(gradients, labels, own)
        assert getattr(found, f"trace_{design}").value == pytest.approx(trace, rel=1e-10)
        assert getattr(found, f"along_{design}").value == pytest.approx(along / norm, rel=1e-9)
        assert found.squared_norm.value == pytest.approx(norm, rel=1e-10)
    assert found.along_ratio.value == pytest.approx(
        by_tuples(gradients, labels, paired)[1] / by_tuples(gradients, labels, ~paired)[1], rel=1e-9
    )
    assert found.trace_ratio.value == found.trace_paired.value / found.trace_independent.value


def test_one_design_alone_is_along_its_own_mean() -> None:
    gradients, labels, paired = two_designs()
    g, own = gradients[paired], labels[paired]
    trace, along, norm = by_tuples(g, own, np.ones(len(own), dtype=bool))
    found = estimators.signal_variance(g @ g.T, own)
    assert (found.trace, found.along, found.squared_norm) == pytest.approx(
        (trace, along / norm, norm), rel=1e-9
    )


def test_the_jackknife_leaves_out_one_task_after_the_other() -> None:
    gradients, labels, paired = two_designs()
    ratios = []
    for task in range(8):
        kept = labels != task
        one = by_tuples(gradients[kept], labels[kept], paired[kept])[1]
        ratios.append(one / by_tuples(gradients[kept], labels[kept], ~paired[kept])[1])
    error = math.sqrt(7 / 8 * sum((ratio - np.mean(ratios)) ** 2 for ratio in ratios))
    assert interval(gradients, labels, paired).along_ratio.standard_error == pytest.approx(error, rel=1e-7)


def many(seed: int, tasks: int, mean: np.ndarray, spreads: tuple[np.ndarray, np.ndarray]) -> SignalInterval:
    rng = np.random.default_rng(seed)
    gradients = np.vstack([mean + rng.normal(size=(tasks, len(mean))) * spread for spread in spreads])
    labels, paired = np.tile(np.arange(tasks), 2), np.arange(2 * tasks) < tasks
    return interval(gradients, labels, paired, resamples=200)


def test_the_trace_may_fall_where_the_variance_along_the_signal_rises() -> None:
    """Known truth: signal on the first of 60 coordinates, where paired groups vary three times as much."""
    mean = np.zeros(60)
    mean[0] = 1.0
    paired, independent = np.full(60, 0.5), np.ones(60)
    paired[0] = math.sqrt(3)
    found = many(1, 800, mean, (paired, independent))
    assert found.along_ratio.value == pytest.approx(3, abs=0.4)
    assert found.trace_ratio.value == pytest.approx((3 + 59 / 4) / 60, rel=0.03)
    assert found.along_ratio.low < 3 < found.along_ratio.high
    assert found.has_direction
    assert not many(1, 100, 0 * mean, (paired, independent)).has_direction


def test_without_a_mean_gradient_there_is_no_direction() -> None:
    g = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    found = estimators.signal_variance(g @ g.T)
    assert found.along is None
    assert found.squared_norm == pytest.approx(-1 / 3)
    assert found.trace == pytest.approx(4 / 3)
