"""The numbers on pages are those of `decide --json` and of the registers."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import Result
from tests.unit.site.numbers import (
    NONE,
    check_outcomes,
    classed,
    near,
    numbers,
    section,
    shows_estimate,
    table,
    text,
    tree,
)
from tests.unit.site.reading import made_by
from toolkit import api
from toolkit.decisions.case import Case
from toolkit.lab.probing.report import report
from toolkit.places import Home
from toolkit.registers.study import Study
from toolkit.rules.endpoints import Endpoint
from toolkit.site.material import Material
from toolkit.site.pages import data, home, luck, probe, registration, rule, run, study

Decided = dict[str, dict[str, Any]]
DECIDING = {"pilot", "primary", "reference"}
STUDIES = ("published", "tiny-lm")


@pytest.fixture(scope="session")
def material(home: Home, case: Case, tiny: Case) -> Material:
    """Return a site of two small studies."""
    studies = case.study, tiny.study
    figures = {s.name: [row for rows in report(s).figures.values() for row in rows] for s in studies}
    verifications = tuple(api.verify_frozen(home, studies))
    return Material((case, tiny), studies, verifications, probe_figures=figures)


def only(material: Material, name: str) -> Material:
    return replace(material, cases=tuple(case for case in material.cases if case.study.name == name))


def opened(material: Material, name: str) -> Study:
    return next(study for study in material.studies if study.name == name)


@pytest.fixture
def decided(toolkit: Callable[..., Result]) -> Callable[[str], Decided]:
    return lambda name: {
        document["rule"]: document
        for document in toolkit("decide", "--all", "--study", name, "--json").json()
    }


def test_a_rules_page_shows_its_decision(material: Material, decided: Callable[[str], Decided]) -> None:
    decisions = decided("published")
    counts = opened(material, "published").rows("evaluations")
    for page in rule.pages(only(material, "published")):
        document = decisions[page.context["d"].rule]
        if document["kind"] == "prediction" and document["rule"] not in ("P1", "P4"):
            continue  # all are shown in one way, and drawings take their time
        shown = tree(page, {f"published/runs/{row['run_id']}.html" for row in counts}, drawn=True)
        assert text(shown.find("h1")).split()[0] == document["rule"]
        (lead,) = classed(shown, "lead")
        assert text(classed(lead, "verdict")[0]) == document["verdict"].replace("_", " ")
        if document["estimate"] and document["estimate"]["mean"] is not None:
            shows_estimate(text(classed(lead, "num")[0]), document)
            estimate = section(shown, "estimate").findall("p")[0]
            assert numbers(text(classed(estimate, "num")[0])) == [near(document["estimate"]["mean"], 4)]
            shows_estimate(text(estimate).partition(": mean ")[2], document)
        for row, criterion in zip(table(shown, "Criteria"), document["criteria"], strict=True):
            check_criterion(row, criterion)
        for title, secondary in zip(
            shown.findall(".//dd[@class='num']"), document.get("secondary", ()), strict=True
        ):
            expected = secondary.get("by_seed") or {"": secondary["mean"]}
            assert numbers(text(title)) == [
                number for seed, value in expected.items() for number in (*numbers(seed), value)
            ]
        check_seeds(shown, document, counts, {e.id: e for e, _ in page.context["seeds"]})


def check_criterion(row: dict[str, Element], criterion: dict[str, Any]) -> None:
    """Hold a criterion's value, exact and rounded, to the decision; that of other rules are verdicts."""
    holds = {True: "holds", False: "does not hold"}.get(criterion["holds"], "unknown")
    assert text(row["Holds"]) == holds
    cell, exact, decimal = row["Value"], criterion["value"], criterion["decimal"]
    if isinstance(exact, dict):
        keys = [part[0] for part in classed(cell, "member") if text(part[0]) != "against"]
        shown = {text(key).removeprefix("seed "): (key.tail or "").strip() for key in keys}
    else:
        shown, exact, decimal = {"": (cell.text or "").strip()}, {"": exact}, {"": decimal}
    assert shown.keys() == exact.keys()
    others = [numbers(text(part)) for part in classed(cell, "member") if text(part[0]) == "against"]
    against = criterion.get("against")
    assert [other[-1:] for other in others] == (
        [] if against is None else [[pytest.approx(against, rel=1e-5)]]
    )
    for key, words in shown.items():
        value, _, rounded = words.partition(" = ")
        if rounded:
            assert (Fraction(value), float(rounded)) == (Fraction(exact[key]), decimal[key])
        else:
            known = [] if decimal[key] is None or not words else [pytest.approx(decimal[key], rel=1e-5)]
            assert numbers(value) == known


