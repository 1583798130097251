"""The registered interval against scipy, plain loops, closed forms and full enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from toolkit import estimators


def differences(seeds: int = 3, tasks: int = 64, rng_seed: int = 5) -> np.ndarray:
    """Return differences with a seed, a task and a residual part."""
    rng = np.random.default_rng(rng_seed)
    return (
        0.03
        + rng.normal(0, 0.03, (seeds, 1))
        + rng.normal(0, 0.1, (1, tasks))
        + rng.normal(0, 0.2, (seeds, tasks))
    )


def test_an_interval_is_the_percentiles_of_weighted_means() -> None:
    d = differences()
    weights = estimators.draw_weights(3, 64, 500, 11)
    means = [
        sum(weights.seeds[b, s] * weights.tasks[b, t] * d[s, t] for s in range(3) for t in range(64))
        for b in range(500)
    ]
    interval = estimators.crossed_bootstrap(d, weights, 0.95)
    assert (interval.low, interval.high) == pytest.approx(
        tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12
    )
    assert interval.estimate == pytest.approx(d.mean())


def test_the_errors_are_the_slope_of_the_order_statistics_around_the_ends() -> None:
    d, weights = differences(), estimators.draw_weights(3, 64, 1000, 11)
    means = np.sort(np.einsum("bs,st,bt->b", weights.seeds, d, weights.tasks))
    interval = estimators.crossed_bootstrap(d, weights, 0.9)
    # The ends lie at 49.95 and 949.05 of 0 to 999; a binomial deviation is sqrt(1000 × 0.05 × 0.95) = 6.892,
    # and four of them are 27.57.
    assert interval.low_error == pytest.approx((means[78] - means[22]) * 6.892 / 56, rel=1e-4)
    assert interval.high_error == pytest.approx((means[977] - means[921]) * 6.892 / 56, rel=1e-4)


@pytest.mark.parametrize(("seeds", "tasks", "resamples"), [(3, 64, 2000), (2, 2, 1), (5, 8, 17)])
def test_endpoints_together_are_the_endpoints_one_by_one(seeds: int, tasks: int, resamples: int) -> None:
    tables = [differences(seeds, tasks, number) for number in range(6)]
    before = [table.copy() for table in tables]
    weights = estimators.draw_weights(seeds, tasks, resamples, 3)
    together = estimators.crossed_bootstraps(tables, weights, 0.9)
    assert len(together) == len(tables)
    for interval, table in zip(together, tables, strict=True):
        alone = estimators.crossed_bootstrap(table.tolist(), weights, 0.9)
        for name in ("estimate", "low", "high", "low_error", "high_error"):
            assert getattr(interval, name) == pytest.approx(getattr(alone, name), abs=1e-12)
        assert (interval.level, interval.unit) == (alone.level, alone.unit)
    assert all(map(np.array_equal, tables, before))
    assert together == estimators.crossed_bootstraps(np.stack(tables), weights, 0.9)
    assert together[0] != together[1]


def test_no_table_gives_no_interval() -> None:
    assert estimators.crossed_bootstraps([], estimators.draw_weights(3, 64, 10, 1), 0.95) == ()


def test_weights_are_counts_of_draws_with_replacement() -> None:
    weights = estimators.draw_weights(3, 5, 4000, 1)
    for drawn, size in ((weights.seeds, 3), (weights.tasks, 5)):
        counts = drawn * size
        assert np.array_equal(counts, counts.round())
        assert np.array_equal(counts.sum(axis=1), np.full(4000, size))
        assert counts.var(axis=0, ddof=1) == pytest.approx(np.full(size, 1 - 1 / size), rel=0.1)
    joint = np.corrcoef(weights.seeds[:, 0], weights.tasks[:, 0])[0, 1]
    assert abs(joint) < 0.06


def scipys(d: np.ndarray, method: str, level: float, resamples: int) -> tuple[float, float]:
    """Scipy's interval on two unpaired vectors of indices: the same crossed reading, with its own numbers."""

    def mean(seeds: np.ndarray, tasks: np.ndarray, axis: int = -1) -> np.ndarray:
        assert axis == -1
        return d[seeds.astype(int)[..., :, None], tasks.astype(int)[..., None, :]].mean(axis=(-2, -1))

    indices = tuple(np.arange(float(size)) for size in d.shape)
    rng = np.random.default_rng(3)
    how = {"n_resamples": resamples, "confidence_level": level, "method": method, "rng": rng}
    ends = stats.bootstrap(indices, mean, **how).confidence_interval
    return ends.low, ends.high


