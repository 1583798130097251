import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import bca_interval, crossed_bootstrap, draw_weights, secondary


def skewed(seeds: int = 5, tasks: int = 40) -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.exponential(1.0, (seeds, 1)) + rng.exponential(2.0, tasks) + rng.normal(size=(seeds, tasks))


def by_scipy(table: np.ndarray, level: float) -> tuple[float, float]:
    """Scipy's BCa on two unpaired vectors of indices: the same reading of the crossed bootstrap."""

    def mean(seeds: np.ndarray, tasks: np.ndarray, axis: int = -1) -> np.ndarray:
        del axis
        return table[seeds.astype(int)[..., :, None], tasks.astype(int)[..., None, :]].mean(axis=(-2, -1))

    data = tuple(np.arange(float(size)) for size in table.shape)
    found = stats.bootstrap(
        data, mean, n_resamples=40_000, confidence_level=level, method="BCa", rng=np.random.default_rng(5)
    )
    return found.confidence_interval.low, found.confidence_interval.high


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_it_agrees_with_scipy(level: float) -> None:
    table = skewed()
    ours = bca_interval(table, draw_weights(*table.shape, 40_000, 6), level)
    assert (ours.low, ours.high) == pytest.approx(by_scipy(table, level), abs=0.03)


def test_it_moves_the_registered_interval_where_the_differences_are_skewed() -> None:
    table = skewed()
    weights = draw_weights(*table.shape, 20_000, 6)
    ours, registered = bca_interval(table, weights, 0.95), crossed_bootstrap(table, weights, 0.95)
    assert ours.low > registered.low + 0.02
    assert ours.high > registered.high + 0.02
    assert ours.estimate == registered.estimate


def test_on_symmetric_differences_it_is_the_registered_interval() -> None:
    half = np.random.default_rng(7).normal(size=(3, 32))
    table = np.vstack([np.hstack([half, -half]), np.hstack([-half, half])])
    weights = draw_weights(*table.shape, 20_000, 6)
    ours, registered = bca_interval(table, weights, 0.95), crossed_bootstrap(table, weights, 0.95)
    assert (ours.low, ours.high) == pytest.approx((registered.low, registered.high), abs=0.01)


def test_resamples_equal_to_the_estimate_count_half() -> None:
    table = np.array([[1.0, -1.0], [-1.0, 1.0]])
    ours = bca_interval(table, draw_weights(2, 2, 20_000, 6), 0.8)
    assert (ours.low, ours.high) == (-1, 1)


def test_differences_too_skewed_for_the_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secondary, "_acceleration", lambda _: 1.0)
    with pytest.raises(ValueError, match="too skewed"):
        bca_interval(skewed(), draw_weights(5, 40, 500, 1), 0.95)


@pytest.mark.parametrize(
    "table", [np.ones((3, 4)), np.ones((1, 4)), np.array([[1.0, np.nan], [0.0, 1.0]]), np.ones(4)]
)
def test_what_has_no_such_interval_is_refused(table: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"alike|expected|finite|weights"):
        bca_interval(table, draw_weights(3, 4, 100, 1), 0.95)
