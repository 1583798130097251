import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import luck_share, luck_share_interval, mean_luck_share, minimal_detectable_effect


def tables(tasks: int = 16, rng_seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(rng_seed)
    return (rng.random((tasks, 8, 8)) < rng.beta(1, 1, (tasks, 8, 1))).astype(float)


def test_it_agrees_with_scipys_bootstrap_of_the_shares() -> None:
    shares = [luck_share(table).share for table in tables()]
    theirs = stats.bootstrap(
        (shares,), np.mean, n_resamples=50_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    ours = luck_share_interval(tables(), 50_000, 3, 0.95)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.005)
    assert ours.estimate == pytest.approx(mean_luck_share(tables()).mean)


def test_tasks_without_a_share_take_no_part() -> None:
    constant = np.ones((5, 8, 8))
    alone = luck_share_interval(tables(), 2000, 1, 0.95)
    beside = luck_share_interval(np.concatenate([tables(), constant]), 2000, 1, 0.95)
    assert alone == beside
    assert alone is not None
    assert alone.defined == 16


@pytest.mark.parametrize("defined", [0, 1])
def test_fewer_than_two_shares_have_no_interval(defined: int) -> None:
    mixed = np.concatenate([np.ones((3, 8, 8)), tables(defined)]) if defined else np.ones((3, 8, 8))
    assert luck_share_interval(mixed, 100, 1, 0.95) is None


@pytest.mark.parametrize(
    ("given", "resamples", "level"),
    [(tables(), 0, 0.95), (tables(), 10, 1.0), (np.ones((3, 1, 8)), 10, 0.9), (np.ones((3, 8, 1)), 10, 0.9)],
)
def test_what_makes_no_sense_is_refused(given: np.ndarray, resamples: int, level: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        luck_share_interval(given, resamples, 1, level)


@pytest.mark.parametrize(("seeds", "power"), [(6, 0.8), (12, 0.8), (12, 0.5), (30, 0.9)])
def test_a_t_test_finds_the_detectable_effect_with_the_power_asked_for(seeds: int, power: float) -> None:
    """The oracle is the noncentral t; the formula is its usual approximation."""
    effect = minimal_detectable_effect(0.034, seeds, 0.95, power)
    shift = effect * seeds**0.5 / 0.034
    critical = stats.t.ppf(0.975, seeds - 1)
    exact = stats.nct.sf(critical, seeds - 1, shift) + stats.nct.cdf(-critical, seeds - 1, shift)
    assert exact == pytest.approx(power, abs=0.03)


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 3, 0.95, 0.8),
        (float("nan"), 3, 0.95, 0.8),
        (0.1, 1, 0.95, 0.8),
        (0.1, 3, 1.0, 0.8),
        (0.1, 3, 0.9, 0.0),
    ],
)
def test_an_effect_that_is_not_defined_is_refused(arguments: tuple[float, int, float, float]) -> None:
    with pytest.raises(ValueError, match=r"expected|between"):
        minimal_detectable_effect(*arguments)
