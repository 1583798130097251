"""Uncertainty over tasks: scipy's bootstrap, explicit jackknives, and their closed forms."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import task_uncertainties
from toolkit.estimators.taskwise import TaskUncertainty

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
    return task_uncertainties(figures, TASKS, **how)


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


def test_a_plug_in_variance_is_corrected_to_the_unbiased_one() -> None:
    mine = found(resamples=10)["variance"]
    assert mine.value == pytest.approx(LEFT.var(), rel=1e-11)
    assert mine.corrected == pytest.approx(LEFT.var(ddof=1), rel=1e-10)


def test_the_same_seed_gives_the_same_numbers_and_another_others() -> None:
    assert found() == found()
    one, other = found()["ratio"], found(rng_seed=14)["ratio"]
    assert one.low != other.low
    assert (one.value, one.standard_error) == (other.value, other.standard_error)


def test_every_figure_meets_the_same_resamples_of_whole_tasks() -> None:
    seen = []

    def watched(counts: np.ndarray) -> dict[str, np.ndarray]:
        seen.append(counts)
        return figures(counts)

    task_uncertainties(watched, TASKS, level=0.9, resamples=500, rng_seed=1)
    drawn, left_out, whole = seen
    assert drawn.shape == (500, TASKS)
    assert (drawn.sum(axis=1) == TASKS).all()
    assert drawn.var() == pytest.approx(1 - 1 / TASKS, rel=0.05)
    assert (left_out == 1 - np.eye(TASKS)).all()
    assert (whole == 1).all()


@pytest.mark.parametrize(
    ("right", "value"),
    [
        (np.array([1.0, 0, 0, 0]), 4.0),  # most resamples and one task left out have no denominator
        (np.zeros(4), None),
        (np.array([1.0, math.nan, 1, 1]), None),
    ],
)
def test_a_figure_that_some_resample_does_not_define_has_at_most_a_value(
    right: np.ndarray, value: float | None
) -> None:
    def both(counts: np.ndarray) -> dict[str, np.ndarray]:
        return {"bad": (counts @ np.ones(4)) / (counts @ right), "good": counts @ np.arange(4.0)}

    done = task_uncertainties(both, 4, level=0.95, resamples=200, rng_seed=1)
    assert done["bad"] == TaskUncertainty(value)
    assert None not in astuple(done["good"])


def test_a_figure_that_only_some_resample_does_not_define_has_a_value() -> None:
    def of_two(counts: np.ndarray) -> dict[str, np.ndarray]:
        return {"figure": counts[:, :2].max(axis=1) / (counts[:, 0] + counts[:, 1])}

    done = task_uncertainties(of_two, 4, level=0.9, resamples=200, rng_seed=1)
    assert done["figure"] == TaskUncertainty(0.5)


def test_a_figure_that_only_the_jackknife_does_not_define_has_a_value() -> None:
    def never_left_out(counts: np.ndarray) -> dict[str, np.ndarray]:
        missing = counts.sum(axis=1) == 3
        return {"figure": np.where(missing, np.nan, 1.0)}

    done = task_uncertainties(never_left_out, 4, level=0.9, resamples=5, rng_seed=1)
    assert done["figure"] == TaskUncertainty(1.0)


@pytest.mark.parametrize("changed", [{"level": 0.0}, {"level": 1.0}, {"resamples": 0}, {"level": math.nan}])
def test_what_is_no_interval_is_refused(changed: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected two tasks"):
        found(**changed)


def test_one_task_is_no_sample() -> None:
    with pytest.raises(ValueError, match="expected two tasks"):
        task_uncertainties(figures, 1, level=0.95, resamples=10, rng_seed=1)
