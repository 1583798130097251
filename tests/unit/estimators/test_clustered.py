"""Intervals over tasks: against scipy, against sums by hand, and against their own random numbers."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import clustered_bca_interval, clustered_t_interval, draw_tasks, draw_weights

TOTALS = (0, 3, 1, -2, 4, 0, 1, 1, -1, 3, 5, 0)
LEVELS = (0.9, 0.95, 0.99)


@pytest.mark.parametrize("level", LEVELS)
def test_a_t_interval_is_scipys(level: float) -> None:
    values = np.array(TOTALS) / 7
    expected = stats.t.interval(level, len(values) - 1, values.mean(), stats.sem(values))
    assert clustered_t_interval(TOTALS, 7, level) == pytest.approx(expected, rel=1e-14)
    assert clustered_t_interval(values.tolist(), 1, level) == pytest.approx(expected, rel=1e-14)


def test_whole_numbers_that_no_double_holds_stay_exact() -> None:
    """Nearly all of each value is common; sums of squares in doubles would leave nothing of the spread."""
    many = [10**17 + n for n in (0, 2, 4)]
    low, high = clustered_t_interval(many)
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 2) * 2 / 3**0.5, abs=40)
    assert clustered_t_interval([0, 0, 0], 5) == (0, 0)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("totals", [TOTALS, tuple(n / 4 for n in TOTALS)], ids=["counts", "scores"])
def test_a_bca_interval_of_the_same_resamples_is_scipys(totals: tuple[float, ...], level: float) -> None:
    """A resample may equal the estimate: sums without rounding say so on both sides."""
    values, drawn = np.array(totals), draw_tasks(len(totals), 4000, 3)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=0,
        method="BCa",
        confidence_level=level,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=drawn @ values / len(values)),
    ).confidence_interval
    ours = clustered_bca_interval(totals, 7, drawn, level)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low / 7, theirs.high / 7), rel=1e-12)
    assert ours.estimate == pytest.approx(values.mean() / 7)


def test_a_bca_interval_of_own_resamples_is_near_that_of_scipys_own() -> None:
    skewed = np.random.default_rng(4).exponential(size=40)
    ours = clustered_bca_interval(skewed, 1, draw_tasks(40, 40_000, 3), 0.95)
    rng = np.random.default_rng(5)
    theirs = stats.bootstrap((skewed,), np.mean, n_resamples=40_000, rng=rng).confidence_interval
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)
    assert ours.high - ours.estimate > 1.1 * (ours.estimate - ours.low)


def test_the_errors_of_the_ends_are_how_much_other_random_numbers_move_them() -> None:
    """At 80 %, where an end's error is a fifth less than if bias and share came from other resamples."""
    values = np.random.default_rng(4).uniform(size=40)
    made = [clustered_bca_interval(values, 1, draw_tasks(40, 2000, seed), 0.8) for seed in range(200)]
    found = [interval for interval in made if interval]
    for end in ("low", "high"):
        moved = np.std([getattr(interval, end) for interval in found])
        said = np.mean([getattr(interval, f"{end}_error") for interval in found])
        assert said == pytest.approx(moved, rel=0.1)


def test_tasks_are_drawn_as_the_registered_interval_draws_them() -> None:
    assert np.array_equal(draw_tasks(6, 50, 9), np.rint(6 * draw_weights(3, 6, 50, 9).tasks))


def test_differences_all_alike_have_no_corrected_interval() -> None:
    assert clustered_bca_interval([2, 2, 2], 4, draw_tasks(3, 50, 1), 0.95) is None


def test_a_mean_is_rounded_once() -> None:
    low, high = clustered_t_interval([1, 1, 1], 3)
    assert low == high == float(Fraction(1, 3))
