"""What a few seeds can say, against scipy and the figures computed for the published study."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.unit.estimators.test_bootstrap import scipys
from toolkit.estimators import (
    bca_interval,
    crossed_bootstrap,
    draw_weights,
    leave_one_out_means,
    minimal_detectable_effect,
    secondary,
    sign_flip,
    t_interval,
    t_quantile,
)

H2A = [Fraction(69, 1280), Fraction(-1, 640), Fraction(15, 256)]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 10, 29, 100])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.6, 0.9, 0.975, 0.9995])
def test_quantiles_are_scipys(degrees: int, probability: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-8, abs=1e-8
    )


def test_a_t_interval_is_scipys() -> None:
    values = [0.1, -0.3, 0.2, 0.05]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert t_interval(values, 0.9) == pytest.approx((expected.low, expected.high))


def test_three_seeds_cannot_be_significant() -> None:
    assert sign_flip([Fraction(1)] * 3).p_value == sign_flip(H2A).smallest == Fraction(1, 4)
    assert sign_flip(H2A).p_value == Fraction(1, 2)


def test_means_without_each_seed_of_the_published_study() -> None:
    assert [float(m) for m in leave_one_out_means(H2A)] == pytest.approx([0.0285, 0.0562, 0.0262], abs=6e-5)


@pytest.mark.parametrize(("seeds", "power"), [(6, 0.8), (12, 0.8), (12, 0.5), (30, 0.9)])
def test_a_t_test_finds_the_detectable_effect_with_the_power_asked_for(seeds: int, power: float) -> None:
    """The oracle is the noncentral t; the formula is its usual approximation."""
    effect = minimal_detectable_effect(0.034, seeds, 0.95, power)
    shift = effect * seeds**0.5 / 0.034
    critical = stats.t.ppf(0.975, seeds - 1)
    exact = stats.nct.sf(critical, seeds - 1, shift) + stats.nct.cdf(-critical, seeds - 1, shift)
    assert exact == pytest.approx(power, abs=0.03)


def skewed(seeds: int = 5, tasks: int = 40) -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.exponential(1.0, (seeds, 1)) + rng.exponential(2.0, tasks) + rng.normal(size=(seeds, tasks))


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_bca_interval_is_scipys(level: float) -> None:
    table = skewed()
    ours = bca_interval(table, draw_weights(*table.shape, 40_000, 6), level)
    assert (ours.low, ours.high) == pytest.approx(scipys(table, "BCa", level, 40_000), abs=0.03)


def test_bca_moves_the_registered_interval_where_the_differences_are_skewed() -> None:
    table = skewed()
    weights = draw_weights(*table.shape, 20_000, 6)
    ours, registered = bca_interval(table, weights, 0.95), crossed_bootstrap(table, weights, 0.95)
    assert ours.low > registered.low + 0.02
    assert ours.high > registered.high + 0.02
    assert ours.estimate == registered.estimate


def test_resamples_equal_to_the_estimate_count_half() -> None:
    table = np.array([[1.0, -1.0], [-1.0, 1.0]])
    ours = bca_interval(table, draw_weights(2, 2, 20_000, 6), 0.8)
    assert (ours.low, ours.high) == (-1, 1)


def test_differences_too_skewed_for_the_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secondary, "skewness", lambda _: 1.0)
    with pytest.raises(ValueError, match="too skewed"):
        bca_interval(skewed(), draw_weights(5, 40, 500, 1), 0.95)
