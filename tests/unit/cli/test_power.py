"""`toolkit power`: the table for people, the document for machines, and bad input; `toolkit rehearse`."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.conftest import Toolkit, run
from toolkit.decisions.case import Case
from toolkit.drafting import power as simulated
from toolkit.drafting.power import Power, harder, needed, spread_range, warnings
from toolkit.drafting.simulation import Design
from toolkit.places import HOME_VARIABLE
from toolkit.structs import replace

FAST = ("--simulations", "10", "--seeds", "3")


def test_the_document_has_a_result_for_each_effect_and_number_of_seeds(toolkit: Toolkit) -> None:
    done = toolkit("power", "H2a", *FAST, "--seeds", 5, "--effect", 0, "--effect", 0.05, "--json").json()
    assert [(r["effect"], r["seeds"]) for r in done["results"]] == [(0, 3), (0, 5), (0.05, 3), (0.05, 5)]
    assert set(done["seeds_needed"]) == {"0.0", "0.05"}
    assert done["results"][0]["type_s"] is None
    assert all(0 <= r["pass_probability"] <= 1 for r in done["results"])
    assert done["label"] == "simulated: it changes no verdict"


def test_people_see_what_was_fitted_and_what_was_assumed(toolkit: Toolkit) -> None:
    out = toolkit("power", "H2a", *FAST).out
    assert "fitted to published" in out
    # None, the threshold and twice that.
    rows = [line.split() for line in out.splitlines() if line.startswith("+")]
    assert [row[0] for row in rows] == ["+0.000", "+0.030", "+0.060"]
    assert "task sd at most 0.25, assumed" in out
    assert "to pass with probability 0.8 at +0.030: no number of seeds simulated here is enough" in out


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


def test_a_single_seed_is_refused_where_the_interval_is_one_of_seeds(toolkit: Toolkit) -> None:
    refused = toolkit("power", "H2a", "--seeds", 1, "--effect", 0, "--simulations", 10)
    assert refused.code == 2
    assert "with one, intervals by t over tasks or bca bootstrap" in refused.err


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


TASKS, SEEDS = 20, (0, 1, 2)
# Of twenty tasks the new way solves these many, seed by seed, and the old way ten.
SOLVED = {("new", 0): 15, ("new", 1): 14, ("new", 2): 16, **{("old", seed): 10 for seed in SEEDS}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{arm},{seed},{task},{int(task < solved)},2026-01-31T12:00:00Z"
        for (arm, seed), solved in SOLVED.items()
        for task in range(TASKS)
    ]
    text = "\n".join(["strategy,seed,task,success,started_at", *rows])
    (tmp_path / "pilot.csv").write_text(text + "\n", encoding="utf-8")
    assert run("new-study", "mine", "--table", "pilot.csv", "--baseline", "old", "--into", ".").code == 0
    return tmp_path


def change(project: Path, *changes: tuple[str, str]) -> None:
    rules = project / "prereg/mine/rules.toml"
    text = rules.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    rules.write_text(text, encoding="utf-8")


def test_what_a_pilot_would_decide_is_shown_and_decides_nothing(project: Path) -> None:
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()
    (decision,) = done["decisions"]
    assert decision["estimate"]["by_seed"] == {"0": 0.25, "1": 0.2, "2": 0.3}
    assert decision["verdict"] == "pass"
    assert done["standing"] == "rehearsed on a pilot: it decides nothing"
    assert list((project / "registers").iterdir()) == [project / "registers" / ".gitkeep"]
    page = Path(done["page"]).read_text(encoding="utf-8")
    assert page.count("it decides nothing") == 2
    assert "<svg" in page
    said = run("rehearse", "mine", "pilot.csv", "--simulations", "0").out
    assert "IT DECIDES NOTHING" in said


def test_the_draft_is_fitted_to_the_pilot_and_powered_as_registered(project: Path) -> None:
    seeds, tasks = "seeds = [0, 1, 2]", "tasks = 20"
    change(project, (seeds, "seeds = [10, 11, 12, 13, 14, 15, 16, 17]"), (tasks, "tasks = 200"))
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "60", "--json").json()
    assert "gap: seeds 0, 1, 2 instead of 10, 11, 12, 13, 14, 15, 16, 17" in done["fitted"]
    assert "gap: tasks 20 instead of 200" in done["fitted"]
    assert done["decisions"][0]["estimate"]["by_seed"]["1"] == 0.2
    effects = {power["effect"]: power for power in done["power"]["H1"]}
    assert list(effects) == [0.0, 0.05, 0.1]
    assert all(power["seeds"] == 8 for power in effects.values())
    assert effects[0.0]["pass_probability"] < 0.1 < effects[0.1]["pass_probability"]


def test_what_a_freeze_would_refuse_is_listed_at_once(project: Path) -> None:
    change(project, ('test = "lower(gap_95) > 0"', 'test = "mean(gap) >= -1"'), ("tasks = 20", "tasks = 1"))
    problems = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()["problems"]
    assert any("can never fail" in problem for problem in problems), problems
    assert any("could never be decided" in problem for problem in problems), problems


def test_rules_that_cannot_be_read_are_refused_with_the_reason(project: Path) -> None:
    change(project, ('method = "t over tasks"', 'method = "bayesian bootstrap"'))
    run("rehearse", "mine", "pilot.csv").refused(4, "bayesian bootstrap")


def test_numbers_of_the_pilot_are_marked_and_not_frozen(project: Path) -> None:
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()
    marked = [problem for problem in done["problems"] if "these numbers are the log's" in problem]
    assert len(marked) == 2
    for path in project.glob("prereg/mine/*"):
        text = path.read_text(encoding="utf-8").replace('"FILL IN', '"said')
        path.write_text(text, encoding="utf-8")
    run("freeze", "mine", "--demonstration").refused(2, "was not filled in")


def test_a_study_without_a_mapping_is_not_rehearsed(project: Path) -> None:
    (project / "mappings/mine.toml").unlink()
    run("rehearse", "mine", "pilot.csv").refused(3, "no mapping")
