"""Luck share against brute force, the paper, and scipy."""

import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import luck_share, luck_share_interval, luck_share_null_bias, mean_luck_share


def by_hand(table: np.ndarray) -> tuple[float, float]:
    """Return σ²_env and σ²_pol by the textbook sums of one-way analysis of variance."""
    schedules, rollouts = table.shape
    grand = table.mean()
    between = sum(rollouts * (row.mean() - grand) ** 2 for row in table) / (schedules - 1)
    within = sum((x - row.mean()) ** 2 for row in table for x in row) / (schedules * (rollouts - 1))
    return max(0.0, (between - within) / rollouts), within


@pytest.mark.parametrize("seed", range(20))
def test_luck_share_is_the_analysis_of_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = (rng.random((8, 8)) < rng.random((8, 1))).astype(float)
    expected = by_hand(table)
    result = luck_share(table)
    assert (result.between, result.within) == pytest.approx(expected)
    assert result.share == pytest.approx(expected[0] / sum(expected))


def test_the_mean_is_over_defined_tasks_and_the_pooled_form_over_components() -> None:
    tables = np.stack([np.ones((2, 2)), [[0, 0], [1, 1]], [[0, 2], [0, 2]]])
    result = mean_luck_share(tables)
    assert (result.tasks, result.defined, result.mean) == (3, 2, 0.5)
    between = sum(by_hand(table)[0] for table in tables)
    within = sum(by_hand(table)[1] for table in tables)
    assert result.pooled == pytest.approx(between / (between + within))


def test_no_defined_task_gives_none_not_zero() -> None:
    result = mean_luck_share(np.zeros((3, 4, 4)))
    assert (result.mean, result.pooled, result.defined) == (None, None, 0)


def test_the_null_bias_is_about_what_the_paper_says() -> None:
    """About 0.03 for 8 × 8; a seed gives one figure."""
    bias = luck_share_null_bias(8, 8, 0.5, rng_seed=3)
    assert 0.02 < bias < 0.035
    assert bias == luck_share_null_bias(8, 8, 0.5, rng_seed=3)
    slow = [luck_share(t).share for t in (np.random.default_rng(3).random((200, 8, 8)) < 0.5).astype(float)]
    assert luck_share_null_bias(8, 8, 0.5, rng_seed=3, tables=200) == pytest.approx(np.mean(slow))


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