def enumerated_means(d: np.ndarray, *, nested: bool) -> list[float]:
    """Return the mean of every equally likely draw of seeds and tasks."""
    seeds, tasks = d.shape
    seed_draws = list(product(range(seeds), repeat=seeds))
    task_draws = [list(draw) for draw in product(range(tasks), repeat=tasks)]
    if not nested:
        return [d[np.ix_(s, t)].mean() for s in seed_draws for t in task_draws]
    return [
        float(np.mean([d[s, t].mean() for s, t in zip(drawn, each, strict=True)]))
        for drawn in seed_draws
        for each in product(task_draws, repeat=seeds)
    ]


@pytest.mark.parametrize(("seeds", "tasks"), [(2, 2), (2, 3), (3, 2)])
def test_the_closed_forms_are_the_variances_of_all_draws(seeds: int, tasks: int) -> None:
    d = differences(seeds, tasks)
    crossed, nested = estimators.bootstrap_variance(d)
    assert crossed == pytest.approx(np.var(enumerated_means(d, nested=False)), rel=1e-10)
    assert nested == pytest.approx(np.var(enumerated_means(d, nested=True)), rel=1e-10)


def test_nested_resamples_reach_their_closed_form_where_tasks_alone_differ() -> None:
    d = np.tile(np.random.default_rng(5).normal(size=64), (3, 1))
    interval = estimators.nested_bootstrap(d, 4000, 8, 0.95)
    width = 2 * stats.norm.ppf(0.975) * estimators.bootstrap_variance(d)[1] ** 0.5
    assert interval.high - interval.low == pytest.approx(width, rel=0.1)


def test_listing_the_seeds_is_the_crossed_interval_without_their_noise() -> None:
    d, weights = differences(), estimators.draw_weights(3, 64, 3000, 2)
    interval = estimators.seed_enumerated_bootstrap(d, weights, 0.95)
    by_hand = [(weights.tasks @ d[list(drawn)].mean(axis=0)) for drawn in product(range(3), repeat=3)]
    expected = np.quantile(np.concatenate(by_hand), [0.025, 0.975], method="inverted_cdf")
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1e-9)


WEIGHTS = estimators.draw_weights(3, 49, 2000, 7)  # 1/49 has no exact double: 49 of them do not make one


def numerators() -> np.ndarray:
    return np.random.default_rng(1).integers(-20, 21, (3, 49))


def test_it_is_the_interval_of_the_differences() -> None:
    counted = estimators.counted_bootstrap(numerators(), 20, WEIGHTS, 0.95)
    direct = estimators.crossed_bootstrap(numerators() / 20, WEIGHTS, 0.95)
    for name in ("estimate", "low", "high", "low_error", "high_error"):
        assert getattr(counted, name) == pytest.approx(getattr(direct, name), abs=1e-14)
    assert (counted.level, counted.unit) == (direct.level, direct.unit)


def test_the_order_of_summation_changes_no_bit() -> None:
    backwards = type(WEIGHTS)(WEIGHTS.seeds[:, ::-1], WEIGHTS.tasks[:, ::-1], WEIGHTS.rng_seed)
    turned = estimators.counted_bootstrap(numerators()[::-1, ::-1], 20, backwards, 0.95)
    assert turned == estimators.counted_bootstrap(numerators(), 20, WEIGHTS, 0.95)


def test_sums_that_a_double_just_holds_are_taken() -> None:
    table, weights = np.array([[2.0**51, 0], [0, 0]]), estimators.draw_weights(2, 2, 9, 7)
    assert estimators.counted_bootstrap(table - 1, 1, weights, 0.95).estimate == 2.0**49 - 1
