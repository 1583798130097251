"""Findings: borne by verdicts, with numbers that the registers give, and none in the words."""

import math
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import pytest

from tests.conftest import CHECKOUT
from toolkit import api
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.findings import PLACES, Finding, at, card_text, read_findings
from toolkit.places import Home
from toolkit.registers.study import open_study

ONE = """
[[finding]]
study = "published"
at = ["front", "card"]
text = "TEXT"
"""
MISSED = 'verdicts = { H2a = "miss" }\n'
QUERY = "query = \"SELECT count(*) AS n, 2.5 AS x, NULL AS nothing FROM runs WHERE role = 'replication'\"\n"


def told(folder: Path, case: Case, *, text: str = "It missed.", more: str = MISSED) -> tuple[Finding, ...]:
    (folder / "findings.toml").write_text(ONE.replace("TEXT", text) + more, encoding="utf-8")
    return read_findings(folder, [case])


def test_a_finding_is_told_with_its_numbers(tmp_path: Path, case: Case) -> None:
    assert read_findings(tmp_path, [case]) == ()
    numbers = "{H2a.estimate:+.4f}, {H2a.level:.0%} [{H2a.low:+.4f}, {H2a.high:+.4f}]"
    text = f"H2a: {numbers}, {{n}} run of a 2B model, {{x:.2f}}."
    (found,) = told(tmp_path, case, text=text, more=MISSED + QUERY)
    decision = case.decide("H2a").as_dict()
    assert decision["interval"]["level"] == 0.95
    ends = [f"{decision['interval'][end]:+.4f}" for end in ("low", "high")]
    assert found.text == f"H2a: +0.0370, 95% [{', '.join(ends)}], 1 run of a 2B model, 2.50."
    assert (found.study, found.rules, found.is_exploratory) == ("published", ("H2a",), False)


def test_a_criterion_an_endpoint_and_a_series_give_their_numbers(tmp_path: Path, case: Case) -> None:
    (found,) = told(tmp_path, case, text="{H2a.mean:.4f}, {c2_auc:.4f}")
    by_seed = case.decide("H2a").as_dict()["estimate"]["by_seed"].values()
    assert found.text == ", ".join(2 * [f"{mean(by_seed):.4f}"])


def test_what_no_verdict_bears_is_exploratory(tmp_path: Path, case: Case) -> None:
    (found,) = told(tmp_path, case, text="{n} was made again.", more=QUERY)
    assert (found.rules, found.is_exploratory) == ((), True)
    assert card_text([found], "published") == "- 1 was made again. (exploratory)"
    assert card_text([found], "embedded") == ""
    assert at([found], "front") == (found,)
    assert at([found], "theory") == at([found], "front", "embedded") == ()


def test_where_a_study_is_run_again_only_what_still_holds_is_told(tmp_path: Path, case: Case) -> None:
    two = ONE.replace("TEXT", "It missed.") + MISSED + ONE.replace("TEXT", "It passed.")
    (tmp_path / "findings.toml").write_text(two + 'verdicts = { H2a = "pass" }\n', encoding="utf-8")
    with pytest.raises(DamagedError, match="another verdict"):
        read_findings(tmp_path, [case])
    (found,) = read_findings(tmp_path, [case], holding_alone=True)
    assert found.text == "It missed."


