"""The interval from whole numbers: that of the differences, in the same bits however it is summed."""

import numpy as np
import pytest

from toolkit.estimators import counted_bootstrap, crossed_bootstrap, draw_weights

WEIGHTS = draw_weights(3, 49, 2000, 7)  # 1/49 has no exact double: 49 of them do not make one


def numerators() -> np.ndarray:
    return np.random.default_rng(1).integers(-20, 21, (3, 49))


def test_it_is_the_interval_of_the_differences() -> None:
    counted = counted_bootstrap(numerators(), 20, WEIGHTS, 0.95)
    direct = crossed_bootstrap(numerators() / 20, WEIGHTS, 0.95)
    for name in ("estimate", "low", "high", "low_error", "high_error"):
        assert getattr(counted, name) == pytest.approx(getattr(direct, name), abs=1e-14)
    assert (counted.level, counted.unit) == (direct.level, direct.unit)


def test_the_order_of_summation_changes_no_bit() -> None:
    backwards = type(WEIGHTS)(WEIGHTS.seeds[:, ::-1], WEIGHTS.tasks[:, ::-1], WEIGHTS.rng_seed)
    turned = counted_bootstrap(numerators()[::-1, ::-1], 20, backwards, 0.95)
    assert turned == counted_bootstrap(numerators(), 20, WEIGHTS, 0.95)


def test_its_ends_are_quantiles_of_exact_means() -> None:
    table = numerators()
    sums = [
        sum(
            round(float(WEIGHTS.seeds[b, s]) * 3) * round(float(WEIGHTS.tasks[b, t]) * 49) * int(table[s, t])
            for s in range(3)
            for t in range(49)
        )
        for b in range(400)
    ]
    few = type(WEIGHTS)(WEIGHTS.seeds[:400], WEIGHTS.tasks[:400], WEIGHTS.rng_seed)
    found = counted_bootstrap(table, 20, few, 0.9)
    low, high = np.quantile(sums, [0.05, 0.95]) / (3 * 49 * 20)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-14)


@pytest.mark.parametrize(("value", "denominator"), [(0.5, 20), (1.0, 0)])
def test_what_is_not_a_fraction_of_whole_numbers_is_refused(value: float, denominator: int) -> None:
    with pytest.raises(ValueError, match="whole numerators"):
        counted_bootstrap(np.full((3, 49), value), denominator, WEIGHTS, 0.95)


def test_sums_that_a_double_does_not_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        counted_bootstrap(np.full((3, 49), 2.0**50), 1, WEIGHTS, 0.95)
    table, weights = np.array([[2.0**51, 0], [0, 0]]), draw_weights(2, 2, 9, 7)
    with pytest.raises(ValueError, match="too large"):
        counted_bootstrap(table, 1, weights, 0.95)
    assert counted_bootstrap(table - 1, 1, weights, 0.95).estimate == 2.0**49 - 1
