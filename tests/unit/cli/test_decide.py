"""What deciding and power print of intervals, tests and seeds."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.architecture.test_house_rules import imported_by
from tests.conftest import Toolkit
from tests.unit.decisions.rows_study import registered_study
from tests.unit.decisions.study import amendment, rule
from toolkit.cli.decide import _more_lines, notes
from toolkit.decisions.case import Case, Explanation
from toolkit.decisions.engine import Engine
from toolkit.drafting import power as simulated
from toolkit.drafting.power import Power, harder, needed, spread_range, warnings
from toolkit.drafting.simulation import Design
from toolkit.registers.study import open_study
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import replace


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, case: Case) -> Path:
    return registered_study(tmp_path_factory.mktemp("plain"), case).folder


def test_a_computed_interval_is_printed_with_its_errors(toolkit: Toolkit, plain: Path) -> None:
    (decision,) = toolkit("decide", "H2a", "--study", plain, "--json").json()
    interval = decision["interval"]
    assert (interval["source"], interval["resamples"]) == ("computed", 10000)
    assert 0 < interval["low_error"] < 0.005
    assert 0 < interval["high_error"] < 0.005


def test_people_read_where_intervals_come_from(toolkit: Toolkit, plain: Path) -> None:
    computed = "computed from episode rows, 10,000 resamples"
    assert f"], {computed}: includes zero" in toolkit("decide", "H2a", "--study", plain).out
    assert f"Intervals are {computed}." in toolkit("decide", "--all", "--study", plain).out


def test_every_file_that_is_named_was_hashed_and_no_other_is(toolkit: Toolkit, plain: Path) -> None:
    (decision,) = toolkit("decide", "H2a", "--study", plain, "--json").json()
    named = {file: sha256 for read in decision["registers"] for file, sha256 in read["files"].items()}
    assert named == {file: hashlib.sha256((plain / file).read_bytes()).hexdigest() for file in named}
    runs = {f"episodes/C2-{arm}-{seed}.parquet" for arm in ("paired", "independent") for seed in (0, 1, 2)}
    assert {file for file in named if file.startswith("episodes/")} == runs
    whole = {read["config"]: read["sha256"] for read in decision["registers"]}
    assert (whole["episodes"], whole["evaluations"]) == (None, open_study(plain).sha256("evaluations"))


def test_explain_says_what_an_interval_was_computed_from(toolkit: Toolkit, plain: Path) -> None:
    out = toolkit("explain", "H2a", "--study", plain).out
    assert "Interval   computed from episode rows, 10,000 resamples: percentile bootstrap" in out
    assert "Register   episodes 6 files, each hashed when it was read" in out


def test_a_close_call_is_loud(case: Case) -> None:
    close = replace(case.decide("H2a"), close_calls=("a test could turn",))
    assert "H2a: CLOSE CALL: a test could turn" in notes([close])


def test_computing_an_interval_imports_nothing_that_it_could_do_without(plain: Path) -> None:
    packages = imported_by(f"decide H2a --study {plain} --json")
    assert not {"pandas", "polars", "scipy", "rich"} & packages


TESTED = """
[tests.flip]
endpoint = "c2_auc"
method = "sign flip"
over = "seeds"
alternative = "two-sided"

[intervals.c2_90]
endpoint = "c2_auc"
level = "0.90"
method = "t over seeds"
"""


def test_explain_says_each_test_and_the_level_of_a_margin(case: Case) -> None:
    tests = rule("S", "p(flip) <= 0.5", "equivalent(c2_90, 0.3)")
    added = amendment("A9", 'adds = ["S"]', TESTED, tests)
    book = load_rulebook(case.registration.rules, [*(a.rules for a in case.registration.amendments), added])
    decision = Engine(book, (case.registration.name, ""), case.engine.registers).decide("S")
    made = {name: getattr(decision, name) for name in decision.__struct_fields__}
    more = {"text": "", "confidence": None, "readings_text": None, "endpoints": (), "deviations": ()}
    explained = Explanation(**made, **more)  # type: ignore[arg-type]
    lines = list(_more_lines(explained))
    assert "equivalence at ±0.3: two one-sided tests (TOST) at 5% each" in "\n".join(lines)
    (said,) = (line for line in lines if line.startswith("Test"))
    assert said.startswith(
        "Test       flip of c2_auc: p = 0.5 (sign-flip test over seeds, exact over all signs"
    )


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
