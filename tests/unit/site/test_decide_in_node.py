"""The browser's program and the engine reach the same on every rule: neither shares code with the other."""

import base64
from dataclasses import replace
from fractions import Fraction
from math import hypot
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions import study as small
from tests.unit.decisions.rows_study import registered_study
from tests.unit.site.conftest import opened
from tests.unit.site.node import ASSETS, run_node
from tests.unit.site.test_evidence import everything, said
from tests.unit.site.written_tests import answers_in_python, some_tests
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.decisions.intervals import Interval, Resampler
from toolkit.files import write_all
from toolkit.rules.rulebook import load_rulebook
from toolkit.site.drawings import rule_charts
from toolkit.site.material import Material
from toolkit.site.pages.rule import Evidence, evidence_of
from toolkit.site.registers import register_files, script
from toolkit.verification.registered import open_case

SCRIPT = (f"{CHECKOUT}/tests/unit/site/decide.mjs", f"{ASSETS}/decide.js")
STUDIES = ("tiny-lm", "published")
OTHERS = ("coupled", "map", "bfcl", "embedded", "small-lm")
RESAMPLED = {"tiny-lm": 6, "embedded": 14}
"""Intervals that a page makes from episodes, at least."""
Answers = dict[tuple[str, str], tuple[Evidence, Any]]


def site_of(folder: Path, *cases: Case, added: str = "") -> Path:
    """Write the scripts that rule pages of some cases load, an amendment that was added included."""
    content = register_files(Material(cases))
    for case in cases:
        held = {
            path.relative_to(case.registration.folder).as_posix(): path.read_bytes()
            for path in case.registration.folder.rglob("*")
            if path.is_file()
        }
        if added:
            held["amendments/A9.toml"] = added.encode()
            held["LATER.chain"] += b"%b  %b  amendments/A9.toml\n" % (b"0" * 64, b"0" * 64)
        name = f"registrations/{case.registration.name}"
        files = {path: base64.b64encode(raw).decode() for path, raw in held.items()}
        content[f"data/{name}.js"] = script(name, files)
    write_all(folder, content)
    return folder


def decided(site: Path, *pages: dict[str, Any]) -> list[Any]:
    """Return what the shipped script makes of some pages of a site."""
    made: list[Any] = run_node({"site": str(site), "pages": pages}, *SCRIPT)["pages"]
    return made


def page(evidence: Evidence, **more: Any) -> dict[str, Any]:
    """Return what a page says to the script."""
    return {"said": evidence.document, "choice": {}, **more}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_of(tmp_path_factory.mktemp("site"), *map(opened, ("embedded", *STUDIES)))


def answers_of(site: Path, *studies: str) -> Answers:
    """Return what every rule page of some studies says, and what the script makes of it."""
    pages = {(study, rule): e for study in studies for rule, e in everything(study).items()}
    reached = decided(site, *map(page, pages.values()))
    return dict(zip(pages, zip(pages.values(), reached, strict=True), strict=True))