def test_a_finding_of_another_study_is_left_out(tmp_path: Path, case: Case) -> None:
    (tmp_path / "findings.toml").write_text(ONE.replace("published", "elsewhere") + MISSED, encoding="utf-8")
    assert read_findings(tmp_path, [case]) == ()


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("It passed.", 'verdicts = { H2a = "pass" }\n', "another verdict"),
        ("It missed.", 'verdicts = { H9 = "miss" }\n', "a rule that its study lacks"),
        ("By 0.037.", MISSED, "a number stands"),
        ("By 4 points.", MISSED, "a number stands"),
        ("By 95%.", MISSED, "a number stands"),
        ("By {size}.", MISSED, "nothing fills"),
        ("By {H2a.size}.", MISSED, "nothing fills"),
        ("By {H1a.spurious_independent}.", MISSED, "nothing fills"),
        ("By {H1a.estimate}.", 'verdicts = { H1a = "pass" }\n', "nothing fills"),
        ("By {H1a.low}.", 'verdicts = { H1a = "pass" }\n', "nothing fills"),
        ("By {nothing}.", QUERY, "nothing fills"),
        ("By {H2a.estimate:d}.", MISSED, "does not fit"),
        ("By {n}.", 'query = "SELECT nowhere FROM runs"\n', "query is refused"),
        ("By {n}.", "query = \"COPY runs TO 'x'\"\n", "query is refused"),
        ("By {seed}.", 'query = "SELECT seed FROM runs"\n', "no single row"),
        ("It missed.", "", "cannot be read"),
        ("It missed.", MISSED + 'verdict = "H2a"\n', "cannot be read"),
    ],
)
def test_a_finding_that_is_not_borne_is_refused(tmp_path, case, text, more, said) -> None:
    with pytest.raises(DamagedError, match=said) as refused:
        told(tmp_path, case, text=text, more=more)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "finding =",
        "[[findings]]",
        ONE.replace('"front", "card"', '"nowhere"'),
        ONE.replace('"front", "card"', ""),
    ],
)
def test_a_list_that_cannot_be_read_is_damaged(tmp_path: Path, case: Case, text: str) -> None:
    (tmp_path / "findings.toml").write_text(text + MISSED, encoding="utf-8")
    with pytest.raises(DamagedError, match="findings cannot be read"):
        read_findings(tmp_path, [case])


@pytest.fixture(scope="module")
def shipped(home: Home) -> tuple[Finding, ...]:
    return read_findings(CHECKOUT / "cards", api.load_cases((), home))


def words(shipped: tuple[Finding, ...], begin: str) -> str:
    (found,) = {one.text for one in shipped if one.text.startswith(begin)}
    return found


@pytest.mark.slow
def test_every_study_tells_what_it_found_and_every_place_shows_something(shipped) -> None:
    studies = ["published", "embedded", "coupled", "map", "bfcl", "tiny-lm", "small-lm"]
    assert list(dict.fromkeys(one.study for one in shipped)) == studies
    for study in studies:
        assert at(shipped, "front", study)
        assert at(shipped, "study", study)
    assert {place for one in shipped for place in one.at} == set(PLACES)
    assert {one.study for one in at(shipped, "paper")} == {"bfcl", "coupled", "map", "tiny-lm"}


@pytest.mark.slow
def test_every_hypothesis_that_the_tiny_study_missed_is_told(shipped, home) -> None:
    missed = {row["rule"] for row in study_rows(home, "tiny-lm", "decisions") if row["verdict"] == "miss"}
    assert missed == {rule for one in at(shipped, "card", "tiny-lm") for rule in one.rules}
    assert {"H1a", "H1b"} <= {rule for one in at(shipped, "front", "tiny-lm") for rule in one.rules}


@pytest.mark.slow
def test_every_verdict_of_the_later_studies_is_told_on_their_cards(shipped, home) -> None:
    for study in ("bfcl", "coupled", "map", "small-lm"):
        decided = {row["rule"] for row in study_rows(home, study, "decisions")}
        assert decided - {rule for one in at(shipped, "card", study) for rule in one.rules} <= {"I1"}


def study_rows(home: Home, study: str, table: str) -> list[Any]:
    return open_study(home.study_folder(study)).rows(table)


@pytest.mark.slow
def test_the_companions_pairs_are_those_of_its_rows(shipped: tuple[Finding, ...], home: Home) -> None:
    regimes = {"C2": "faults_p025", "C4": "clean", "C2o": "faults_p025_outage_heavy"}
    runs = {row["run_id"]: row for row in study_rows(home, "embedded", "runs") if row["seed"] >= 100}
    rates: dict[tuple[str, int, str], dict[int, Fraction]] = {}
    for row in study_rows(home, "embedded", "evaluations"):
        run = runs.get(row["run_id"])
        if run and row["phase"] == "periodic" and row["regime"] == regimes[run["condition"]]:
            place = rates.setdefault((run["condition"], run["seed"], run["arm"]), {})
            place[row["step"]] = Fraction(row["successes"], row["episodes"])
    areas = {key: area(points) for key, points in rates.items()}
    gaps = [areas[c, s, "paired"] - areas[c, s, "independent"] for c, s, arm in areas if arm == "paired"]
    t = mean(gaps) / (stdev(gaps) / math.sqrt(len(gaps)))
    text = words(shipped, "All 60 pairs of the companion together")
    assert f"AUC {mean(gaps):+.4f}, t = {t:.1f}, higher in {sum(gap > 1e-12 for gap in gaps)} pairs" in text
    assert len(gaps) == 60


