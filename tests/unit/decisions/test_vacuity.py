"""Rules whose outcome is settled before any run, each named by its defect, and rules whose is not."""

import sys
from fractions import Fraction

import pytest
import z3

from tests.unit.decisions.study import RULES, SmallStudy, rule
from toolkit.decisions import evaluation, intervals
from toolkit.decisions.case import Case
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import Example, check_not_vacuous, outcomes
from toolkit.decisions.intervals import Interval
from toolkit.errors import IncompleteError, RuleError, UsageError
from toolkit.rules import values
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.structs import replace


def book_of(*tests: str, kind: str = "hypothesis", more: str = "") -> RuleBook:
    """Return the small registration with rule H of given tests."""
    return load_rulebook(RULES + rule("A", "mean(gap) > 0.5") + rule("H", *tests, kind=kind, more=more))


class Supposed(Engine):
    """The engine, with supposed values in place of a study's."""

    def __init__(self, book: RuleBook, example: Example) -> None:
        super().__init__(book, ("supposed", ""), SmallStudy())
        self._example = example

    def value(self, endpoint: str) -> values.Scalar | values.Series[Fraction]:
        supposed = self._example.endpoints
        return supposed[endpoint] if endpoint in supposed else super().value(endpoint)

    def interval(self, name: str) -> Interval | values.Missing:
        if name not in self._example.intervals:
            return values.Missing(not_run=False, reasons=("not supposed",))
        spec, (low, high) = self._book.intervals[name], self._example.intervals[name]
        return Interval(name, spec.endpoint, spec.level, low, high, "published", "")

    def test(self, name: str) -> intervals.PValue:
        plain, adjusted = self._example.tests.get(name, (values.Missing(False, ("not supposed",)),) * 2)
        return intervals.PValue(self._book.tests[name], 0, 0, plain, adjusted=adjusted)


def test_the_refusal_names_the_test_and_the_ranges() -> None:
    with pytest.raises(RuleError) as caught:
        check_not_vacuous(book_of("all(mean(gap) >= 3, pooled < 0.5, lower(gap_95) > 0)"))
    assert "mean(gap) >= 3" in (caught.value.found or "")
    for words in ("gap from -1 to 1 fraction", "pooled from 0 to 1 fraction", "both ends of gap_95 from -1"):
        assert words in (caught.value.found or "")


def test_only_the_named_rules_are_checked() -> None:
    book = book_of("pooled > 2")
    check_not_vacuous(book, only=["A"])
    with pytest.raises(RuleError):
        check_not_vacuous(book, only={"H"})
    with pytest.raises(UsageError):
        check_not_vacuous(book, only=["nobody"])


def test_what_the_solver_does_not_know_is_not_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3.Solver, "check", lambda *_: z3.unknown)
    with pytest.raises(RuleError, match="could not be decided"):
        check_not_vacuous(book_of("pooled > 0.5"))


def test_without_the_solver_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(IncompleteError) as caught:
        check_not_vacuous(book_of("pooled > 0.5"))
    assert caught.value.remedy == "pip install 'paired-rollouts-toolkit[freeze]'"


def test_values_that_do_not_evaluate_so_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = evaluation.Formulas._decided  # noqa: SLF001
    monkeypatch.setattr(evaluation.Formulas, "_decided", lambda *given: evaluation._not(decided(*given)))  # noqa: SLF001
    with pytest.raises(RuleError, match="could not be decided"):
        check_not_vacuous(book_of("pooled > 0.5"))


@pytest.mark.slow
def test_every_shipped_rule_and_criterion_can_turn_out_either_way(case: Case) -> None:
    check_not_vacuous(case.book)


def test_every_shipped_rule_could_as_it_was_frozen(case: Case) -> None:
    frozen = {name: change.frozen for name, change in case.book.changes.items()}
    assert frozen
    check_not_vacuous(replace(case.book, rules=case.book.rules | frozen), only=frozen)


def test_every_shipped_rule_can_turn_out_either_way_and_is_decided_so(case: Case) -> None:
    for registered in case.book.rules.values():
        for reading in registered.readings or ("",):
            example = outcomes(case.book, registered.id, reading)
            passed = Supposed(case.book, example.passes).decide(registered.id)
            missed = Supposed(case.book, example.misses).decide(registered.id)
            if reading in ("", registered.binding):
                assert (passed.holds, missed.holds) == (True, False)
            else:
                assert passed.readings[reading] in ("pass", "met")
                assert missed.readings[reading] in ("miss", "missed", "partially_met")
