"""What an amendment does to each of its rules: it replaces, restates or adds it, and says which."""

import pytest

from tests.unit.decisions.study import RULES, rule, small_study
from toolkit.decisions.engine import Engine
from toolkit.decisions.rulebook import load_rulebook
from toolkit.errors import RuleError

GOOD = RULES + rule("H", "mean(gap) > 0")


def amendment(label: str, relations: str, *rules: str) -> str:
    head = f'id = "{label}"\ndated = "2026-01-01"\ntitle = "t"\nseen = "s"\nreason = "r"\nchanges = ["c"]\n'
    return f"[amendment]\n{head}{relations}\n\n{''.join(rules)}"


ADDS = amendment("A1", 'adds = ["N"]', rule("N", "mean(gap) > 1"))


def test_an_added_rule_has_no_frozen_one() -> None:
    book = load_rulebook(GOOD, [ADDS])
    change = book.changes["N"]
    assert (change.amendment, change.relation, change.frozen, change.added_by) == ("A1", "adds", None, "A1")
    assert book.rules["N"].criteria[0].test == "mean(gap) > 1"
    assert list(book.rules) == ["H", "N"]
    assert list(book.changes) == ["N"]


@pytest.mark.parametrize(("relation", "test"), [("replaces", "mean(gap) > 2"), ("restates", "max(gap) > 1")])
def test_a_later_amendment_changes_an_added_rule(relation: str, test: str) -> None:
    book = load_rulebook(GOOD, [ADDS, amendment("A2", f'{relation} = ["N"]', rule("N", test))])
    change = book.changes["N"]
    assert (change.amendment, change.relation, change.frozen, change.added_by) == ("A2", relation, None, "A1")
    assert change.first.criteria[0].test == "mean(gap) > 1"
    assert book.rules["N"].criteria[0].test == test


@pytest.mark.parametrize(("name", "first"), [("H", "mean(gap) > 0"), ("N", "mean(gap) > 1")])
def test_a_rule_replaced_twice_keeps_its_first_text(name: str, first: str) -> None:
    later = [amendment(f"A{n}", f'replaces = ["{name}"]', rule(name, f"mean(gap) > {n}")) for n in (2, 3)]
    book = load_rulebook(GOOD, [ADDS, *later])
    assert book.changes[name].first.criteria[0].test == first
    assert book.rules[name].criteria[0].test == "mean(gap) > 3"


def test_one_amendment_can_replace_one_rule_and_add_another() -> None:
    text = amendment(
        "A1", 'replaces = ["H"]\nadds = ["N"]', rule("H", "mean(gap) > 1"), rule("N", "passes(H)")
    )
    changes = load_rulebook(GOOD, [text]).changes
    assert {name: change.relation for name, change in changes.items()} == {"H": "replaces", "N": "adds"}
    assert changes["H"].frozen is not None
    assert changes["H"].added_by == ""


SAME = rule("H", "mean(gap) > 0")
NEW = rule("N", "mean(gap) > 1")
REFUSED = {
    "a frozen rule added": ([amendment("A1", 'adds = ["H"]', SAME)], "which there is already"),
    "an added rule added again": ([ADDS, amendment("A2", 'adds = ["N"]', NEW)], "which there is already"),
    "a rule replaced that is none": ([amendment("A1", 'replaces = ["N"]', NEW)], "which there is not yet"),
    "a rule restated that is none": ([amendment("A1", 'restates = ["N"]', NEW)], "which there is not yet"),
    "a rule replaced before it is added": (
        [amendment("A0", 'replaces = ["N"]', NEW), ADDS],
        "which there is not yet",
    ),
    "a rule replaced and restated": (
        [amendment("A1", 'replaces = ["H"]\nrestates = ["H"]', SAME)],
        "each named once",
    ),
    "a rule restated and added": (
        [amendment("A1", 'restates = ["N"]\nadds = ["N"]', NEW)],
        "each named once",
    ),
    "a rule added twice": ([amendment("A1", 'adds = ["N", "N"]', NEW)], "each named once"),
    "a rule that is not named": ([amendment("A1", "", NEW)], "each named once"),
    "a name without its rule": ([amendment("A1", 'adds = ["N", "M"]', NEW)], "each named once"),
    "an added rule with the name of an endpoint": (
        [amendment("A1", 'adds = ["gap"]', rule("gap", "mean(other) > 0"))],
        "declared twice",
    ),
    "an added rule that is superseded": (
        [
            amendment(
                "A1",
                'adds = ["N"]',
                rule("N", "mean(gap) > 1", kind="prediction", more='superseded = "Why."'),
            )
        ],
        "superseded",
    ),
    "an added rule restated with another number": (
        [ADDS, amendment("A2", 'restates = ["N"]', rule("N", "mean(gap) > 2"))],
        "restates N and changes",
    ),
}


@pytest.mark.parametrize(("texts", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_so_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(RuleError, match=problem):
        load_rulebook(GOOD, texts)


def test_a_decision_on_an_added_rule_says_who_added_it() -> None:
    book = load_rulebook(GOOD, [ADDS])
    document = Engine(book, ("small", ""), small_study(), {"A1": "digest"}).decide("N").as_dict()
    by = {"id": "A1", "relation": "adds", "sha256": "digest"}
    assert (document["amended_by"], document["amendment"], document["added_by"]) == ("A1", by, by)


def test_a_decision_on_an_added_rule_that_was_replaced_names_both_amendments() -> None:
    book = load_rulebook(GOOD, [ADDS, amendment("A2", 'replaces = ["N"]', rule("N", "mean(gap) > 2"))])
    document = Engine(book, ("small", ""), small_study(), {"A1": "one", "A2": "two"}).decide("N").as_dict()
    assert document["amendment"] == {"id": "A2", "relation": "replaces", "sha256": "two"}
    assert document["added_by"] == {"id": "A1", "relation": "adds", "sha256": "one"}


@pytest.mark.parametrize("name", ["H", "G"])
def test_a_decision_on_a_frozen_rule_names_no_addition(name: str) -> None:
    change = amendment("A1", 'replaces = ["H"]', rule("H", "mean(gap) > 1"))
    book = load_rulebook(GOOD + rule("G", "mean(gap) > 0"), [change])
    assert "added_by" not in Engine(book, ("small", ""), small_study()).decide(name).as_dict()


def test_a_rule_names_every_relation_of_what_it_rests_on() -> None:
    text = amendment(
        "A1",
        'replaces = ["H"]\nadds = ["N", "M"]',
        rule("H", "mean(gap) > 1"),
        NEW,
        rule("M", "passes(H)", "passes(N)"),
    )
    decision = Engine(load_rulebook(GOOD, [text]), ("small", ""), small_study()).decide("M")
    assert [(ref.id, ref.relation) for ref in decision.rests_on] == [("A1", "replaces"), ("A1", "adds")]
