"""The numbers on pages are those of `decide --json` and of the registers."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import CHECKOUT, Result
from tests.unit.website.numbers import NONE, classed, intervals, marks, numbers, section, table, text, tree
from tests.unit.website.reading import made_by
from toolkit.cli.site_material import material as material_of
from toolkit.decisions.endpoints import Endpoint
from toolkit.places import Home
from toolkit.registers.study import Study
from toolkit.website.material import Material
from toolkit.website.pages import (
    data,
    foreign,
    home,
    luck,
    paper,
    probe,
    registration,
    rule,
    run,
    study,
    theory,
    world,
)

Decided = dict[str, dict[str, Any]]
DECIDING = {"pilot", "primary", "reference"}
STUDIES = ("published", "embedded")


@pytest.fixture(scope="session")
def material(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Material:
    return material_of(home, tmp_path_factory.mktemp("site"))


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


def near(number: float, digits: int) -> Any:
    return pytest.approx(number, abs=0.51 * 10**-digits, rel=0)


def shows_estimate(words: str, document: dict[str, Any], digits: int = 4) -> None:
    """Hold the estimate that words begin with, and the interval that follows it, to a decision."""
    estimate, interval = document["estimate"], document["interval"]
    mean = estimate and estimate["mean"]
    assert numbers(words)[:1] == ([] if mean is None else [near(mean, digits)])
    expected = [] if interval is None else [tuple(interval[key] for key in ("level", "low", "high"))]
    assert [tuple(map(near, ends, (4, 4, 4))) for ends in expected] == intervals(words)


def check_outcomes(page: Element, label: str, decisions: Decided) -> set[str]:
    rows = table(page, label)
    for row in rows:
        document = decisions[text(row["Rule"]).split()[0]]
        assert text(row["Verdict"]).startswith(document["verdict"].replace("_", " "))
        shows_estimate(f"{text(row['Estimate'])} {text(row['Interval'])}", document)
    return {text(row["Rule"]).split()[0] for row in rows}


def test_a_rules_page_shows_its_decision(material: Material, decided: Callable[[str], Decided]) -> None:
    decisions = decided("published")
    counts = opened(material, "published").rows("evaluations")
    for page in rule.pages(only(material, "published")):
        document = decisions[page.context["d"]["rule"]]
        if document["kind"] == "prediction" and document["rule"] not in ("P1", "P4"):
            continue  # all are shown in one way, and drawings take their time
        shown = tree(page, {f"published/runs/{row['run_id']}.html" for row in counts}, drawn=True)
        assert text(shown.find("h1")).split()[0] == document["rule"]
        (lead,) = classed(shown, "lead")
        assert text(classed(lead, "verdict")[0]) == document["verdict"].replace("_", " ")
        if document["estimate"] and document["estimate"]["mean"] is not None:
            shows_estimate(text(classed(lead, "num")[0]), document)
            estimate = section(shown, "estimate").findall("p")[0]
            assert numbers(text(classed(estimate, "num")[0])) == [document["estimate"]["mean"]]
            shows_estimate(text(estimate).partition(": mean ")[2], document, 5)
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
        check_differences(shown, document)


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


def check_differences(shown: Element, document: dict[str, Any]) -> None:
    """Hold the drawing of a difference by seeds to the decision."""
    drawn = [mark for mark in marks(shown) if mark.get("row", "").startswith(("seed ", "mean"))]
    for mark in drawn:
        if "low" in mark:
            ends = [document["interval"]["low"], document["interval"]["high"]]
            assert [float(mark["low"]), float(mark["high"])] == [near(end, 4) for end in ends]
        elif "title" not in mark:
            by_seed = document["estimate"]["by_seed"] | {"mean": document["estimate"]["mean"]}
            assert float(next(iter(mark.values()))) == by_seed[mark["row"].removeprefix("seed ")]
    assert bool(drawn) == bool(document["interval"])


@pytest.mark.parametrize("name", STUDIES)
def test_a_studys_page_shows_its_decisions_and_counts(
    material: Material, decided: Callable[[str], Decided], name: str
) -> None:
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
    runs = {row["run_id"]: row for row in one.rows("runs")}
    deciding = sum(row["role"] in DECIDING for row in runs.values())
    assert numbers(text(classed(shown, "lead")[0]))[:2] == [len(runs), deciding]
    for row in table(shown, f"Runs of {name}"):
        listed = runs.pop(text(row["Run"]))
        assert (text(row["Seed"]), text(row["Condition"])) == (str(listed["seed"]), listed["condition"])
    assert runs == {}
    rows = {text(row["Table"]): text(row["Rows"]) for row in table(shown, f"Registers of {name}")}
    assert rows == {known: str(entry.rows) for known, entry in one.manifest.tables.items()}


def test_the_front_page_shows_outcomes_and_draws_intervals(
    material: Material, decided: Callable[[str], Decided]
) -> None:
    (page,) = home.pages(only(material, "published"))
    shown, decisions = tree(page, drawn=True), decided("published")
    assert "H2a" in check_outcomes(shown, "Outcomes of published", decisions)
    drawn = [mark for mark in marks(shown) if mark.get("rule") in decisions]
    for mark in drawn:
        document, number = decisions[mark["rule"]], next(iter(mark.values()))
        if "high" in mark:
            ends = [near(document["interval"][key], 4) for key in ("low", "high")]
            assert [float(number), float(mark["high"])] == ends
        elif "value" in mark:
            assert float(number) == document["estimate"]["mean"]
        elif "at" in mark:  # a threshold, or a bound
            assert float(number) in [end for one in document["criteria"] for end in numbers(one["test"])]
    for part in ("high", "value", "at"):
        assert {mark["rule"] for mark in drawn if part in mark} == {"H2a", "H2b", "H3", "H5"}


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
    rows = table(shown, f"Evaluations of {name}")
    assert len(rows) == len(counts)
    for row in rows:
        words = text(row["Evaluation set"])
        (count,) = (
            count
            for count in counts
            if f"{count['phase']} {count['pool']} {count['regime'].replace('_', ' ')}" == words
            and str(count["step"]) == text(row["step"])
        )
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


def test_the_world_page_shows_draws_of_the_episodes_own_schedule(material: Material) -> None:
    (page,) = world.pages(material)
    shown = tree(page)
    events = [part for part in classed(shown, "event") if "≥" in text(part) or "<" in text(part)]
    assert events
    for event in events:
        (digest,) = (part.get("title") for part in event.iter("span") if part.get("title"))
        draw, rate = numbers(text(event).partition("draw ")[2])[:2]
        assert draw == near(int(str(digest)[:16], 16) / 2**64, 4)  # the first eight bytes
        assert ("<" in text(event)) == (draw < rate)


def test_the_page_of_bfcl_counts_its_pools_and_its_tools(material: Material) -> None:
    (page,) = foreign.pages(material)
    shown = tree(page)
    rows = opened(material, "bfcl").polars("task_pools").collect().to_dicts()
    for cells in table(shown, "Tasks of bfcl"):
        is_turn = text(cells["Episodes"]) == "bfcl turns"
        # Whoever names a turn says which of its scenario it is.
        mine = [
            row
            for row in rows
            if row["pool"] == text(cells["Pool"]) and ("." in row["forms"].rpartition("_")[2]) == is_turn
        ]
        counted = (
            len(mine),
            sum(row["reads"] + row["writes"] for row in mine),
            sum(row["writes"] for row in mine),
        )
        names = ("Tasks", "Planned calls", "Writes among them")
        assert tuple(numbers(text(cells[name]))[0] for name in names) == counted
    declared = tomllib.loads((CHECKOUT / "toolkit/worlds/bfcl/tools.toml").read_text("utf-8"))["tools"]
    listed = {text(cells["Tool"]): text(cells["Kind"]) for cells in table(shown, "Tools")}
    assert listed == {name: said["kind"] for name, said in declared.items()}
    about = text(section(shown, "tools"))
    assert f"The {len(declared)} tools" in about
    for kind in ("read", "list", "write"):
        assert f"{sum(said['kind'] == kind for said in declared.values())} of kind {kind}" in about


def test_the_theory_page_shows_what_the_definitions_give(material: Material) -> None:
    (page,) = theory.pages(material)
    rows = {}
    for row in table(tree(page), "The bandit at the paper's settings"):
        rows[text(row["Quantity"])] = [numbers(text(row[name]))[0] for name in ("independent", "paired")]
    # A reward is 1 where a success of probability 1/2 was not flipped, with probability 9/10: its variance is
    # 0.45 x 0.55, twice of which is the contrast's; under one flip for both, only the policies differ.
    assert rows["Variance of a reward contrast"] == [0.495, 0.45]
    assert f"is {1 - 0.9**8 - 0.1**8:.3f} at q = 0.1 and G = 8" in text(section(tree(page), "spurious"))


def test_the_theory_page_derives_the_drift_of_the_papers_bandit(material: Material) -> None:
    """From the mean and the traces that app:bandit prints, and from the example's own words."""
    (page,) = theory.pages(material)
    shown = tree(page)
    rows = table(shown, "The bandit's drift under Adam")
    assert [int(text(row["Groups in a step"])) for row in rows] == [1, 2, 4, 8, 16, 24]
    for batch, row in ((int(text(row["Groups in a step"])), row) for row in rows):
        by_hand = [0.1969**2 / (0.1969**2 + trace / batch) ** 0.5 for trace in (0.002615, 0.005845)]
        assert numbers(text(row["independent"])) == [pytest.approx(by_hand[0], abs=1.2e-4)]
        assert numbers(text(row["paired"])) == [pytest.approx(by_hand[1], abs=1.2e-4)]
        assert numbers(text(row["paired / independent"])) == [near(by_hand[1] / by_hand[0], 4)]
    words = text(section(shown, "drift"))
    # Traces 1.5 + 20/2 and 21; a step of two groups divides by the roots of 1 + 1.5/2 and 1 + 1/2.
    assert f"The trace falls to {11.5 / 21:.3f}" in words
    assert f"= {2 * 21 / 11.5:.1f} independent ones" in words
    assert f"falls, too, to {(1.5 / 1.75) ** 0.5:.3f}" in words


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


def test_the_papers_page_shows_what_rules_decide(
    material: Material, decided: Callable[[str], Decided]
) -> None:
    (page,) = paper.pages(material)
    decisions = decided("published")
    shown = tree(page)
    assert "H2a" in check_outcomes(shown, "tab:outcomes, published", decisions)
    assert "P4" in check_outcomes(shown, "tab:predictions, published", decisions)
    published = opened(material, "published")
    deciding = {run["run_id"] for run in published.rows("runs") if run["role"] in DECIDING}
    counts = [count for count in published.rows("evaluations") if count["run_id"] in deciding]
    for row in table(shown, "tab:finals, published"):
        known = {"condition": text(row["condition"]), "arm": text(row["arm"])}
        rates = [
            100 * count["successes"] / count["episodes"]
            for count in counts
            if known.items() <= count.items()
            and (count["phase"], count["pool"], count["regime"]) == ("final", "test", "clean")
            and text(row["seed"]) in {"mean", str(count["seed"])}
        ]
        assert numbers(text(row["clean"])) == [near(sum(rates) / len(rates), 1)]
