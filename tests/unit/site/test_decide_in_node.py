"""What a rule page says to its script, exactly; and that script and engine reach the same on every rule."""

import base64
import json
import re
from fractions import Fraction
from functools import cache
from math import hypot
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions import study as small
from tests.unit.decisions.rows_study import registered_study
from tests.unit.site.conftest import opened
from tests.unit.site.node import ASSETS, run_node
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import evaluate
from toolkit.decisions.intervals import Interval, Resampler
from toolkit.errors import RuleError
from toolkit.files import write_all
from toolkit.rules.expressions import parse
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing, Series, Value
from toolkit.site.drawings import rule_charts
from toolkit.site.environment import WORDS, data, environment
from toolkit.site.material import Material
from toolkit.site.pages.rule import Evidence, evidence_of
from toolkit.site.registers import register_files, script
from toolkit.structs import replace
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


# A ratio of variances, a slope over three conditions and what training gained; intervals over tasks; tests of
# significance, and margins: three rules more, on the shipped companion.
ADDED = (CHECKOUT / "tests/fixtures/rules/statistics_and_tests.toml").read_text(encoding="utf-8")
INTERVALS = {
    "spread_95": ("spread", "0.95", "seed bootstrap"),
    "c2_t": ("c2_curve", "0.95", "t over seeds"),
    "c2_tasks": ("c2_curve", "0.95", "t over tasks"),
    "c2_bca": ("c2_curve", "0.95", "bca bootstrap"),
    "c2_90": ("c2_curve", "0.90", "t over seeds"),
}
OVER_TASKS = ("c2_tasks", "c2_bca", "c2_t")
OF_STATISTICS = (
    *("spread > 0.5", "lower(spread_95) > 0.2", "trend > 0", "upper(c2_t) > 0"),
    "mean(c2_added) < 0",
)
MARGINS = ("equivalent(c2_90, 0.5)", "non_inferior(c2_90, 0.0001)")


@pytest.fixture(scope="module")
def amended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, Evidence, Any]]:
    """Return by added rule: its case, what its page says, and what the script makes of that."""
    case = opened("embedded")
    rules = case.registration.rules
    gain = rules[rules.index("[endpoints.c2_curve]") :].partition("\n\n")[0]
    gain = gain.replace("c2_curve", "c2_added").replace('"auc"', '"auc_gain"')
    declared = [
        f'[intervals.{name}]\nendpoint = "{endpoint}"\nlevel = "{level}"\nmethod = "{method}"\n'
        for name, (endpoint, level, method) in INTERVALS.items()
    ]
    over_tasks = (*(f"lower({name}) > -0.5" for name in OVER_TASKS), "upper(c2_curve_95) < 0.5")
    added = small.amendment(
        *("A9", 'adds = ["S", "T", "U"]', f"{gain}\n", ADDED, *declared),
        small.rule("S", *OF_STATISTICS, more='estimate = "spread"\ninterval = "spread_95"'),
        small.rule("T", *over_tasks, more='estimate = "c2_curve"\ninterval = "c2_tasks"'),
        small.rule("U", "p(seeds) < 0.05", "adjusted(tasks) < 0.05", *MARGINS),
    )
    book = load_rulebook(rules, [*(one.rules for one in case.registration.amendments), added])
    registered = (case.registration.name, case.registration.sha256)
    made = replace(case, book=book, engine=Engine(book, registered, case.engine.registers), _decided={})
    said = {name: evidence_of(made, made.decide(name)) for name in "STU"}
    found = decided(site_of(tmp_path_factory.mktemp("amended"), case, added=added), *map(page, said.values()))
    return {name: (made, said[name], here) for name, here in zip("STU", found, strict=True)}


@pytest.mark.parametrize("rule", ["S", "T", "U"])
def test_an_added_rule_is_decided_again_on_its_page(amended, rule) -> None:
    made, evidence, found = amended[rule]
    decision, recorded = made.decide(rule), evidence.document["recorded"][rule]
    assert (found["verdict"], found["disagreements"]) == (decision.verdict, [])
    assert [c["holds"] for c in found["criteria"]] == [c.holds for c in decision.criteria]
    resampled = set(evidence.document["resampled"])
    for here, there in zip(found["criteria"], recorded["criteria"], strict=True):
        assert here["value"] == there["value"] or resampled
    assert rule_charts(made, decision, ())


def test_statistics_and_their_intervals_are_those_of_the_engine(amended) -> None:
    made, evidence, found = amended["S"]
    assert not evidence.document["resampled"]
    assert any("spread_95" in text for text in evidence.fixed)
    assert found["estimate"] == str(made.decide("S").estimate.mean)


def test_intervals_over_tasks_stand_as_computed_beside_one_that_the_page_makes(amended) -> None:
    _, evidence, found = amended["T"]
    assert any(
        "c2_bca stands as computed" in text and "bca bootstrap, 10000" in text for text in evidence.fixed
    )
    for name in OVER_TASKS:
        recorded, here = evidence.document["intervals"][name], found["intervals"][name]
        assert (here["low"], here["high"], here["counted"]) == (recorded["low"], recorded["high"], None)
    assert evidence.document["resampled"]
    assert found["intervals"]["c2_curve_95"]["counted"] is not None


