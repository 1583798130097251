"""Uncertainty over tasks, and pooled traces: scipy, explicit jackknives and vectors, simulated effects."""

import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from toolkit import estimators
from toolkit.estimators.taskwise import TaskUncertainty, is_nonzero

TASKS = 24
RNG = np.random.default_rng(5)
LEFT, RIGHT = RNG.gamma(2, 1, TASKS), RNG.gamma(3, 1, TASKS)


def figures(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return a ratio of sums, a mean and a plug-in variance of the tasks that count."""
    number = counts.sum(axis=1)
    mean = counts @ LEFT / number
    return {
        "ratio": (counts @ LEFT) / (counts @ RIGHT),
        "mean": mean,
        "variance": counts @ LEFT**2 / number - mean**2,
    }


def found(**changed: object) -> dict[str, TaskUncertainty]:
    how = {"level": 0.95, "resamples": 10_000, "rng_seed": 13} | changed
    return estimators.task_uncertainties(figures, TASKS, **how)


def scipys(statistic: object, samples: tuple[np.ndarray, ...], level: float) -> tuple[float, float]:
    done = stats.bootstrap(
        samples,
        statistic,
        n_resamples=10_000,
        confidence_level=level,
        method="percentile",
        paired=True,
        vectorized=True,
        rng=np.random.default_rng(99),
    )
    return float(done.confidence_interval.low), float(done.confidence_interval.high)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_are_scipys_within_monte_carlo_error(level: float) -> None:
    """The sd of a quantile of 10,000 draws is about 1.4 to 2.1 percent of the bootstrap's own sd here."""
    mine = found(level=level)
    others = {
        "ratio": scipys(lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis), (LEFT, RIGHT), level),
        "mean": scipys(lambda a, axis: a.mean(axis=axis), (LEFT,), level),
        "variance": scipys(lambda a, axis: a.var(axis=axis), (LEFT,), level),
    }
    for name, ends in others.items():
        one = mine[name]
        tolerance = 0.12 * one.standard_error
        assert (one.low, one.high) == pytest.approx(ends, abs=tolerance), name


def test_the_jackknife_leaves_out_one_task_after_the_other() -> None:
    mine = found(resamples=10)["ratio"]
    values = [np.delete(LEFT, at).sum() / np.delete(RIGHT, at).sum() for at in range(TASKS)]
    whole, mean = LEFT.sum() / RIGHT.sum(), math.fsum(values) / TASKS
    spread = math.sqrt((TASKS - 1) / TASKS * math.fsum((v - mean) ** 2 for v in values))
    assert mine.value == pytest.approx(whole, rel=1e-13)
    assert mine.standard_error == pytest.approx(spread, rel=1e-11)
    assert mine.corrected == pytest.approx(TASKS * whole - (TASKS - 1) * mean, rel=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_jackknifes_interval_is_students_about_the_corrected_figure(level: float) -> None:
    mine, drawn = estimators.task_jackknife(figures, TASKS, level=level), found(resamples=10)
    for name, one in mine.items():
        other = drawn[name]
        assert (one.value, one.standard_error, one.corrected) == (
            other.value,
            other.standard_error,
            other.corrected,
        )
        ends = stats.t.interval(level, TASKS - 1, loc=one.corrected, scale=one.standard_error)
        assert (one.low, one.high) == pytest.approx(ends, rel=1e-9)
        assert one.best == one.corrected


@pytest.mark.parametrize(
    ("right", "value"),
    [
        (np.array([1.0, 0, 0, 0]), 4.0),  # most resamples and one task left out have no denominator
        (np.zeros(4), None),
        (np.array([1.0, math.nan, 1, 1]), None),
    ],
)
def test_a_figure_that_some_resample_lacks_has_no_interval(right: np.ndarray, value: float | None) -> None:
    def both(counts: np.ndarray) -> dict[str, np.ndarray]:
        return {"bad": (counts @ np.ones(4)) / (counts @ right), "good": counts @ np.arange(4.0)}

    for done in (
        estimators.task_uncertainties(both, 4, level=0.95, resamples=200, rng_seed=1),
        estimators.task_jackknife(both, 4, level=0.95),
    ):
        assert done["bad"] == TaskUncertainty(value)
        assert done["bad"].best == value
        assert None not in astuple(done["good"])


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        # What only some resample lacks, and what only the jackknife does.
        (lambda counts: counts[:, :2].max(axis=1) / (counts[:, 0] + counts[:, 1]), 0.5),
        (lambda counts: np.where(counts.sum(axis=1) == 3, np.nan, 1.0), 1.0),
    ],
)
def test_a_figure_may_have_a_value_alone(figure: Callable[[np.ndarray], np.ndarray], value: float) -> None:
    done = estimators.task_uncertainties(
        lambda counts: {"figure": figure(counts)}, 4, level=0.9, resamples=200, rng_seed=1
    )
    assert done["figure"] == TaskUncertainty(value)


