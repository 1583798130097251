"""What the README says of coverage, size and power is stored, has its causes, and comes out again."""

import math
import re

import pytest

from tests.conftest import CHECKOUT
from tests.golden import measure_coverage as of
from tests.golden import measure_drift_coverage, measure_seed_coverage, measure_tests
from tests.golden.measure_coverage import DESIGNS, OF_EPISODES, OF_ONE_SEED, SEEDS, SIMULATIONS, Played
from tests.golden.measure_tests import EFFECT, SEED_DEVIATIONS, TESTS, WITH_EFFECT
from toolkit.rules.endpoints import METHODS_SAY

DIFFERENCES, EPISODES = of.stored()
CELLS = {(c.task_deviation, c.seeds, c.interval, c.level): c for c in DIFFERENCES}
PLAYED = {(c.seeds, c.tasks, c.seed_deviation, c.task_deviation, c.interval): c for c in EPISODES}
ERROR = math.sqrt(0.95 * 0.05 / SIMULATIONS)
TEXT = (CHECKOUT / "toolkit/estimators/README.md").read_text(encoding="utf-8")


def rate(task_deviation: float, seeds: int, interval: str, level: float = 0.95) -> float:
    """Return a stored coverage."""
    return CELLS[task_deviation, seeds, interval, level].covered / SIMULATIONS


def test_every_cell_is_stored_once_and_every_method_that_can_be_registered_is_measured() -> None:
    expected = {(d, s, i, level) for d in of.TASK_DEVIATIONS for s in SEEDS for _, i, level in of.COLUMNS}
    assert (set(CELLS), len(DIFFERENCES)) == (expected, len(expected))
    played = {
        (d.seeds, d.tasks, d.seed_deviation, d.task_deviation, name)
        for d in DESIGNS
        for name in (OF_EPISODES if d.seeds > 1 else OF_ONE_SEED)
    }
    assert (set(PLAYED), len(EPISODES)) == (played, len(played))
    assert all(0 <= c.covered <= c.simulations == SIMULATIONS for c in (*DIFFERENCES, *EPISODES))
    assert {method.partition(",")[0] for method in OF_EPISODES.values()} == set(METHODS_SAY)


@pytest.mark.slow
def test_the_stored_counts_come_out_again() -> None:
    columns = [column for column in of.COLUMNS if column[1] in {"crossed", "seeds_only", "student"}]
    again = of.measure(0.1, 3, columns)
    assert again == [CELLS[0.1, 3, interval, level] for _, interval, level in columns]


def near(level: float) -> tuple[float, float]:
    error = 3 * math.sqrt(level * (1 - level) / SIMULATIONS)
    return level - error, level + error


@pytest.mark.parametrize(
    ("cell", "least", "most"),
    [
        # Three seeds' interval is hardly wider than their range, which misses the median in 2 of 8 cases.
        ((0.0, 3, "seeds_only"), *near(0.75)),
        ((0.1, 3, "seeds_only"), 0, 0.76),
        ((0.0, 2, "seeds_only"), *near(0.5)),
        # Student's t is exact where tasks add nothing; more seeds narrow it about the mean of these 64 tasks.
        *(((0.0, seeds, "student"), *near(0.95)) for seeds in SEEDS),
        ((0.1, 2, "student"), 0.9, 1),
        ((0.1, 20, "student"), 0, 0.8),
        ((0.1, 20, "crossed"), *near(0.95)),
        ((0.1, 20, "crossed", 0.9), *near(0.9)),
        *(((deviation, 3, "crossed"), 0.9, 0.95 - 2 * ERROR) for deviation in of.TASK_DEVIATIONS),
        *(((0.1, seeds, "student_tasks"), 0, 0.92) for seeds in SEEDS),
    ],
)
def test_an_interval_covers_as_its_model_says(cell: tuple, least: float, most: float) -> None:
    assert least < rate(*cell) < most


@pytest.mark.slow
@pytest.mark.parametrize("design", [Played(3, 50, 0.03, 0.1, ""), Played(1, 200, 0.0, 0.0, "")])
def test_the_stored_counts_of_episodes_come_out_again(design: Played) -> None:
    again = of.measure_played(design, ("student_tasks", "student", "crossed", "bca_tasks"))
    place = (design.seeds, design.tasks, design.seed_deviation, design.task_deviation)
    assert again == [PLAYED[*place, cell.interval] for cell in again]
    assert len(again) == (4 if design.seeds > 1 else 2)


# --------------------------------------------------------------------------- of seeds, and of the drift ratio

SAID = {name: float(share) for name, share in re.findall(r"^\| (a .*?) \| ([\d.]+) \|$", TEXT, re.MULTILINE)}
AGAIN = 400


def test_every_case_of_seeds_is_said_once() -> None:
    assert set(SAID) == set(measure_seed_coverage.CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_an_interval_of_seeds_covers_as_often_as_is_said(name: str) -> None:
    """Other simulations than the table's: their difference is within four standard errors."""
    said = SAID[name] / 100
    error = math.sqrt(said * (1 - said) * (1 / SIMULATIONS + 1 / AGAIN))
    assert abs(measure_seed_coverage.covered(name, AGAIN, SIMULATIONS) / AGAIN - said) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "percentiles", "interval"), [(2, 88.5, 94.0), (24, 21.0, 89.0)])
def test_the_readme_says_how_often_intervals_cover(batch: int, percentiles: float, interval: float) -> None:
    """Three Monte Carlo errors of 200 simulations, the libraries of another machine being others."""
    *_, by_percentiles, covered = measure_drift_coverage.measure(64, batch, common=True)
    for found, printed in ((by_percentiles, percentiles), (covered, interval)):
        assert found == pytest.approx(printed, abs=300 * math.sqrt(0.25 / 200))
    assert re.search(rf"\| 64 \| {batch} \| common \|.*\| {percentiles} \| {interval} \|", TEXT)


# ------------------------------------------------------------------------------------------ size and power

TESTED, FAMILIES = measure_tests.stored()
BY_CELL = {(c.test, c.seeds, c.tasks, c.seed_deviation, c.effect): c.rejected / c.simulations for c in TESTED}
LEVEL = 0.05


def test_the_readme_has_every_test_and_family_that_is_stored() -> None:
    assert measure_tests.table(TESTED, FAMILIES) in TEXT
    expected = {
        (test, *design, deviation, effect)
        for test in TESTS
        for design in measure_tests.DESIGNS
        for deviation in SEED_DEVIATIONS
        for effect in (0.0, EFFECT)
        if measure_tests.applies(test, design[0])
    }
    assert (set(BY_CELL), len(TESTED)) == (expected, len(expected))
    assert {(f.method, f.with_effect, f.families) for f in FAMILIES} == {
        (method, number, SIMULATIONS) for method in measure_tests.ADJUSTMENTS for number in (0, WITH_EFFECT)
    }


@pytest.mark.parametrize("test", [test for test in TESTS if test != "equivalence"])
def test_an_exact_test_keeps_its_level_where_its_null_hypothesis_holds(test: str) -> None:
    sizes = [
        size
        for (name, _, _, deviation, effect), size in BY_CELL.items()
        if name == test and effect == 0 and measure_tests.null(test, deviation)
    ]
    assert max(sizes) <= LEVEL + 3 * ERROR


@pytest.mark.slow
def test_the_stored_rejections_come_out_again() -> None:
    tests = ("sign flip over seeds", "Wilcoxon over seeds", "equivalence")
    again = measure_tests.measure(8, 61, 0.034, EFFECT, tests)
    assert [cell for cell in TESTED if cell in again] == again
