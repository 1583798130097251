"""What the stored coverage says, and that it can be made again."""

import math

import numpy as np
import pytest

from tests.golden.measure_coverage import (
    COLUMNS,
    RESAMPLES,
    SEEDS,
    SIMULATIONS,
    TASK_DEVIATIONS,
    TASKS,
    measure,
    nested,
    seeds_only,
    simulate,
    stored,
    student,
    table,
)
from toolkit.estimators import draw_weights, nested_bootstrap, t_interval

CELLS = {(c.task_deviation, c.seeds, c.interval, c.level): c for c in stored()}
ERROR = math.sqrt(0.95 * 0.05 / SIMULATIONS)


def rate(task_deviation: float, seeds: int, interval: str, level: float = 0.95) -> float:
    """Return a stored coverage."""
    cell = CELLS[task_deviation, seeds, interval, level]
    return cell.covered / cell.simulations


def test_every_cell_is_stored_once() -> None:
    expected = {(d, s, i, level) for d in TASK_DEVIATIONS for s in SEEDS for _, i, level in COLUMNS}
    assert set(CELLS) == expected
    assert len(stored()) == len(expected)
    assert all(0 <= cell.covered <= cell.simulations == SIMULATIONS for cell in CELLS.values())


def test_the_stored_counts_come_out_again() -> None:
    columns = [column for column in COLUMNS if column[1] in {"crossed", "seeds_only", "student"}]
    again = measure(0.1, 3, columns)
    assert again == [CELLS[0.1, 3, interval, level] for _, interval, level in columns]


def test_three_resampled_seeds_cover_three_times_in_four() -> None:
    """Their interval is hardly wider than the range of three values: it misses the median in 2 of 8 cases."""
    assert rate(0.0, 3, "seeds_only") == pytest.approx(0.75, abs=3 * math.sqrt(0.75 * 0.25 / SIMULATIONS))
    assert rate(0.1, 3, "seeds_only") < 0.76
    assert rate(0.0, 2, "seeds_only") == pytest.approx(0.5, abs=3 * math.sqrt(0.25 / SIMULATIONS))


@pytest.mark.parametrize("seeds", SEEDS)
def test_students_t_is_exact_where_tasks_add_nothing(seeds: int) -> None:
    assert rate(0.0, seeds, "student") == pytest.approx(0.95, abs=3 * ERROR)


def test_students_t_fails_with_many_seeds_where_tasks_differ() -> None:
    """More seeds narrow it about the mean of these 64 tasks, not about the truth."""
    rates = [rate(0.1, seeds, "student") for seeds in SEEDS]
    assert rates[0] > 0.9
    assert rates[-1] < 0.8


def test_the_crossed_interval_nears_its_level_with_twenty_seeds() -> None:
    assert rate(0.1, 20, "crossed") == pytest.approx(0.95, abs=3 * ERROR)
    assert rate(0.1, 20, "crossed", 0.9) == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / SIMULATIONS))


@pytest.mark.parametrize("deviation", TASK_DEVIATIONS)
def test_the_crossed_interval_is_short_of_its_level_with_three_seeds(deviation: float) -> None:
    assert 0.9 < rate(deviation, 3, "crossed") < 0.95 - 2 * ERROR
    assert rate(deviation, 2, "crossed") < rate(deviation, 3, "crossed")


@pytest.mark.parametrize("seeds", SEEDS)
def test_where_tasks_differ_only_the_crossed_reading_keeps_near_its_level(seeds: int) -> None:
    assert rate(0.1, seeds, "nested") < rate(0.1, seeds, "crossed") - 0.05
    assert rate(0.1, seeds, "seeds_only") < rate(0.1, seeds, "crossed") - 0.15
    assert abs(rate(0.1, seeds, "bca") - rate(0.1, seeds, "crossed")) < 0.01


def test_intervals_made_by_the_block_are_the_estimators() -> None:
    tables = simulate(0.1, 3, 0)
    weights = draw_weights(3, TASKS, RESAMPLES, 7)
    ends = student(tables, weights, 0.95)
    for number, d in enumerate(tables[:5]):
        assert ends[:, number] == pytest.approx(t_interval(d.mean(axis=1).tolist(), 0.95), abs=1e-12)
    for number, (low, high) in enumerate(nested(tables, weights, 0.95).T[:5]):
        theirs = nested_bootstrap(tables[number], 20_000, 3, 0.95)
        width = theirs.high - theirs.low
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.08 * width)
    by_hand = np.quantile([w @ tables[0].mean(axis=1) for w in weights.seeds], [0.025, 0.975])
    assert seeds_only(tables, weights, 0.95)[:, 0] == pytest.approx(by_hand, abs=1e-12)


def test_simulations_have_the_deviations_they_name() -> None:
    tables = np.concatenate([simulate(0.1, 10, block) for block in range(10)])
    assert tables.mean(axis=(1, 2)).mean() == pytest.approx(0.03, abs=0.002)
    residual = tables - tables.mean(axis=1, keepdims=True) - tables.mean(axis=2, keepdims=True)
    residual += tables.mean(axis=(1, 2), keepdims=True)
    assert (residual**2).sum() / (1000 * 9 * 63) == pytest.approx(0.16**2, rel=0.02)
    by_seed = tables.mean(axis=2).var(axis=1, ddof=1).mean()
    assert by_seed == pytest.approx(0.034**2 + 0.16**2 / TASKS, rel=0.1)
    by_task = tables.mean(axis=1).var(axis=1, ddof=1).mean()
    assert by_task == pytest.approx(0.1**2 + 0.16**2 / 10, rel=0.05)


def test_the_table_prints_the_counts_as_rates() -> None:
    lines = table(stored()).splitlines()
    error = 100 * math.sqrt(0.95 * 0.05 / SIMULATIONS)
    assert f"{SIMULATIONS:,} simulations a cell" in lines[0]
    assert f"Monte Carlo standard error: {error:.1f} points at 95 %" in lines[0]
    percents = [100 * CELLS[0.1, 2, interval, level].covered / SIMULATIONS for _, interval, level in COLUMNS]
    assert lines[4] == f"| 0.1 | 2 | {' | '.join(f'{percent:.1f}' for percent in percents)} |"
    assert len(lines) == 4 + len(SEEDS) * len(TASK_DEVIATIONS)
