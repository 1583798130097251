"""What an amendment does to each of its rules: it replaces, restates or adds it, and says which."""

import pytest

from tests.unit.decisions.study import RULES, amendment, rule, small_study
from toolkit.decisions.engine import Engine
from toolkit.rules.rulebook import load_rulebook

GOOD = RULES + rule("H", "mean(gap) > 0")


ADDS = amendment("A1", 'adds = ["N"]', rule("N", "mean(gap) > 1"))


def added_by(*amendments: str) -> dict[str, object]:
    """Return what a decision on N says of the amendments in force."""
    book, known = load_rulebook(GOOD, amendments), {"A1": "one", "A2": "two"}
    document = Engine(book, ("small", ""), small_study(), known).decide("N").as_dict()
    return {name: document[name] for name in ("amended_by", "amendment", "added_by")}


def test_a_decision_on_an_added_rule_names_who_added_it_and_who_replaced_it() -> None:
    first = {"id": "A1", "relation": "adds", "sha256": "one"}
    later = {"id": "A2", "relation": "replaces", "sha256": "two"}
    replaced = amendment("A2", 'replaces = ["N"]', rule("N", "mean(gap) > 2"))
    assert added_by(ADDS) == {"amended_by": "A1", "amendment": first, "added_by": first}
    assert added_by(ADDS, replaced) == {"amended_by": "A2", "amendment": later, "added_by": first}


@pytest.mark.parametrize("name", ["H", "G"])
def test_a_decision_on_a_frozen_rule_names_no_addition(name: str) -> None:
    change = amendment("A1", 'replaces = ["H"]', rule("H", "mean(gap) > 1"))
    book = load_rulebook(GOOD + rule("G", "mean(gap) > 0"), [change])
    assert "added_by" not in Engine(book, ("small", ""), small_study()).decide(name).as_dict()


def test_a_rule_names_every_relation_of_what_it_rests_on() -> None:
    texts = rule("H", "mean(gap) > 1"), rule("N", "mean(gap) > 1"), rule("M", "passes(H)", "passes(N)")
    text = amendment("A1", 'replaces = ["H"]\nadds = ["N", "M"]', *texts)
    decision = Engine(load_rulebook(GOOD, [text]), ("small", ""), small_study()).decide("M")
    assert [(ref.id, ref.relation) for ref in decision.rests_on] == [("A1", "replaces"), ("A1", "adds")]
