"""The numbers that templates write are those of `decide --json` and of the registers."""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import run as toolkit
from tests.unit.site.reading import classed, near, numbers, section, table, text, tree
from toolkit.decisions.case import Case
from toolkit.registers.arrow import Row
from toolkit.registers.query import ask
from toolkit.rules.endpoints import Endpoint
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import data, luck, probe, run

Decided = dict[str, dict[str, Any]]
DECIDING = {"pilot", "primary", "reference"}
INTERVAL = re.compile(r"([\d.]+)% (?:interval )?\[(\S+), (\S+)\]")
NONE = "\N{EN DASH}"
HOLDS = {True: "holds", False: "does not hold"}


@pytest.fixture(scope="module")
def decided() -> Decided:
    documents = toolkit("decide", "--all", "--study", "published", "--json").json()
    return {document["rule"]: document for document in documents}


def shows_estimate(words: str, document: dict[str, Any]) -> None:
    """Hold the estimate that words begin with, and the interval that follows it, to a decision."""
    mean, interval = document["estimate"] and document["estimate"]["mean"], document["interval"]
    assert numbers(words)[:1] == ([] if mean is None else [near(mean, 4)])
    shown = [[float(level) / 100, float(low), float(high)] for level, low, high in INTERVAL.findall(words)]
    assert shown == ([[near(interval[key], 4) for key in ("level", "low", "high")]] if interval else [])


def test_a_rules_page_shows_its_decision(case: Case, decided: Decided, pages: dict[str, Page]) -> None:
    counts = case.study.rows("evaluations")
    names = {f"published/runs/{row['run_id']}.html" for row in counts}
    for page in (page for page in pages.values() if page.template == "rule.html"):
        document = decided[page.context["d"].rule]
        if document["kind"] == "prediction" and document["rule"] not in ("P1", "P4"):
            continue  # all are shown in one way
        shown = tree(page, names)
        (lead,) = classed(shown, "lead")
        assert text(classed(lead, "verdict")[0]) == document["verdict"].replace("_", " ")
        if document["estimate"] and document["estimate"]["mean"] is not None:
            shows_estimate(text(classed(lead, "num")[0]), document)
            shows_estimate(text(section(shown, "estimate").find("p")).partition(": mean ")[2], document)
        for row, criterion in zip(table(shown, "Criteria"), document["criteria"], strict=True):
            check_criterion(row, criterion)
        secondary = [one.get("by_seed") or {"": one["mean"]} for one in document.get("secondary", ())]
        assert [numbers(text(title)) for title in shown.findall(".//dd[@class='num']")] == [
            [number for seed, value in expected.items() for number in (*numbers(seed), value)]
            for expected in secondary
        ]
        check_seeds(shown, document, counts, {e.id: e for e, _ in page.context["seeds"]})


def check_criterion(row: dict[str, Element], criterion: dict[str, Any]) -> None:
    """Hold a criterion's value, exact and rounded, to the decision; that of other rules are verdicts."""
    assert text(row["Holds"]) == HOLDS.get(criterion["holds"], "unknown")
    cell, exact, decimal = row["Value"], criterion["value"], criterion["decimal"]
    members, against = classed(cell, "member"), criterion.get("against")
    others = [numbers(text(part))[-1:] for part in members if text(part[0]) == "against"]
    assert others == ([] if against is None else [[pytest.approx(against, rel=1e-5)]])
    if isinstance(exact, dict):
        keys = [part[0] for part in members if text(part[0]) != "against"]
        shown = {text(key).removeprefix("seed "): (key.tail or "").strip() for key in keys}
    else:
        shown, exact, decimal = {"": (cell.text or "").strip()}, {"": exact}, {"": decimal}
    assert shown.keys() == exact.keys()
    for key, words in shown.items():
        value, _, rounded = words.partition(" = ")
        if rounded:
            assert (Fraction(value), float(rounded)) == (Fraction(exact[key]), decimal[key])
        else:
            known = [] if decimal[key] is None or not words else [pytest.approx(decimal[key], rel=1e-5)]
            assert numbers(value) == known


def check_seeds(
    shown: Element, document: dict[str, Any], counts: Iterable[Row], endpoints: dict[str, Endpoint]
) -> None:
    """Hold seeds' values to the decision, and the episodes of each run to the register."""
    estimates = [document["estimate"], *document.get("secondary", ())]
    known = {estimate["endpoint"]: estimate.get("by_seed", {}) for estimate in estimates if estimate}
    for row in shown.iter("tr"):
        endpoint, _, seed = row.get("id", "").partition("-seed-")
        if value := known.get(endpoint, {}).get(seed):
            assert numbers(text(row[1])) == [near(value, 5)]
        for link in row.iter("a") if seed else ():
            name, _, episodes = text(link).partition(": ")
            read = endpoints[endpoint]
            of_run = [one for one in counts if {"run_id": name, **read.where}.items() <= one.items()]
            assert numbers(episodes.partition(" ")[0]) == [
                sum(one["episodes"] for one in of_run if one["step"] in read.steps)
            ]


