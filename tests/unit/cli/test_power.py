"""`toolkit power`: the table for people, the document for machines, and bad input; `toolkit rehearse`."""

import numpy as np
import pytest
from scipy import stats

from tests.conftest import Toolkit
from toolkit.decisions.case import Case
from toolkit.drafting import power as simulated
from toolkit.drafting.power import Power, harder, needed, spread_range, warnings
from toolkit.drafting.simulation import Design
from toolkit.structs import replace

FAST = ("--simulations", "10", "--seeds", "3")


def test_people_are_told_how_exact_shares_are_and_what_more_simulations_give(toolkit: Toolkit) -> None:
    asked = ("power", "H2a", "--seeds", 3, "--effect", 0.03, "--simulations", 100)
    (result,) = toolkit(*asked, "--json").json()["results"]
    error = 100 * (result["pass_probability"] * (1 - result["pass_probability"]) / 100) ** 0.5
    last = toolkit(*asked).out.splitlines()[-1]
    assert last.startswith(f"simulated 100 times, which gives shares to ±{error:.1f} points")
    assert f"--simulations 1000 gives ±{error / 10**0.5:.1f} and takes about " in last


def test_intervals_are_the_same_however_many_studies_are_bootstrapped_at_once(toolkit, monkeypatch) -> None:
    asked = ("power", "H2a", "--seeds", 5, "--effect", 0.03, "--simulations", 40, "--json")
    together = toolkit(*asked).json()
    monkeypatch.setattr(simulated, "BATCH", 1)
    assert toolkit(*asked).json() == together


def test_the_range_of_the_spread_is_the_chi_squares() -> None:
    observed = (0.05390625, -0.0015625, 0.05859375)
    deviation = np.std(observed, ddof=1)
    expected = [deviation * (2 / stats.chi2.ppf(p, 2)) ** 0.5 for p in (0.975, 0.025)]
    assert spread_range(observed) == pytest.approx(expected)


def test_a_given_spread_of_the_seeds_is_simulated(toolkit: Toolkit) -> None:
    asked = ("power", "H2a", *FAST, "--simulations", 40, "--effect", 0.06, "--json", "--seed-sd")
    wide, none = (toolkit(*asked, sd).json() for sd in (0.06, 0))
    assert wide["assumed"]["seed_sd"] == 0.06
    assert wide["results"][0]["pass_probability"] < none["results"][0]["pass_probability"]


def test_an_interval_that_does_not_cover_what_it_says_is_warned_of(toolkit: Toolkit) -> None:
    """Seeds that do not differ: the registered interval counts the episodes' noise more than once."""
    common = ("power", "H2a", "--effect", 0.03)
    asked = (*common, "--simulations", 300, "--seeds", 10, "--seed-sd", 0)
    same = toolkit(*asked, "--json").json()
    differ = toolkit(*common, "--simulations", 100, "--seeds", 3, "--seed-sd", 0.034, "--json").json()
    coverage = same["results"][0]["coverage"]
    assert coverage > 0.99
    (warning,) = same["warnings"]
    assert warning.startswith("c2_auc_95 is wider than it says, and misses effects: ")
    assert f"{coverage:.1%} with 10 seeds at +0.030, and says 95%" in warning
    assert differ["warnings"] == []
    assert f"warning: {warning[:40]}" in toolkit(*asked).out


def test_the_range_of_a_single_seed_is_not_known() -> None:
    assert spread_range((0.05,)) is None


def test_too_narrow_is_said_apart_from_too_wide(case: Case) -> None:
    wide = Power(Design(0.0, 0.0, 0.0, 1, None, 1000, 1), 0, 1000, 0, None, None, {}, 0.95)
    narrow = replace(wide, covered=800)
    said = warnings(case.book.rule("H2a"), [wide, narrow])
    assert ["wider" in said[0], "100.0% with 1 seed at +0.000" in said[0]] == [True, True]
    assert ["narrower" in said[1], "80.0%" in said[1], len(said)] == [True, True, 2]


def power(seeds: int, passed: int) -> Power:
    return Power(Design(0.03, 0.0, 0.0, seeds, None, 1000, 1), passed, None, None, None, None, {})


def test_the_fewest_seeds_that_reach_the_target_are_named() -> None:
    found = [power(20, 990), power(5, 850), power(3, 400)]
    assert needed(found, 0.03, 0.8) == 5
    assert needed(found, 0.03, 0.999) is None
    assert needed(found, 0.05, 0.8) is None


def test_a_rule_that_more_seeds_make_harder_is_said_to_be_so() -> None:
    assert harder([power(3, 400), power(20, 20)], 0.03)
    assert not harder([power(3, 400), power(20, 395)], 0.03)
    assert not harder([power(3, 20), power(20, 400)], 0.03)