def check_seeds(
    shown: Element, document: dict[str, Any], counts: list[dict[str, Any]], endpoints: dict[str, Endpoint]
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
            rows = [
                count["episodes"]
                for count in counts
                if {"run_id": name, **read.where}.items() <= count.items() and count["step"] in read.steps
            ]
            assert numbers(episodes.partition(" ")[0]) == [sum(rows)]


@pytest.mark.parametrize("name", STUDIES)
def test_a_studys_page_shows_its_decisions_and_counts(material, decided, name) -> None:
    decisions, one = decided(name), opened(material, name)
    (page,) = study.pages(only(material, name))
    shown = tree(page)
    labels = ("Hypotheses", "Gates", "Predictions")
    regions = {part.get("aria-label", "") for part in shown.iter("div")}
    tables = [
        check_outcomes(shown, label, decisions)
        for label in (f"{kind} of {name}" for kind in labels)
        if label in regions
    ]
    assert set().union(*tables) == decisions.keys()
    runs = one.rows("runs")
    deciding = sum(row["role"] in DECIDING for row in runs)
    assert numbers(text(classed(shown, "lead")[0]))[:2] == [len(runs), deciding]
    seeds = [seed for part in classed(shown, "seeds") for seed in numbers(text(part).rpartition("seed")[2])]
    assert set(seeds) <= {row["seed"] for row in runs}
    assert deciding <= len(seeds) <= len(runs)
    rows = {text(row["Table"]): text(row["Rows"]) for row in table(shown, f"Registers of {name}")}
    assert rows == {known: str(entry.rows) for known, entry in one.manifest.tables.items()}


def test_the_front_page_shows_outcomes(material: Material, decided: Callable[[str], Decided]) -> None:
    (page,) = home.pages(only(material, "published"))
    assert "H2a" in check_outcomes(tree(page), "Hypotheses of published", decided("published"))


def test_a_runs_page_shows_its_counts(material: Material) -> None:
    page = next(iter(run.pages(only(material, "published"))))
    name = page.name.rpartition("/")[2].removesuffix(".html")
    shown = tree(page)
    counts = [row for row in opened(material, "published").rows("evaluations") if row["run_id"] == name]
    columns = {
        "step": "step",
        "episodes": "episodes",
        "true successes": "successes",
        "observed": "observed_successes",
        "met a fault": "exposed",
        "of these succeeded": "recovered",
        "out of budget": "budget_exceeded",
        "calls": "calls",
    }
    rows = table(shown, "Evaluations")
    sets = [text(part) for part in shown.iter("th") if part.get("scope") == "rowgroup"]
    assert len(rows) == len(counts)
    for row, count in zip(rows, counts, strict=True):
        words = f"{count['phase']} {count['pool']} {count['regime'].replace('_', ' ')}"
        assert any(words in heading for heading in sets)
        for heading, column in columns.items():
            assert text(row[heading]) == (NONE if count[column] is None else str(count[column]))
        assert numbers(text(row["rate"])) == [near(100 * count["successes"] / count["episodes"], 1)]


@pytest.mark.parametrize("name", STUDIES)
def test_the_probes_page_shows_its_register(material: Material, name: str) -> None:
    (page,) = probe.pages(only(material, name))
    shown = tree(page)
    register = {
        (f"{row['trajectory']}@{row['step']}", row["scored"], row["noise"], row["estimator"]): row
        for row in opened(material, name).rows("probe")
    }
    compared = 0
    for noise, estimator in product(("outcome", "transition"), ("MC", "SW")):
        for row in table(shown, f"Traces, {noise} {estimator}"):
            known = register[text(row["checkpoint"]), text(row["scored"]), noise, estimator]
            for heading in row.keys() - {"checkpoint", "scored"}:
                assert numbers(text(row[heading])) == [pytest.approx(float(known[heading]), rel=1e-4)]
                compared += 1
    heading = {"outcome": "grader flips", "transition": "tool faults"}
    for row in table(shown, "Ratios, all"):
        for (checkpoint, scored, noise, estimator), known in register.items():
            if (checkpoint, scored) == (text(row["checkpoint"]), "all"):
                ratio = float(known["trace_paired"]) / float(known["trace_independent"])
                assert numbers(text(row[f"{heading[noise]}, {estimator}"]))[:1] == [near(ratio, 3)]
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_of_luck_shows_its_register(material: Material, name: str) -> None:
    (page,) = luck.pages(only(material, name))
    shown = tree(page)
    shares = opened(material, name).rows("luck_share_summary")
    columns = {
        "λ": ("luck_share", 3),
        "λ pooled": ("luck_share_pooled", 3),
        "between (reward²)": ("variance_between", 4),
        "within (reward²)": ("variance_within", 4),
    }
    rows = table(shown, "Luck shares")
    assert len(rows) == len(shares)
    for row in rows:
        step = int(text(row["step"]))
        of_run = [s for s in shares if (s["run_id"], s["step"]) == (text(row["run"]), step)]
        share = next(
            s
            for s in of_run
            if s["regime"].replace("_", " ") == text(row["noise"])
            and text(row["reward"]) == (s["target"] or "not named").replace("_", " ")
        )
        for heading, (column, digits) in columns.items():
            value = share[column]
            assert numbers(text(row[heading])) == ([] if value is None else [near(float(value), digits)])
        assert numbers(text(row["tasks with a share"])) == [share["tasks_defined"], share["tasks"]]
    groups = {row["run_id"]: row for row in opened(material, name).rows("groups_summary")}
    for row in table(shown, "Training groups by run"):
        known = groups[text(row["run"])]
        for heading in ("groups", "all correct", "spurious", "zero variance"):
            assert numbers(text(row[heading])) == [known[heading.replace(" ", "_")]]
        if known["all_correct"]:
            assert numbers(text(row["rate"])) == [near(known["spurious"] / known["all_correct"], 3)]


def test_a_registrations_page_counts_the_runs_after_its_freeze(material: Material) -> None:
    shown = tree(made_by(material, registration)["registrations/paired-rollouts.html"])
    launches = [
        row["launched_at"] for row in opened(material, "published").rows("runs") if row["role"] in DECIDING
    ]
    (verification,) = material.verifications_of(only(material, "published").cases[0])
    (order,) = verification.chronology
    after = sum(at > order.freeze.by for at in launches if at)
    words = text(section(shown, "chronology"))
    assert f"{after} deciding runs were launched after" in words


def test_the_data_page_counts_rows_as_manifests_do(material: Material) -> None:
    (page,) = data.pages(material)
    shown = tree(page)
    for one in material.studies:
        rows = {text(row["Table"]): row for row in table(shown, f"Tables of {one.name}")}
        for name, entry in one.manifest.tables.items():
            row = rows.pop(name)
            assert numbers(text(row["Rows"])) == [entry.rows]
            assert numbers(text(row["Files"])) == [len(entry.files)]
        assert rows == {}
