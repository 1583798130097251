"""Equivalence and non-inferiority: what they stand for, at what level, and where they could turn."""

from fractions import Fraction

import pytest

from tests.unit.decisions.rows_study import VALIDATION, write_rows_study
from tests.unit.decisions.study import RULES, rule
from tests.unit.decisions.test_closeness import decide
from toolkit.decisions.evaluation import evaluate
from toolkit.decisions.intervals import Interval
from toolkit.registers.study import Study
from toolkit.rules.expressions import parse
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.rules import Rule
from toolkit.rules.values import Missing
from toolkit.structs import as_builtins, replace

INTERVAL_90 = '[intervals.gap_90]\nendpoint = "gap"\nlevel = "0.90"\n'
AT = RULES + INTERVAL_90


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return write_rows_study(tmp_path_factory.mktemp("rows"), evaluations=[replace(VALIDATION, tasks=64)])


def held(test: str, low: str, high: str) -> object:
    ends = {"lower": Fraction(low), "upper": Fraction(high)}
    return evaluate(parse(test, "test"), lambda role, _: ends[role])


@pytest.mark.parametrize(
    ("low", "high", "equivalent", "non_inferior"),
    [
        ("-0.02", "0.02", True, True),
        ("-0.03", "0.03", True, True),
        ("-0.0301", "0.02", False, False),
        ("-0.02", "0.0301", False, True),
        ("0.1", "0.2", False, True),
        ("-0.2", "-0.1", False, False),
    ],
)
def test_both_ends_or_the_lower_one_lie_within_the_margin(low, high, equivalent, non_inferior) -> None:
    assert held("equivalent(i, 0.03)", low, high) is equivalent
    assert held("non_inferior(i, 0.03)", low, high) is non_inferior


def test_without_an_interval_there_is_no_answer() -> None:
    missing = Missing(not_run=True, reasons=("no run",))
    for test in ("equivalent(i, 0.03)", "non_inferior(i, 0.03)"):
        assert evaluate(parse(test, "test"), lambda _, __: missing) == missing


def of(*tests: str) -> Rule:
    return load_rulebook(AT + rule("H", *tests)).rules["H"]


def test_the_margin_is_among_the_numbers_that_a_rule_compares_with() -> None:
    assert of("equivalent(gap_90, 0.03)").numbers == {Fraction("0.03"), Fraction("-0.03")}
    assert of("non_inferior(gap_90, 0.03)").numbers == {Fraction("-0.03")}


def test_a_decision_says_the_level_of_the_test(study: Study) -> None:
    tests = ("equivalent(gap_90, 0.03)", "any(non_inferior(gap_95, 0.5), mean(gap) > 0)")
    first, second = decide(study, *tests, others=INTERVAL_90).criteria
    (said,) = first.procedures
    assert said.startswith("equivalence at ±0.03: two one-sided tests (TOST) at 5% each, since both ends of ")
    assert said.endswith("the 90% interval gap_90 are held against the margin")
    assert "non-inferiority at -0.5: a one-sided test at 2.5%" in second.procedures[0]
    assert as_builtins(first)["procedures"] == list(first.procedures)
    assert first.holds is False
    assert second.holds is True


@pytest.mark.parametrize(("form", "end"), [("equivalent", "upper"), ("non_inferior", "lower")])
@pytest.mark.parametrize(("errors", "close"), [("-2", True), ("2", True), ("-4", False), ("4", False)])
def test_an_end_within_three_errors_of_the_margin_is_close(study, form, end, errors, close) -> None:
    """The margin lies some errors beside the end that decides: of both, the one further from zero."""
    interval = decide(study, "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"').interval
    assert isinstance(interval, Interval)
    assert interval.errors is not None
    assert -interval.low + 10 * interval.errors[0] < interval.high
    far = interval.high if end == "upper" else -interval.low
    margin = far + Fraction(errors) * interval.errors[end == "upper"]
    decision = decide(study, f"{form}(gap_95, {float(margin):.12f})")
    assert bool(decision.close_calls) == close
    assert all(
        call.startswith(f"c0 could turn with the {end} end of gap_95") for call in decision.close_calls
    )
