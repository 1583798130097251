"""What the stored coverage says, and that it can be made again."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from tests.golden.measure_coverage import (
    COLUMNS,
    DESIGNS,
    EFFECT,
    OF_EPISODES,
    OF_ONE_SEED,
    RESAMPLES,
    SEEDS,
    SIMULATIONS,
    TASK_DEVIATIONS,
    TASKS,
    Played,
    bca_tasks,
    crossed,
    measure,
    measure_played,
    nested,
    play,
    played_table,
    seeds_only,
    simulate,
    stored,
    stored_played,
    student,
    student_tasks,
    table,
)
from toolkit.estimators import (
    clustered_bca_interval,
    clustered_t_interval,
    counted_bootstrap,
    draw_tasks,
    draw_weights,
    nested_bootstrap,
    t_interval,
)
from toolkit.rules.endpoints import METHODS_SAY

CELLS = {(c.task_deviation, c.seeds, c.interval, c.level): c for c in stored()}
PLAYED = {(c.seeds, c.tasks, c.seed_deviation, c.task_deviation, c.interval): c for c in stored_played()}
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


def covers(seeds: int, tasks: int, of_seeds: float, of_tasks: float, interval: str) -> float:
    """Return a stored coverage of the second table."""
    return PLAYED[seeds, tasks, of_seeds, of_tasks, interval].covered / SIMULATIONS


def finds(seeds: int, tasks: int, of_seeds: float, of_tasks: float, interval: str) -> float:
    """Return a stored power of the second table."""
    return PLAYED[seeds, tasks, of_seeds, of_tasks, interval].found / SIMULATIONS


def test_every_method_that_can_be_registered_is_measured_on_every_design() -> None:
    measured = {method.partition(",")[0] for method in OF_EPISODES.values()}
    assert measured == set(METHODS_SAY)
    expected = {
        (d.seeds, d.tasks, d.seed_deviation, d.task_deviation, name)
        for d in DESIGNS
        for name in (OF_EPISODES if d.seeds > 1 else OF_ONE_SEED)
    }
    assert set(PLAYED) == expected
    assert len(stored_played()) == len(expected)
    assert all(cell.simulations == SIMULATIONS for cell in stored_played())


@pytest.mark.parametrize("design", [Played(3, 50, 0.03, 0.1, ""), Played(1, 200, 0.0, 0.0, "")])
def test_the_stored_counts_of_episodes_come_out_again(design: Played) -> None:
    again = measure_played(design, ("student_tasks", "student", "crossed", "bca_tasks"))
    place = (design.seeds, design.tasks, design.seed_deviation, design.task_deviation)
    assert again == [PLAYED[*place, cell.interval] for cell in again]
    assert len(again) == (4 if design.seeds > 1 else 2)


@pytest.mark.parametrize("design", [d for d in DESIGNS if d.seed_deviation == 0])
def test_intervals_over_tasks_keep_their_level_where_policies_are_fixed(design: Played) -> None:
    for interval in OF_ONE_SEED:
        assert abs(covers(design.seeds, design.tasks, 0.0, design.task_deviation, interval) - 0.95) < 0.02


@pytest.mark.parametrize("design", [d for d in DESIGNS if d.task_deviation == 0 and d.seeds > 1])
def test_students_t_over_seeds_keeps_its_level_where_the_effect_is_that_of_every_task(design: Played) -> None:
    assert abs(covers(design.seeds, design.tasks, design.seed_deviation, 0.0, "student") - 0.95) < 0.02


@pytest.mark.parametrize("seeds", [5, 1])
def test_intervals_over_tasks_are_too_narrow_where_runs_differ(seeds: int) -> None:
    assert covers(seeds, 200, 0.03, 0.0, "student_tasks") < 0.92
    assert all(rate(0.1, number, "student_tasks") < 0.92 for number in SEEDS)


def test_crossed_resamples_are_too_wide_where_runs_do_not_differ_and_miss_what_tasks_show() -> None:
    assert covers(5, 200, 0.0, 0.0, "crossed") > 0.99
    assert finds(5, 200, 0.0, 0.0, "crossed") < 0.5
    assert finds(5, 200, 0.0, 0.0, "student_tasks") > 0.8


def test_a_power_is_that_of_the_normal_approximation() -> None:
    """Rates of 0.5 ± 0.25: an arm's episode varies by 0.25 - 0.0625 - 0.0009, and has 1000 episodes."""
    error = math.sqrt(2 * (0.25 - 0.25**2 - (EFFECT / 2) ** 2) / 1000)
    expected = NormalDist().cdf(EFFECT / error - NormalDist().inv_cdf(0.975))
    assert finds(5, 200, 0.0, 0.0, "student_tasks") == pytest.approx(expected, abs=0.03)


def test_episodes_have_the_gap_and_the_deviations_they_name() -> None:
    tables = np.concatenate([play(Played(8, 61, 0.03, 0.1, ""), block) for block in range(10)])
    assert set(np.unique(tables)) == {-1, 0, 1}
    assert tables.mean() == pytest.approx(EFFECT, abs=0.004)
    seeds, tasks = tables.mean(axis=2), tables.mean(axis=1)
    residual = tables - seeds[:, :, None] - tasks[:, None, :] + tables.mean(axis=(1, 2))[:, None, None]
    noise = (residual**2).sum() / (1000 * 7 * 60)
    assert (seeds.var(axis=1, ddof=1).mean() - noise / 61) ** 0.5 == pytest.approx(0.03, rel=0.15)
    assert (tasks.var(axis=1, ddof=1).mean() - noise / 8) ** 0.5 == pytest.approx(0.1, rel=0.05)


def test_intervals_of_episodes_made_by_the_block_are_the_estimators() -> None:
    tables = play(Played(3, 50, 0.03, 0.1, ""), 0)
    weights = draw_weights(3, 50, RESAMPLES, 7)
    by_t, by_bca, by_draws = (f(tables, weights, 0.95) for f in (student_tasks, bca_tasks, crossed))
    for number, d in enumerate(tables[:5]):
        totals = d.sum(axis=0).tolist()
        assert by_t[:, number] == pytest.approx(clustered_t_interval(totals, 3, 0.95), abs=1e-12)
        bca = clustered_bca_interval(totals, 3, draw_tasks(50, RESAMPLES, 7), 0.95)
        assert bca is not None
        assert by_bca[:, number].tolist() == [bca.low, bca.high]
        registered = counted_bootstrap(d, 1, weights, 0.95)
        assert by_draws[:, number].tolist() == [registered.low, registered.high]


def test_the_table_of_episodes_prints_what_covers_and_what_finds() -> None:
    lines = played_table(stored_played()).splitlines()
    cells = [PLAYED[5, 200, 0.0, 0.0, name] for name in OF_EPISODES]
    shown = " | ".join(f"{c.covered / 20:.1f} / {c.found / 20:.1f}" for c in cells)
    assert lines[4] == f"| 5 × 200 | 0 | 0 | {shown} |"
    assert len(lines) == 4 + len(DESIGNS)