def test_a_studys_page_shows_its_decisions_and_counts(case, decided, pages) -> None:
    shown, runs = tree(pages["published/index.html"]), case.study.rows("runs")
    tables = [table(shown, f"{kind} of published") for kind in ("Hypotheses", "Gates", "Predictions")]
    rows = {text(row["Rule"]).split()[0]: row for rows in tables for row in rows}
    assert rows.keys() == decided.keys()
    for name, row in rows.items():
        assert text(row["Verdict"]).startswith(decided[name]["verdict"].replace("_", " "))
        shows_estimate(text(row["Estimate, interval"]), decided[name])
    deciding = sum(row["role"] in DECIDING for row in runs)
    assert numbers(text(classed(shown, "lead")[0]))[:2] == [len(runs), deciding]
    told = {text(row["Table"]): text(row["Rows"]) for row in table(shown, "Registers of published")}
    assert told == {known: str(entry.rows) for known, entry in case.study.manifest.tables.items()}


SHARES = """
SELECT run_id AS run, step, luck_share AS "λ", luck_share_pooled AS "λ pooled", variance_between AS
"between (reward²)", variance_within AS "within (reward²)", tasks_defined || ' of ' || tasks AS
"tasks with a share" FROM luck_share_summary"""
GROUPS = """
SELECT run_id AS run, groups, all_correct AS "all correct", spurious, zero_variance AS "zero variance",
CASE WHEN all_correct > 0 THEN spurious / all_correct END AS rate FROM groups_summary"""
TRACES = """
SELECT trajectory || '@' || step AS checkpoint, scored, COLUMNS('^(trace|condition|mean_norm)_|^cosine')
FROM probe WHERE noise = 'outcome' AND estimator = 'MC'"""
RATIOS = """
SELECT trajectory || '@' || step AS checkpoint, max(r) FILTER (kind = 'outcome MC') AS "grader flips, MC",
max(r) FILTER (kind = 'transition SW') AS "tool faults, SW" FROM (SELECT *, noise || ' ' || estimator AS kind,
trace_paired / trace_independent AS r FROM probe WHERE scored = 'all') GROUP BY trajectory, step"""
# Tables so labelled, the columns that tell their rows apart, a query whose columns are headings, how near.
TABLES = {
    "Luck shares": (luck, ("run", "step"), SHARES, {"abs": 6e-4}),
    "Training groups by run": (luck, ("run",), GROUPS, {"abs": 6e-4}),
    "Traces, outcome MC": (probe, ("checkpoint", "scored"), TRACES, {"rel": 1e-4}),
    "Ratios, all": (probe, ("checkpoint",), RATIOS, {"abs": 6e-4}),
}


@pytest.mark.parametrize("label", TABLES)
def test_a_table_shows_the_rows_of_its_register(tiny: Case, label: str) -> None:
    maker, told_by, query, within = TABLES[label]
    (page,) = maker.pages(Material((tiny,)))
    answer = ask(tiny.study, query)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    known = {tuple(str(row[key]) for key in told_by): row for row in rows}
    compared = 0
    for row in table(tree(page), label):
        register = known[tuple(text(row[key]) for key in told_by)]
        for heading in row.keys() & register.keys() - set(told_by):
            held = [] if register[heading] is None else numbers(str(register[heading]))
            assert numbers(text(row[heading]))[: len(held)] == [pytest.approx(n, **within) for n in held]
            compared += 1
    assert compared >= len(known)


def test_a_runs_page_shows_its_counts(case: Case, pages: dict[str, Page]) -> None:
    page = next(page for name, page in pages.items() if "/runs/" in name)
    counts = [row for row in case.study.rows("evaluations") if row["run_id"] == page.context["run"]["run_id"]]
    for row, count in zip(table(tree(page), "Evaluations"), counts, strict=True):
        for column, heading in run.COUNTS.items():
            if heading in row:
                assert text(row[heading]) == (NONE if count[column] is None else str(count[column]))
        assert numbers(text(row["rate"])) == [near(100 * count["successes"] / count["episodes"], 1)]


def test_the_data_page_counts_rows_and_files_as_manifests_do(tiny: Case) -> None:
    (page,) = data.pages(Material((), (tiny.study,)))
    told = {
        text(row["Table"]): numbers(f"{text(row['Rows'])} {text(row['Files'])}")
        for row in table(tree(page), "Tables of tiny-lm")
    }
    entries = tiny.study.manifest.tables
    assert told == {name: [entry.rows, len(entry.files)] for name, entry in entries.items()}
