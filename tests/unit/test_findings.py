"""Findings: borne by verdicts, with numbers that the registers give, and none in the words."""

from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit import cases
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
    return read_findings(CHECKOUT / "cards", cases.load_cases((), home))


@pytest.mark.slow
def test_every_study_tells_what_it_found_and_every_place_shows_something(shipped) -> None:
    studies = ["published", "embedded", "coupled", "map", "bfcl", "worlds", "tiny-lm", "small-lm"]
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
    for study in ("bfcl", "coupled", "map", "small-lm", "worlds"):
        decided = {row["rule"] for row in study_rows(home, study, "decisions")}
        assert decided - {rule for one in at(shipped, "card", study) for rule in one.rules} <= {"I1"}


def study_rows(home: Home, study: str, table: str) -> list[Any]:
    return open_study(home.study_folder(study)).rows(table)
