"""What the README says of size and power is stored; exact tests keep their level, and come out again."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.conftest import CHECKOUT
from tests.golden.measure_tests import (
    ADJUSTMENTS,
    DESIGNS,
    EFFECT,
    FAMILY,
    SEED_DEVIATIONS,
    SIMULATIONS,
    TESTS,
    WITH_EFFECT,
    applies,
    families,
    measure,
    null,
    stored,
    table,
)

CELLS, FAMILIES = stored()
BY_CELL = {(c.test, c.seeds, c.tasks, c.seed_deviation, c.effect): c.rejected / c.simulations for c in CELLS}
TEXT = (CHECKOUT / "toolkit/estimators/README.md").read_text(encoding="utf-8")
LEVEL = 0.05
ERROR = math.sqrt(LEVEL * (1 - LEVEL) / SIMULATIONS)
EXACT = [test for test in TESTS if test != "equivalence"]


def test_the_readme_has_what_is_stored() -> None:
    assert table(CELLS, FAMILIES) in TEXT


def test_every_cell_is_stored_once() -> None:
    expected = {
        (test, *design, deviation, effect)
        for test in TESTS
        for design in DESIGNS
        for deviation in SEED_DEVIATIONS
        for effect in (0.0, EFFECT)
        if applies(test, design[0])
    }
    assert set(BY_CELL) == expected
    assert len(CELLS) == len(expected)
    assert {(f.method, f.with_effect, f.families) for f in FAMILIES} == {
        (method, number, SIMULATIONS) for method in ADJUSTMENTS for number in (0, WITH_EFFECT)
    }


@pytest.mark.parametrize("test", EXACT)
def test_an_exact_test_keeps_its_level_where_its_null_hypothesis_holds(test: str) -> None:
    sizes = [
        size
        for (name, _, _, deviation, effect), size in BY_CELL.items()
        if name == test and effect == 0 and null(test, deviation)
    ]
    assert sizes
    assert max(sizes) <= LEVEL + 3 * ERROR


def test_fewer_than_six_seeds_never_reject() -> None:
    for test in ("sign flip over seeds", "Wilcoxon over seeds"):
        for seeds, tasks in ((5, 200), (3, 50)):
            assert {BY_CELL[test, seeds, tasks, d, e] for d in SEED_DEVIATIONS for e in (0.0, EFFECT)} == {0}


def test_where_seeds_have_effects_tests_over_tasks_do_not_keep_their_level() -> None:
    assert BY_CELL["sign flip over tasks", 5, 200, 0.034, 0.0] > LEVEL + 3 * ERROR
    assert BY_CELL["McNemar", 1, 200, 0.034, 0.0] > LEVEL + ERROR


def test_mcnemars_size_is_what_the_binomial_distribution_gives() -> None:
    """Rates uniform from 0.2 to 0.8 leave a pair discordant with the chance 2 E[r (1 - r)] = 0.44."""
    chance = 2 * (0.5 - (0.6**2 / 12 + 0.25))
    discordant = np.arange(201)
    # The most that one side may have of them for both tails to be at most the level.
    at_most = stats.binom.ppf(LEVEL / 2, discordant, 0.5)
    at_most -= 2 * stats.binom.cdf(at_most, discordant, 0.5) > LEVEL
    rejected = 2 * stats.binom.cdf(at_most, discordant, 0.5)
    expected = float((stats.binom.pmf(discordant, 200, chance) * rejected).sum())
    assert BY_CELL["McNemar", 1, 200, 0.0, 0.0] == pytest.approx(expected, abs=4 * ERROR)


def test_a_family_keeps_what_it_bounds() -> None:
    for family in FAMILIES:
        assert family.false_share <= LEVEL + 3 * ERROR
        if family.method == "holm":
            assert family.any_false / family.families <= LEVEL + 3 * ERROR
    found = {f.method: f.found for f in FAMILIES if f.with_effect}
    assert found["benjamini-hochberg"] >= found["holm"]


def test_the_stored_counts_come_out_again() -> None:
    again = measure(8, 61, 0.034, EFFECT, ("sign flip over seeds", "Wilcoxon over seeds", "equivalence"))
    assert [cell for cell in CELLS if cell in again] == again


def test_other_families_fare_alike() -> None:
    for here, there in zip(families(WITH_EFFECT, SIMULATIONS, 400), FAMILIES[-2:], strict=True):
        assert here.method == there.method
        assert here.found == pytest.approx(there.found, abs=4 * math.sqrt(0.25 / (400 * FAMILY)) + 0.05)
