"""Spurious variance and luck share against brute force and the paper."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from toolkit.estimators import luck_share, luck_share_null_bias, mean_luck_share, spurious_rate


@pytest.mark.parametrize(("q", "printed"), [("0.02", "0.15"), ("0.05", "0.34"), ("0.10", "0.57")])
def test_spurious_rates_of_the_paper(q: str, printed: str) -> None:
    assert f"{float(spurious_rate(Fraction(q), 8)):.2f}" == printed


@pytest.mark.parametrize("size", range(1, 7))
def test_the_spurious_rate_is_what_enumeration_gives(size: int) -> None:
    q = Fraction(3, 10)
    rate = Fraction(0)
    for flips in product((0, 1), repeat=size):
        if len(set(flips)) > 1:
            rate += q ** sum(flips) * (1 - q) ** (size - sum(flips))
    assert spurious_rate(q, size) == rate


@pytest.mark.parametrize(("q", "size"), [(-0.1, 8), (1.1, 8), (0.1, 0)])
def test_impossible_spurious_rates_are_refused(q: float, size: int) -> None:
    with pytest.raises(ValueError, match="found"):
        spurious_rate(q, size)


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


def test_luck_share_at_its_ends() -> None:
    assert luck_share(np.ones((8, 8))).share is None
    assert luck_share(np.repeat([[0.0], [1.0]], 8, axis=1)).share == 1.0
    assert luck_share(np.tile([0.0, 1.0], (8, 4))).share == 0.0


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


@pytest.mark.parametrize("table", [np.ones((1, 8)), np.ones((8, 1)), np.ones(8), np.full((2, 2), np.nan)])
def test_what_is_no_table_is_refused(table: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected schedules|not finite"):
        luck_share(table)


def test_what_is_no_study_is_refused() -> None:
    with pytest.raises(ValueError, match="expected tasks"):
        mean_luck_share(np.ones((8, 8)))
    with pytest.raises(ValueError, match="expected two schedules"):
        luck_share_null_bias(1, 8, 0.5, rng_seed=1)