@pytest.mark.parametrize(
    "study", [*STUDIES, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_every_rule_of_a_study_is_decided_as_recorded(study: str, site: Path, tmp_path: Path) -> None:
    found = answers_of(site if study in STUDIES else site_of(tmp_path, opened(study)), study)
    assert len(found) == len(opened(study).book.rules)
    compared = 0
    for (_, rule), (evidence, here) in found.items():
        recorded = evidence.document["recorded"][rule]
        for part in ("verdict", "original_verdict", "evidence", "readings", "estimate"):
            assert here[part] == recorded[part]
        assert here["disagreements"] == []
        names = [criterion["names"] for criterion in here["rules"][rule]["criteria"]]
        for read, one, other in zip(names, here["criteria"], recorded["criteria"], strict=True):
            assert (one["id"], one["holds"]) == (other["id"], other["holds"])
            assert one["value"] == other["value"] or set(read) & set(evidence.document["intervals"])
        compared += intervals_agree(evidence, here["intervals"])
    assert compared >= RESAMPLED.get(study, 0)


def intervals_agree(evidence: Evidence, found: dict[str, Any]) -> int:
    """Check a page's intervals: exact, or within five errors; return how many were resampled."""
    resampled = 0
    for name, there in evidence.document["intervals"].items():
        here = found[name]
        if name not in evidence.document["resampled"]:
            assert (here["low"], here["high"], here["counted"]) == (there["low"], there["high"], None)
            continue
        for end, error in zip(("low", "high"), here["errors"], strict=True):
            apart = abs(Fraction(here[end]) - Fraction(there[end]))
            assert apart <= 5 * hypot(Fraction(there[f"{end}_error"]), Fraction(error))
        resampled += 1
    return resampled


def test_the_episodes_read_are_those_of_the_register(embedded: Case, site: Path) -> None:
    rows = [
        row
        for row in embedded.study.rows("evaluations")
        if (row["condition"], row["phase"], row["regime"]) == ("C2", "periodic", "faults_p025")
        and row["episodes"] == 600
    ]
    counted = [sum(row[name] for row in rows) for name in ("successes", "episodes")]
    (found,) = decided(site, page(said(embedded, "E1")))
    assert found["intervals"]["c2_curve_95"]["counted"] == counted


def test_a_nested_interval_is_the_nested_one_of_the_engine(embedded: Case, site: Path) -> None:
    study, book = embedded.study, embedded.book
    spec = replace(book.intervals["c2_auc_95"], crossing="nested")
    expected = Resampler(study, book.plan).interval(spec, book.endpoints[spec.endpoint])
    assert isinstance(expected, Interval)
    assert expected.errors
    evidence = evidence_of(embedded, embedded.decide("H2a"))
    crossed = evidence.document["intervals"]["c2_auc_95"]
    (found,) = decided(site, page(evidence, change={"intervals": {"c2_auc_95": {"crossing": "nested"}}}))
    here = found["intervals"]["c2_auc_95"]
    for end, at, *errors in zip(
        ("low", "high"), (expected.low, expected.high), expected.errors, here["errors"], strict=True
    ):
        within = 5 * hypot(*map(Fraction, errors))
        assert abs(Fraction(here[end]) - at) <= within < abs(Fraction(crossed[end]) - at)


def test_a_seed_gives_the_same_ends_again_and_another_seed_others(embedded: Case, site: Path) -> None:
    evidence = evidence_of(embedded, embedded.decide("H2a"))
    seeds = ("1", "1", str(2**64 - 1))
    pages = decided(site, *(page(evidence, choice={"seed": seed, "resamples": 2000}) for seed in seeds))
    first, again, other = ([p["intervals"]["c2_auc_95"][end] for end in ("low", "high")] for p in pages)
    assert first == again
    assert first != other


def test_episodes_that_are_not_those_of_the_rows_decide_nothing(embedded: Case, site: Path) -> None:
    run = "c2-paired-s0"
    where = {"run_id": run, "phase": "periodic", "regime": "faults_p025", "step": 100}
    moved = {"of": "evaluations", "where": where, "set": {"successes": 1}}
    (found,) = decided(site, page(said(opened("embedded"), "H2a"), row=moved))
    assert f"the episodes of {run} at step 100 are" in found["error"]
    assert "and evaluations says 1 of" in found["error"]


def test_a_row_that_was_changed_is_said_loudly(site: Path) -> None:
    where = {"run_id": "t1-c2-paired-s1", "phase": "periodic", "regime": "faults_p025", "step": 100}
    moved = {"of": "evaluations", "where": where, "set": {"successes": 0}}
    (found,) = decided(site, page(said(opened("published"), "H2a"), row=moved))
    named = {text.partition(":")[0] for text in found["disagreements"]}
    assert {"The value of mean", "The estimate"} <= named
    assert not all(found["by_chance"])


def with_bar(bar: str) -> dict[str, Any]:
    """Return E1's page with its interval held against another bar."""
    test = {"test": f"lower(c2_curve_95) > {bar}"}
    return page(said(opened("embedded"), "E1"), change={"rules": {"E1": {"criteria": {"1": test}}}})


def test_a_bar_upon_the_end_of_an_interval_is_a_close_call(site: Path) -> None:
    evidence = said(opened("embedded"), "E1")
    low = float(Fraction(evidence.document["intervals"]["c2_curve_95"]["low"]))
    close, far = decided(site, *(with_bar(f"{low - by:.6f}") for by in (0, 0.003)))
    (call,) = close["close_calls"]
    assert call.startswith("interval could turn with the lower end of c2_curve_95, ")
    assert far["close_calls"] == []


def test_a_verdict_that_chance_does_not_turn_is_not_excused_by_it(site: Path) -> None:
    (found,) = decided(site, with_bar("-0.1"))
    assert found["disagreements"] == ["Criterion interval: holds here, does not hold recorded"]
    assert found["by_chance"] == [False]


def test_a_study_of_other_registers_is_decided_as_the_engine_does(tmp_path: Path, case: Case) -> None:
    few = open_case(registered_study(tmp_path, case), case.registration)
    decisions = few.decide_all()
    site = site_of(tmp_path / "site", few)
    found = decided(site, *(page(evidence_of(few, decision)) for decision in decisions))
    assert [(f["verdict"], f["disagreements"]) for f in found] == [(d.verdict, []) for d in decisions]


# A ratio of variances, a slope over three conditions and what training gained, on the shipped companion.
ADDED = """
[statistics.spread]
title = "Variance of C2 over that of C4"
formula = "variance(c2_curve) / variance(c4_curve)"
unit = "ratio"
range = ["0", "100"]

[statistics.trend]
title = "Slope of three ratios"
formula = "slope(list(spread, mean(c2_added) / mean(c2_curve), 1 / spread), list(0.5, 1, 2))"
unit = "ratio"
range = ["-100000", "100000"]

[intervals.spread_95]
endpoint = "spread"
level = "0.95"
method = "seed bootstrap"

[intervals.c2_t]
endpoint = "c2_curve"
level = "0.95"
method = "t over seeds"
"""


def added(*parts: str) -> str:
    """Return an amendment with one more rule, S, and what it reads."""
    return small.amendment("A9", 'adds = ["S"]', *parts)


def with_rules(case: Case, added: str) -> Case:
    """Return the shipped companion with an amendment more."""
    rules = case.registration.rules
    book = load_rulebook(rules, [*(one.rules for one in case.registration.amendments), added])
    registered = (case.registration.name, case.registration.sha256)
    return replace(case, book=book, engine=Engine(book, registered, case.engine.registers), _decided={})


def of_statistics(case: Case) -> str:
    """Return an amendment with a rule that reads statistics."""
    rules = case.registration.rules
    gain = rules[rules.index("[endpoints.c2_curve]") :].partition("\n\n")[0]
    gain = gain.replace("c2_curve", "c2_added").replace('"auc"', '"auc_gain"')
    more = 'estimate = "spread"\ninterval = "spread_95"'
    tests = ("spread > 0.5", "lower(spread_95) > 0.2", "trend > 0", "upper(c2_t) > 0", "mean(c2_added) < 0")
    return added(gain + "\n", ADDED, small.rule("S", *tests, more=more))


def test_a_rule_on_statistics_is_decided_again_on_its_page(embedded: Case, tmp_path: Path) -> None:
    amendment = of_statistics(embedded)
    made = with_rules(embedded, amendment)
    decision = made.decide("S")
    evidence = evidence_of(made, decision)
    assert not evidence.document["resampled"]
    assert any("spread_95" in text for text in evidence.fixed)
    (found,) = decided(site_of(tmp_path, embedded, added=amendment), page(evidence))
    assert found["disagreements"] == []
    assert found["verdict"] == decision.verdict
    values = {c["id"]: c["value"] for c in evidence.document["recorded"]["S"]["criteria"]}
    assert {c["id"]: c["value"] for c in found["criteria"]} == values
    assert found["estimate"] == str(decision.estimate.mean)  # type: ignore[union-attr]
    assert rule_charts(made, decision, ())


def test_intervals_over_tasks_stand_as_computed_beside_one_that_the_page_makes(embedded, tmp_path) -> None:
    methods = {"c2_tasks": "t over tasks", "c2_bca": "bca bootstrap", "c2_t": "t over seeds"}
    declared = [
        f'[intervals.{name}]\nendpoint = "c2_curve"\nlevel = "0.95"\nmethod = "{method}"\n'
        for name, method in methods.items()
    ]
    tests = (*(f"lower({name}) > -0.5" for name in methods), "upper(c2_curve_95) < 0.5")
    named = 'estimate = "c2_curve"\ninterval = "c2_tasks"'
    amendment = added(*declared, small.rule("S", *tests, more=named))
    made = with_rules(embedded, amendment)
    evidence = evidence_of(made, made.decide("S"))
    assert evidence.document["resampled"]
    assert any(
        "c2_bca stands as computed" in text and "bca bootstrap, 10000" in text for text in evidence.fixed
    )
    (found,) = decided(site_of(tmp_path, embedded, added=amendment), page(evidence))
    assert (found["verdict"], found["disagreements"]) == ("pass", [])
    for name in methods:
        recorded = evidence.document["intervals"][name]
        here = found["intervals"][name]
        assert (here["low"], here["high"], here["counted"]) == (recorded["low"], recorded["high"], None)
    assert found["intervals"]["c2_curve_95"]["counted"] is not None
    assert rule_charts(made, made.decide("S"), ())


TESTED = """
[tests.seeds]
endpoint = "c2_curve"
method = "sign flip"
over = "seeds"
alternative = "less"

[tests.tasks]
endpoint = "c2_curve"
method = "wilcoxon"
over = "tasks"
zeros = "ranked"
alternative = "two-sided"

[families.both]
tests = ["seeds", "tasks"]
method = "benjamini-hochberg"

[intervals.c2_90]
endpoint = "c2_curve"
level = "0.90"
method = "t over seeds"
"""


def test_p_values_are_taken_as_recorded_on_a_page_and_margins_are_held_again(embedded, tmp_path) -> None:
    margins = ("equivalent(c2_90, 0.5)", "non_inferior(c2_90, 0.0001)")
    tests = ("p(seeds) < 0.05", "adjusted(tasks) < 0.05", *margins)
    amendment = added(TESTED, small.rule("S", *tests))
    made = with_rules(embedded, amendment)
    decision = made.decide("S")
    assert [criterion.holds for criterion in decision.criteria][2:] == [True, False]
    evidence = evidence_of(made, decision)
    assert set(evidence.document["tests"]) == {"seeds", "tasks"}
    said = [text for text in evidence.fixed if "taken as recorded" in text]
    assert [name in text for name, text in zip(("seeds", "tasks"), said, strict=True)] == [True, True]
    (found,) = decided(site_of(tmp_path, embedded, added=amendment), page(evidence))
    assert found["disagreements"] == []
    assert [c["holds"] for c in found["criteria"]] == [c.holds for c in decision.criteria]
    values = [str(decision.tests[0].p), str(decision.tests[1].adjusted)]
    assert [c["value"] for c in found["criteria"]][:2] == values


def test_written_tests_give_in_node_what_they_give_in_python() -> None:
    tests = some_tests(1000)
    assert run_node({"tests": tests}, *SCRIPT)["tests"] == answers_in_python(tests)
