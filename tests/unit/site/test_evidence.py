"""What a rule page says to its script: what was recorded, exactly, and nothing that lies beside it."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from tests.described import shipped
from tests.unit.decisions.rows_study import registered_study
from tests.unit.site.conftest import opened
from toolkit.decisions.case import Case
from toolkit.decisions.intervals import Interval
from toolkit.site.environment import WORDS, data, environment
from toolkit.site.pages.rule import Evidence, evidence_of
from toolkit.verification.registered import open_case

HOSTILE = "</script><script>alert(1)</script>\"'&{{ 7*7 }}"


@cache
def everything(study: str) -> dict[str, Evidence]:
    """Return what every rule page of a shipped study carries: made once, since it takes seconds."""
    case = opened(study)
    return {decision.rule: evidence_of(case, decision) for decision in case.decide_all()}


def said(case: Case, rule: str) -> Evidence:
    return evidence_of(case, case.decide(rule))


@pytest.mark.parametrize("study", ["tiny-lm", "published"])
def test_a_page_says_less_than_fifteen_kilobytes_and_no_row(study: str) -> None:
    for evidence in everything(study).values():
        written = data(evidence.document)
        assert len(written) < 15_000
        assert "run_id" not in written


def test_the_same_registers_give_the_same_bytes(embedded: Case) -> None:
    again = open_case(shipped("embedded"), embedded.registration, is_checked=True)
    for rule in ("H2a", "H1b"):
        assert said(again, rule) == said(embedded, rule)


def test_a_published_interval_comes_without_episodes_and_says_why(case: Case) -> None:
    evidence = said(case, "H2a")
    assert not evidence.document["resampled"]
    assert evidence.fixed == (
        "The interval c2_auc_95 stands as published: the episodes behind it were not published.",
    )


def test_a_gate_says_what_was_recorded_of_the_rules_that_it_names(case: Case) -> None:
    assert set(said(case, "gate2").document["recorded"]) == {"gate2", "H2a", "H2b"}


def test_the_recorded_numbers_are_exact(embedded: Case) -> None:
    interval = embedded.engine.interval("c2_curve_95")
    assert isinstance(interval, Interval)
    document = said(embedded, "E1").document
    recorded = document["intervals"]["c2_curve_95"]
    assert (Fraction(recorded["low"]), Fraction(recorded["high"])) == (interval.low, interval.high)
    assert document["recorded"]["E1"]["estimate"] == "-103/40000"


def test_a_study_of_other_registers_says_what_is_missing(tmp_path: Path, case: Case) -> None:
    few = open_case(registered_study(tmp_path, case), case.registration)
    recorded = said(few, "H1b").document["recorded"]["H1b"]
    assert recorded["verdict"] in ("not_run", "not_evaluable")
    assert all("missing" in criterion["holds"] for criterion in recorded["criteria"])


def test_hostile_words_end_neither_the_data_block_nor_an_attribute(case: Case) -> None:
    text = case.registration.rules.replace('title = "Recovery"', f'title = """{HOSTILE}"""')
    text = text.replace("Mean paired-minus-independent", HOSTILE.replace('"', '\\"'))
    case = open_case(case.study, replace(case.registration, rules=text))
    document = said(case, "H3").document
    document["study"] = HOSTILE
    assert "<" not in data(document)
    assert json.loads(data(document)) == document


def section(case: Case, rule: str) -> str:
    """Return the section of a page that decides again."""
    decision = case.decide(rule)
    evidence = evidence_of(case, decision)
    shown = {"d": {"rule": rule}, "study": case.study.name, "evidence": evidence, "steps": WORDS["steps"]}
    source = '{% from "macros.html" import command %}{% include "decide.html" %}'
    return environment().from_string(source).render(**shown)


def test_without_scripts_the_section_says_what_to_run(case: Case) -> None:
    assert "toolkit decide H2a --study published" in section(case, "H2a")
