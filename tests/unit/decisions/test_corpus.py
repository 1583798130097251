"""Rules as data: what is said of each, or decided by it; the cases are in tests/fixtures/rules/corpus."""

import copy
import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import RULES, SmallStudy, small_study
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import check_not_vacuous, outcomes
from toolkit.errors import DamagedError, RuleError
from toolkit.rules import rulebook
from toolkit.rules.values import Missing, Series, Value
from toolkit.verification.decidable import check_decidable

FOLDER = CHECKOUT / "tests/fixtures/rules"
BASES = {"small": RULES, "here": (FOLDER / "here.toml").read_text(encoding="utf-8")}
AMENDMENT = {"dated": "2026-01-01", "title": "t", "seen": "s", "reason": "r", "changes": ["c"]}
# What a case may have besides what its rule has.
KEYS = {"name", "drop", "change", "tests", "amendments", "refused", "where", "expected", "found"}
KEYS |= {"settled", "is_open", "verdict", "decidable", "undecidable", "changes"}
KEYS |= {"without", "rows", "more_rows", "values", "damaged"}


def cases() -> Iterator[Any]:
    """Yield every case, with what is common to its file."""
    for path in sorted(FOLDER.glob("corpus/*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in content.pop("cases"):
            yield pytest.param(content, case, id=f"{path.stem}: {case['name']}")


def changed(document: Any, drop: list[str], change: Mapping[str, Any]) -> Any:
    """Return a document without some keys, and with others merged into it; a list is a table by number."""
    for path in drop:
        *tables, last = path.split(".")
        table = document
        for name in tables:
            table = table[int(name) if isinstance(table, list) else name]
        del table[int(last) if isinstance(table, list) else last]
    for name, value in change.items():
        key: Any = int(name) if isinstance(document, list) else name
        inner = document[key] if isinstance(document, list) else document.get(key)
        merges = isinstance(value, dict) and isinstance(inner, dict | list)
        document[key] = changed(inner, [], value) if merges else value
    return document


def rule(tests: list[str], facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a rule; a test may be written `reading: test`."""
    criteria: list[dict[str, str]] = []
    for number, test in enumerate(tests):
        reading, _, text = test.rpartition(": ")
        of = {"reading": reading} if reading else {}
        criteria.append({"id": f"c{number}", "text": "Words.", "test": text, **of})
    words = {"kind": "hypothesis", "title": "A rule", "text": "Words."}
    return {**words, **(facts or {}), **({"criteria": criteria} if criteria else {})}


def load(common: Mapping[str, Any], case: Mapping[str, Any]) -> rulebook.RuleBook:
    """Load a case's rules; documents are written as JSON, since the standard library writes no TOML."""
    base, shared = common.get("base", "small"), {"base", "tests", *KEYS}
    document = tomllib.loads(BASES[base])
    facts = {key: value for key, value in {**common, **case}.items() if key not in shared}
    if base == "small":
        document["rules"] = {"H": rule(case.get("tests", common.get("tests", [])), facts)}
    for part in (common, case):
        changed(document, part.get("drop", []), copy.deepcopy(part.get("change", {})))
    for name, tests in document["rules"].items():
        document["rules"][name] = rule(tests) if isinstance(tests, list) else tests
    amendments = []
    for given in case.get("amendments", []):
        head = {key: given[key] for key in given if key not in ("rules", "more")}
        rules = {name: rule(tests) for name, tests in given.get("rules", {}).items()}
        whole = {"amendment": AMENDMENT | head, **({"rules": rules} if rules else {})}
        amendments.append(json.dumps(changed(whole, [], given.get("more", {}))))
    with mock.patch.object(rulebook, "_toml", lambda text, _: json.loads(text)):
        return rulebook.load_rulebook(json.dumps(document), amendments)


def facts_of(book: rulebook.RuleBook, name: str) -> dict[str, str]:
    """Return what amendments made of a rule, each text by its test."""
    change = book.changes[name]
    facts = {key: getattr(change, key) for key in ("amendment", "relation", "added_by")}
    rules = {"frozen": change.frozen, "first": change.first, "test": book.rules[name]}
    return facts | {key: each.criteria[0].test if each else "" for key, each in rules.items()}


def study_of(case: Mapping[str, Any]) -> SmallStudy:
    """Return the small study as a case changes its rows."""
    study = small_study()
    changed(study.tables, case.get("without", []), copy.deepcopy(case.get("rows", {})))
    for table, rows in case.get("more_rows", {}).items():
        study.tables[table] += [{**study.tables[table][0], **row} for row in rows]
    return study


def printed(value: Value) -> object:
    """Return a value as a case says it."""
    if isinstance(value, Series):
        return {member: printed(of) for member, of in value.items}
    if isinstance(value, Missing):
        return f"{'not run' if value.not_run else 'missing'}: {'; '.join(value.reasons)}"
    return str(value)


@pytest.mark.parametrize(("common", "case"), list(cases()))
def test_rules_are_refused_left_or_decided(common: dict[str, Any], case: dict[str, Any]) -> None:
    """Refused when they are read, settled before any run and so refused when frozen, or decided."""
    if "refused" in case:
        with pytest.raises(RuleError) as caught:
            load(common, case)
        error = caught.value
        assert case["refused"] in str(error)
        facts = {name: getattr(error, name) for name in ("where", "expected", "found") if name in case}
        assert facts == {name: case[name] for name in facts}
        assert error.exit_code == 4
        return
    if "undecidable" in case:
        with pytest.raises(RuleError) as caught:
            check_decidable(load(common, case))
        assert [words for words in case["undecidable"] if words not in str(caught.value)] == []
        return
    book = load(common, case)
    if case.get("decidable"):
        check_decidable(book)
    if "changes" in case:
        assert {name: facts_of(book, name) for name in book.changes} == case["changes"]
        assert set(book.rules) == {"H", *book.changes}
    if "settled" in case:
        with pytest.raises(RuleError) as caught:
            check_not_vacuous(book)
        assert case["settled"] in f"{caught.value.problem}; {caught.value.found}"
    if case.get("is_open"):
        check_not_vacuous(book)
        shown = outcomes(book, "H")
        assert shown.passes != shown.misses
    engine = Engine(book, ("small", ""), study_of(case))
    if "verdict" in case:
        assert engine.decide("H").verdict == case["verdict"]
    for endpoint, value in case.get("values", {}).items():
        assert printed(engine.value(endpoint)) == value
    if "damaged" in case:
        with pytest.raises(DamagedError, match=case["damaged"]):
            engine.decide("H")


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("language = 1", "language ="),
        ("resamples = 10000", f"resamples = {NINES}"),
        ('by = "pooled"', f'by = "checkpoint"\ncheckpoints = ["A@{NINES}"]'),
    ],
    ids=["no TOML", "a number of many digits", "a step of many digits"],
)
def test_what_no_document_can_say_is_refused(good: str, bad: str) -> None:
    with pytest.raises(RuleError) as caught:
        rulebook.load_rulebook(RULES.replace(good, bad))
    assert caught.value.problem