def test_p_values_are_taken_as_recorded_on_a_page(amended) -> None:
    made, evidence, found = amended["U"]
    tests = made.decide("U").tests
    assert set(evidence.document["tests"]) == {"seeds", "tasks"}
    said = [text for text in evidence.fixed if "taken as recorded" in text]
    assert [name in text for name, text in zip(("seeds", "tasks"), said, strict=True)] == [True, True]
    assert [c["holds"] for c in found["criteria"]][2:] == [True, False]
    assert [c["value"] for c in found["criteria"]][:2] == [str(tests[0].p), str(tests[1].adjusted)]


# Tests of the rule language made at random, each with values for its names, and what they give in Python.
SEED = 20261120
DEEPEST = 3
MEMBERS = ("0", "1", "2")
LEAVES = {
    "number": ("s0", "s1", "s2", "0.5", "2", "lower(i)", "upper(i)", "p(t)", "adjusted(t)"),
    "numbers": ("v0", "v1", "v2"),
    "truth": (
        *("passes(r0)", "passes(r1)", "s0 > s1", "s2 <= 0", "lower(i) < s0"),
        *("equivalent(i, 2)", "non_inferior(i, 1.5)"),
    ),
}
# What each kind of part can be, of parts that are one step less deep.
WHOLE = {
    "number": (
        *(f"(<number> {sign} <number>)" for sign in "+-*/"),
        *(f"{name}(<numbers>)" for name in ("mean", "min", "max", "first", "last", "variance")),
        *(f"{name}(<numbers>, <numbers>)" for name in ("slope", "rank_correlation")),
        *("-<number>", "abs(<number>)", "count(<truths>)"),
    ),
    "numbers": (
        *(f"(<numbers> {sign} <numbers>)" for sign in "+-*/"),
        *(f"(<numbers> {sign} <number>)" for sign in "+-*/"),
        *(f"(<number> {sign} <numbers>)" for sign in "+-*/"),
        *("rest(<numbers>)", "abs(<numbers>)", "list(<number>, <number>, <number>)"),
    ),
    "truth": (
        *("all(<truth>, <truth>)", "any(<truth>, <truth>, <truth>)", "not(<truth>)", "each(<truths>)"),
        *("majority(<truths>)", "decreasing(<numbers>)", "within(<number>, <number>, 1)"),
        "<number> >= <number>",
    ),
}
TRUTHS = (
    *(f"<numbers> {sign} <number>" for sign in (">=", "<=", ">", "<", "=")),
    *(f"<numbers> {sign} <numbers>" for sign in (">=", "<=", ">", "<", "=")),
    *("within(<numbers>, <number>, 0.5)", "between(<numbers>, -1, <number>)"),
)


def some_tests(number: int) -> list[dict[str, Any]]:
    """Return tests with the values of their names, as `role name`; the same ones each time."""
    rng = Random(SEED)  # noqa: S311 - examples, not secrets
    return [_made(rng) for _ in range(number)]


def answers_in_python(tests: list[dict[str, Any]]) -> list[Any]:
    """Return what each test gives, as the site writes values."""
    return [_answer(test["test"], test["names"]) for test in tests]


def _answer(text: str, names: dict[str, Any]) -> Any:
    try:
        return _written(evaluate(parse(text, "test"), lambda role, name: _read(names[f"{role} {name}"])))
    except RuleError as error:
        return {"error": error.problem}


def _made(rng: Random) -> dict[str, Any]:
    def missing() -> dict[str, Any]:
        return {"missing": [rng.choice(("one", "another"))], "not_run": rng.random() < 0.5}

    def scalar() -> Any:
        return missing() if rng.random() < 0.15 else str(Fraction(rng.randint(-6, 6), rng.randint(1, 5)))

    scalars = ("value s0", "value s1", "value s2", "lower i", "upper i", "p t", "adjusted t")
    names = {name: scalar() for name in scalars}
    names |= {f"value v{i}": {"unit": "seed", "members": [[m, scalar()] for m in MEMBERS]} for i in range(3)}
    names |= {f"passes r{i}": rng.choice((True, False, missing())) for i in range(2)}
    return {"test": _part(rng, "truth", DEEPEST), "names": names}


def _part(rng: Random, kind: str, depth: int) -> str:
    """Return a part of a test at random, no deeper than said."""
    if kind == "truths":  # a comparison of series adds no depth
        chosen = rng.choice(TRUTHS)
    else:
        chosen, depth = rng.choice(WHOLE[kind] if depth else LEAVES[kind]), depth - 1
    return re.sub("<([a-z]+)>", lambda part: _part(rng, part[1], depth), chosen)


def _read(written: Any) -> Value:
    if isinstance(written, str):
        return Fraction(written)
    if isinstance(written, bool):
        return written
    if "missing" in written:
        return Missing(written["not_run"], tuple(written["missing"]))
    members: list[tuple[str, Any]] = [(key, _read(member)) for key, member in written["members"]]
    return Series(written["unit"], tuple(members))


def _written(value: Value) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, Missing):
        return {"missing": list(value.reasons), "not_run": value.not_run}
    return str(value)


def test_written_tests_give_in_node_what_they_give_in_python() -> None:
    tests = some_tests(1000)
    assert run_node({"tests": tests}, *SCRIPT)["tests"] == answers_in_python(tests)
