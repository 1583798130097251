"""What a rule page carries: the rows that were decided on, whole and exact, and small."""

import base64
import io
import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import CHECKOUT
from tests.described import shipped
from tests.unit.decisions.rows_study import registered_study
from toolkit.decisions.case import Case
from toolkit.decisions.endpoints import Figure
from toolkit.decisions.interval import Interval
from toolkit.prereg.registration import load_registration
from toolkit.study.check.registered import open_case
from toolkit.website.environment import data, environment
from toolkit.website.evidence import Evidence, evidence_of
from toolkit.website.evidence_tables import Download, rows_read

HOSTILE = "</script><script>alert(1)</script>\"'&{{ 7*7 }}"


@cache
def opened(study: str) -> Case:
    """Return a shipped study with its registration."""
    found = shipped(study)
    return open_case(found, load_registration(CHECKOUT / "prereg" / found.manifest.registration.name))


@cache
def everything(study: str) -> dict[str, Evidence]:
    """Return what every rule page of a shipped study carries: made once, since it takes seconds."""
    case = opened(study)
    return {decision.rule: evidence_of(case, decision) for decision in case.decide_all()}


def carried(case: Case, rule: str) -> Evidence:
    return evidence_of(case, case.decide(rule))


def table_of(file: Download) -> Any:
    """Return a download as a reader gets it: from its address."""
    kind, _, content = file.href.partition(";base64,")
    assert kind == "data:application/vnd.apache.parquet"
    return pq.read_table(io.BytesIO(base64.b64decode(content)))


def only(evidence: Evidence, table: str) -> Download:
    (file,) = (file for file in evidence.downloads if file.table == table)
    return file


@pytest.mark.parametrize("study", ["embedded", "published"])
def test_a_page_carries_less_than_fifty_kilobytes(study: str) -> None:
    for evidence in everything(study).values():
        assert len(data(evidence.document)) + sum(len(f.href) for f in evidence.downloads) < 50_000


def test_the_episodes_carried_add_up_to_the_counts_of_the_registers(embedded: Case) -> None:
    played, won = Counter[Any](), Counter[Any]()
    for row in table_of(only(carried(embedded, "E1"), "episodes")).to_pylist():
        played[row["run_id"], row["step"]] += row["episodes"]
        won[row["run_id"], row["step"]] += row["successes"]
    counted = {
        (row["run_id"], row["step"]): (row["successes"], row["episodes"])
        for row in embedded.study.rows("evaluations")
    }
    assert len(played) == 2 * 20 * 6
    assert {place: (won[place], played[place]) for place in played} == {p: counted[p] for p in played}


def test_the_rows_carried_are_the_rows_of_the_register(case: Case) -> None:
    rows = table_of(only(carried(case, "H5"), "rows")).to_pylist()
    assert len(rows) == 6
    whole = {(r["run_id"], r["regime"], r["step"]): r for r in case.study.rows("evaluations")}
    for row in rows:
        register = whole[row["run_id"], row["regime"], row["step"]]
        assert {name: register[name] for name in row} == row
        assert (row["regime"], row["step"], row["phase"]) == ("held_out_types", 100, "final")


def test_figures_are_carried_as_the_doubles_that_they_are(case: Case) -> None:
    (file,) = (f for f in carried(case, "H1a").downloads if f.of == "luck_share_summary")
    summary = case.study.rows("luck_share_summary")
    stored = {(row["run_id"], row["step"]): row["luck_share"] for row in summary}
    rows = table_of(file).to_pylist()
    assert len(rows) == 6
    assert all(row["luck_share"] == stored[row["run_id"], row["step"]] for row in rows)


def test_decimals_are_carried_as_text(case: Case) -> None:
    declared = case.book.endpoints["c2_auc"]
    rate = Figure("fault_rate", None)
    of_runs = replace(declared, register="runs", outcome=rate, where={}, expect={}, steps=())
    table = rows_read(case.study, "runs", {"rate": (of_runs, ("t1-c2-independent-s0",))})
    assert str(table.schema.field("fault_rate").type) == "string"
    (row,) = table.to_pylist()
    assert (row["run_id"], Decimal(row["fault_rate"])) == ("t1-c2-independent-s0", Decimal("0.25"))


def test_the_same_registers_give_the_same_bytes(embedded: Case) -> None:
    again = open_case(shipped("embedded"), embedded.registration)
    for rule in ("H2a", "H1b"):
        assert carried(again, rule) == everything("embedded")[rule]


def test_a_published_interval_comes_without_episodes_and_says_why(case: Case) -> None:
    evidence = carried(case, "H2a")
    assert not evidence.resampled
    assert [file.table for file in evidence.downloads] == ["rows"]
    assert evidence.fixed == (
        "The interval c2_auc_95 stands as published: the episodes behind it were not published.",
    )


def test_a_run_that_was_not_made_stands_in_its_place_with_the_reason(case: Case) -> None:
    runs = carried(case, "H4").document["endpoints"]["c4_auc_none"]["runs"]
    assert [(run["arm"], run["seed"], run["not_run"]) for run in runs] == [
        ("paired", 0, True),
        ("paired", 1, True),
        ("independent", 0, True),
        ("independent", 1, True),
    ]
    assert runs[0]["missing"] == ["C4 paired seed 0 with scale_rewards none was not run"]


def test_a_gate_carries_the_rules_that_it_names(case: Case) -> None:
    document = carried(case, "gate2").document
    assert set(document["rules"]) == set(document["recorded"]) == {"gate2", "H2a", "H2b"}


def test_the_recorded_numbers_are_exact(embedded: Case) -> None:
    interval = embedded.engine.interval("c2_curve_95")
    assert isinstance(interval, Interval)
    document = carried(embedded, "E1").document
    recorded = document["intervals"]["c2_curve_95"]["recorded"]
    assert (Fraction(recorded["low"]), Fraction(recorded["high"])) == (interval.low, interval.high)
    assert document["recorded"]["E1"]["estimate"] == "-103/40000"


def test_a_study_without_a_register_says_so_and_carries_none(tmp_path: Path, case: Case) -> None:
    few = open_case(registered_study(tmp_path, case), case.registration)
    evidence = carried(few, "H1b")
    assert evidence.downloads == ()
    assert not any(endpoint["has_register"] for endpoint in evidence.document["endpoints"].values())
    assert "the study has none of the registers" in section(few, "H1b")


def test_hostile_words_end_neither_the_data_block_nor_an_attribute(case: Case) -> None:
    text = case.registration.rules.replace('title = "Recovery"', f'title = """{HOSTILE}"""')
    text = text.replace("Mean paired-minus-independent", HOSTILE.replace('"', '\\"'))
    case = open_case(case.study, replace(case.registration, rules=text))
    document = carried(case, "H3").document
    document["study"] = HOSTILE
    assert "<" not in data(document)
    assert json.loads(data(document)) == document


def section(case: Case, rule: str) -> str:
    """Return the section of a page that decides again."""
    decision = case.decide(rule)
    shown = {"d": {"rule": rule}, "study": case.study.name, "evidence": evidence_of(case, decision)}
    source = '{% from "macros.html" import command %}{% include "decide.html" %}'
    return environment().from_string(source).render(**shown)


def test_without_scripts_the_section_says_what_to_run(case: Case) -> None:
    assert "toolkit decide H2a --study published" in section(case, "H2a")
