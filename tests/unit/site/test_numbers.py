"""The numbers that templates write are those of `decide --json` and of the registers."""

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import run as toolkit
from tests.unit.site.reading import classed, near, numbers, section, table, text, tree
from toolkit.decisions.case import Case
from toolkit.registers.arrow import Row
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


def test_a_runs_page_shows_its_counts(case: Case, pages: dict[str, Page]) -> None:
    page = next(page for name, page in pages.items() if "/runs/" in name)
    counts = [row for row in case.study.rows("evaluations") if row["run_id"] == page.context["run"]["run_id"]]
    for row, count in zip(table(tree(page), "Evaluations"), counts, strict=True):
        for column, heading in run.COUNTS.items():
            if heading in row:
                assert text(row[heading]) == (NONE if count[column] is None else str(count[column]))
        assert numbers(text(row["rate"])) == [near(100 * count["successes"] / count["episodes"], 1)]


def test_the_probes_page_shows_its_register(tiny: Case) -> None:
    (page,) = probe.pages(Material((tiny,)))
    shown, compared = tree(page), 0
    register = {
        (f"{row['trajectory']}@{row['step']}", row["scored"], row["noise"], row["estimator"]): row
        for row in tiny.study.rows("probe")
    }
    ratios = {text(row["checkpoint"]): row for row in table(shown, "Ratios, all")}
    for (noise, heading), estimator in product(
        (("outcome", "grader flips"), ("transition", "tool faults")), ("MC", "SW")
    ):
        for row in table(shown, f"Traces, {noise} {estimator}"):
            known = register[text(row["checkpoint"]), text(row["scored"]), noise, estimator]
            for name in row.keys() - {"checkpoint", "scored"}:
                assert numbers(text(row[name])) == [pytest.approx(float(known[name]), rel=1e-4)]
                compared += 1
            if text(row["scored"]) == "all":
                ratio = float(known["trace_paired"]) / float(known["trace_independent"])
                cell = ratios[text(row["checkpoint"])][f"{heading}, {estimator}"]
                assert numbers(text(cell))[:1] == [near(ratio, 3)]
    assert compared == 96


@pytest.fixture(scope="module")
def lucky(tiny: Case) -> Page:
    return next(luck.pages(Material((tiny,))))


def test_the_page_of_luck_shows_its_shares(tiny: Case, lucky: Page) -> None:
    columns = {
        "λ": ("luck_share", 3),
        "λ pooled": ("luck_share_pooled", 3),
        "between (reward²)": ("variance_between", 4),
        "within (reward²)": ("variance_within", 4),
    }
    shares = tiny.study.rows("luck_share_summary")
    for row, share in zip(table(tree(lucky), "Luck shares"), shares, strict=True):
        assert (text(row["run"]), int(text(row["step"]))) == (share["run_id"], share["step"])
        for heading, (column, digits) in columns.items():
            assert numbers(text(row[heading])) == [near(float(share[column]), digits)]
        assert numbers(text(row["tasks with a share"])) == [share["tasks_defined"], share["tasks"]]


def test_the_page_of_luck_shows_its_groups(tiny: Case, lucky: Page) -> None:
    groups = {row["run_id"]: row for row in tiny.study.rows("groups_summary")}
    for row in table(tree(lucky), "Training groups by run"):
        known = groups[text(row["run"])]
        for heading in ("groups", "all correct", "spurious", "zero variance"):
            assert numbers(text(row[heading])) == [known[heading.replace(" ", "_")]]
        if known["all_correct"]:
            assert numbers(text(row["rate"])) == [near(known["spurious"] / known["all_correct"], 3)]


def test_the_data_page_counts_rows_and_files_as_manifests_do(tiny: Case) -> None:
    (page,) = data.pages(Material((), (tiny.study,)))
    told = {
        text(row["Table"]): numbers(f"{text(row['Rows'])} {text(row['Files'])}")
        for row in table(tree(page), "Tables of tiny-lm")
    }
    entries = tiny.study.manifest.tables
    assert told == {name: [entry.rows, len(entry.files)] for name, entry in entries.items()}