@pytest.mark.slow
def test_the_learning_model_s_numbers_are_those_of_its_episodes(shipped, home) -> None:
    played: dict[tuple[str, str, int, int], list[bool]] = {}
    runs = {row["run_id"]: row for row in study_rows(home, "small-lm", "runs")}
    for row in study_rows(home, "small-lm", "episodes"):
        run = runs[row["run_id"]]
        place = (run["condition"], run["arm"], run["seed"], row["step"])
        played.setdefault(place, []).append(row["true_success"])

    def success(condition: str, step: int) -> float:
        return mean(
            won for (c, _, _, s), wins in played.items() if (c, s) == (condition, step) for won in wins
        )

    text = words(shipped, "The model learns")
    assert f"from {success('C2', 0):.1%} to {success('C2', 15):.1%} success under tool faults" in text
    assert f"from {success('C4', 0):.1%} to {success('C4', 15):.1%} without faults" in text
    assert f"to {success('C0', 15):.1%} where nothing disturbs it" in text
    levels: dict[tuple[str, int], dict[int, float]] = {}
    for (condition, arm, seed, step), wins in played.items():
        if condition == "C2":
            levels.setdefault((arm, seed), {})[step] = mean(wins)
    areas = {key: area(points, 15) for key, points in levels.items()}
    gaps = [areas["paired", seed] - areas["independent", seed] for arm, seed in areas if arm == "paired"]
    text = words(shipped, "Pairing makes no difference that matters: with samples")
    assert f"AUC is {mean(gaps):+.4f} under tool faults" in text
    assert f"{sum(gap < -1e-12 for gap in gaps)} of {len(gaps)} pairs are below zero" in text
    constant: dict[tuple[str, str], list[bool]] = {}
    for row in study_rows(home, "small-lm", "groups"):
        run = runs[row["run_id"]]
        alike = len(set(row["observed_rewards"])) == 1
        constant.setdefault((run["condition"], run["arm"]), []).append(alike)
    shares = {place: f"{mean(alike):.0%}" for place, alike in constant.items()}
    text = words(shipped, "Of the paired groups under tool faults")
    assert f"faults {shares['C2', 'paired']} have" in text
    assert f"independent ones {shares['C2', 'independent']}" in text
    assert f"flips {shares['C4', 'paired']} and {shares['C4', 'independent']}" in text


def area(points: dict[int, Fraction] | dict[int, float], last: int = 100) -> float:
    """Return the trapezoidal mean of a curve over the steps to the last."""
    steps = sorted(points)
    return sum(float(points[a] + points[b]) / 2 * (b - a) for a, b in pairwise(steps)) / last