@pytest.mark.parametrize(
    ("low", "high", "is_told"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.2, False), (0.0, 0.2, False), (None, None, False)],
)
def test_what_an_interval_excludes_is_told(low: float | None, high: float | None, is_told: bool) -> None:
    assert is_nonzero(TaskUncertainty(0.1, low, high)) == is_told


def explicit(gradients: np.ndarray) -> tuple[float, float, float, float]:
    """Return total, within, between and squared norm of gradients (T, J, P), coordinate by coordinate."""
    flat = gradients.reshape(-1, gradients.shape[-1])
    means = gradients.mean(axis=1)
    return (
        float(np.var(flat, axis=0).sum()),
        float(np.var(gradients, axis=1).sum(axis=1).mean()),
        float(np.var(means, axis=0).sum()),
        float((flat.mean(axis=0) ** 2).sum()),
    )


def parts(gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the estimator takes: E‖g_t‖² and the products of the tasks' means."""
    means = gradients.mean(axis=1)
    return (gradients**2).sum(axis=2).mean(axis=1), np.einsum("tp,sp->ts", means, means)


def effects(tasks: int, groups: int, tau: float, sigma: float, coordinates: int = 20_000) -> np.ndarray:
    """Draw a one-way random-effects model; many coordinates make its traces nearly their expectations."""
    rng = np.random.default_rng(17)
    between = tau * rng.standard_normal((tasks, 1, coordinates))
    return between + sigma * rng.standard_normal((tasks, groups, coordinates))


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 5))
def test_a_trace_and_its_parts_are_numpys_variances(seed: int, tasks: int, groups: int) -> None:
    gradients = np.random.default_rng(seed).normal(1, 1, (tasks, groups, 4))
    found = estimators.pooled_trace(*parts(gradients))
    assert (found.total, found.within, found.between, found.squared_norm) == pytest.approx(
        explicit(gradients), abs=1e-12
    )
    assert found.total == pytest.approx(found.within + found.between, abs=1e-12)


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_a_count_repeats_a_task_with_all_its_groups(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    gradients = rng.normal(1, 1, (tasks, 3, 4))
    counts = rng.integers(0, 4, (5, tasks))
    counts[:, 0] += 1
    found = estimators.pooled_trace(*parts(gradients), counts)
    for at, row in enumerate(counts):
        repeated = explicit(np.repeat(gradients, row, axis=0))
        one = [part[at] for part in (found.total, found.within, found.between, found.squared_norm)]
        assert one == pytest.approx(repeated, abs=1e-11)


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (4, 2), (3, 5), (2, 3)])
def test_tasks_that_do_not_differ_have_the_within_share_of_noise(tasks: int, groups: int) -> None:
    found = estimators.pooled_trace(*parts(effects(tasks, groups, 0, 1.5)))
    assert found.within / found.total == pytest.approx(estimators.noise_within_share(tasks, groups), rel=0.02)


def test_the_published_probes_share_is_0_882() -> None:
    """The note on the published f_trans: 16 tasks, 8 groups' worth of rollouts each."""
    assert estimators.noise_within_share(16, 8) == pytest.approx((7 / 8) / (127 / 128), rel=1e-15)
    assert f"{estimators.noise_within_share(16, 8):.3f}" == "0.882"
    assert estimators.noise_within_share(5, 1) == 0


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (5, 2), (3, 4)])
@pytest.mark.parametrize(("tau", "sigma"), [(0.0, 1.0), (1.0, 1.0), (0.5, 2.0), (3.0, 0.5)])
def test_a_debiased_share_is_that_of_the_model(tasks: int, groups: int, tau: float, sigma: float) -> None:
    found = estimators.pooled_trace(*parts(effects(tasks, groups, tau, sigma)))
    share = estimators.debiased_between_share(float(found.within), float(found.between), tasks, groups)
    assert share == pytest.approx(tau**2 / (tau**2 + sigma**2), abs=0.015)


def test_what_varies_less_than_noise_is_below_zero() -> None:
    assert estimators.debiased_between_share(1, 0, 4, 4) < 0


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (2, 3), (2, 1)])
def test_a_mean_of_nothing_but_noise_is_its_floor(tasks: int, groups: int) -> None:
    found = estimators.pooled_trace(*parts(effects(tasks, groups, 0, 2)))
    number = tasks * groups
    ratio = estimators.norm_over_floor(float(found.squared_norm), float(found.total), number)
    assert ratio == pytest.approx(number / (number - 1), rel=0.03)