def norms(home: Home, study: str, scored: str) -> dict[bool, list[float]]:
    """Return squared score norms of the untrained policy's clean rollouts, by true success."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for row in study_rows(home, study, "probe_gram"):
        if (row["trajectory"], row["noise"], row["scored"]) == ("base", "outcome", scored):
            gram = np.zeros((len(row["rewards"]),) * 2)
            gram[np.triu_indices(len(gram))] = row["gram"]
            for reward, norm in zip(row["rewards"], np.diag(gram), strict=True):
                found[reward].append(float(norm))
    return found


@pytest.mark.slow
def test_silent_successes_are_those_of_the_gram_matrices(shipped: tuple[Finding, ...], home: Home) -> None:
    tiny, text = norms(home, "tiny-lm", "all"), words(shipped, "Silent successes")
    assert f"norm is {median(tiny[True]):.2f} before training, a failure's {median(tiny[False]):.0f}" in text
    sides = {
        row["trajectory"]: row["condition_left"] / row["condition_right"]
        for row in study_rows(home, "tiny-lm", "probe")
        if row["noise"] == "outcome" and row["estimator"] == "MC"
    }
    trained = sorted(sides[f"c2-paired-s{seed}"] for seed in (0, 1))
    assert f"Seen are {sides['base']:.1f} before training and {trained[0]:.1f} to {trained[1]:.1f}" in text
    acted, text = norms(home, "embedded", "actions"), words(shipped, "What the probe says")
    assert f"{median(acted[True]):.4f} of a success, {median(acted[False]):.2f} of a failure" in text


@pytest.mark.slow
def test_the_spurious_groups_are_those_of_the_tiny_studys_rows(shipped, home) -> None:
    groups = [
        row["observed_rewards"]
        for row in study_rows(home, "tiny-lm", "groups")
        if row["run_id"].startswith("c4-independent") and all(row["true_successes"])
    ]
    varying, flips = sum(len(set(rewards)) > 1 for rewards in groups), sum(r.count(False) for r in groups)
    law = 1 - 0.9**8 - 0.1**8
    n = len(groups)
    chance = [math.comb(n, k) * law**k * (1 - law) ** (n - k) for k in range(n + 1)]
    outside = sum(p for k, p in enumerate(chance) if abs(k / n - 0.57) > 0.07)
    text = words(shipped, "The counts miss by one number")
    assert f"{varying} of {n} all-correct groups" in text
    assert f"{varying / n:.2f}, where flips at their registered rate give {law:.2f}" in text
    assert f"{flips} of these groups' {8 * n} rewards are flipped, where {0.8 * n:.0f} are expected" in text
    assert f"a probability of {sum(chance[varying:]):.1%}" in text
    assert f"leave the registered window {outside:.0%} of the time" in text


@pytest.mark.slow
def test_the_tiny_model_does_not_learn_by_its_rows(shipped: tuple[Finding, ...], home: Home) -> None:
    rows = [r for r in study_rows(home, "tiny-lm", "evaluations") if r["phase"] == "periodic"]
    rows.sort(key=lambda row: (row["regime"], row["step"]))
    success = {}
    for place, some in groupby(rows, key=lambda row: (row["regime"], row["step"])):
        held = list(some)
        success[place] = sum(r["successes"] for r in held) / sum(r["episodes"] for r in held)
    text = words(shipped, "The model does not learn")
    for regime in ("clean", "faults_p025"):
        assert f"{success[regime, 0]:.1%}" in text
        assert f"{success[regime, 8]:.1%}" in text
        assert success[regime, 8] - success[regime, 0] < 0.01


@pytest.mark.slow
def test_what_rules_estimate_is_told_as_the_registers_store_it(shipped, home) -> None:
    stored = {
        row["rule"]: row for study in ("coupled", "map") for row in study_rows(home, study, "decisions")
    }
    ends = {
        rule: f"({row['low']:+.4f} to {row['high']:+.4f})"
        for rule, row in stored.items()
        if row["low"] is not None
    }
    text = words(shipped, "Under tool faults pairing slows")
    assert f"{stored['D1']['estimate']:+.4f} (95% interval {ends['D1'][1:]}" in text
    assert f"{stored['D2']['estimate']:+.4f} {ends['D2']}" in text
    text = words(shipped, "As predicted, shared samples cut the variance")
    for rule in ("V1", "V2", "V3"):
        assert f"{stored[rule]['estimate']:.0f}" in text
        assert f"{stored[rule]['low']:.0f} to {stored[rule]['high']:.0f})" in text
    assert f"{stored['regression']['estimate']:.2f}" in words(shipped, "The drift ratio")
    text = words(shipped, "For a log-linear policy, a lower trace")
    assert f"The difference is {stored['ranks']['estimate']:.2f}" in text
    text = words(shipped, "Equal variance is not equal learning")
    assert (
        f"AUC {stored['equal_variance']['estimate']:+.4f} (90% interval {ends['equal_variance'][1:]}" in text
    )
    below = sum(gap < 0 for gap in gaps_of(home, "faults-g4"))
    assert f"only in {below} of 24 pairs" in words(shipped, "One such prediction missed")


def gaps_of(home: Home, condition: str) -> list[float]:
    """Return paired minus independent AUC of a cell of the map, seed by seed."""
    areas: dict[tuple[int, str], dict[int, float]] = {}
    for row in study_rows(home, "map", "evaluations"):
        if row["condition"] == condition:
            areas.setdefault((row["seed"], row["arm"]), {})[row["step"]] = row["successes"] / row["episodes"]
    of = {key: area(points) for key, points in areas.items()}
    return [of[seed, "paired"] - of[seed, "independent"] for seed, arm in of if arm == "paired"]
