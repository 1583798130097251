"""Kleene logic and printed numbers."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.decisions.evaluation import evaluate
from toolkit.errors import RuleError
from toolkit.rules import values
from toolkit.rules.expressions import Binary, Name

GAP = values.Missing(not_run=False, reasons=("a gap",))
NEVER = values.Missing(not_run=True, reasons=("never run",))


def completions(truths: tuple[bool | values.Missing, ...]) -> list[tuple[bool, ...]]:
    """Return every way in which unknown values could turn out."""
    choices = [(True, False) if isinstance(t, values.Missing) else (t,) for t in truths]
    return list(product(*choices))


def agrees(answer: bool | values.Missing, outcomes: set[bool]) -> bool:
    """Whether an answer is the one that all completions share, or unknown where they differ."""
    return isinstance(answer, values.Missing) if len(outcomes) == 2 else answer is outcomes.pop()


ALL = [truths for size in (2, 3) for truths in product((True, False, GAP), repeat=size)]


@pytest.mark.parametrize("truths", ALL)
def test_an_operator_is_unknown_where_completions_differ(truths: tuple[bool | values.Missing, ...]) -> None:
    ways = completions(truths)
    assert agrees(values.kleene_all(truths), {all(way) for way in ways})
    assert agrees(values.kleene_any(truths), {any(way) for way in ways})
    assert agrees(values.kleene_majority(truths), {2 * sum(way) > len(way) for way in ways})


def test_series_of_other_members_are_not_combined() -> None:
    series = {name: values.Series("seed", ((name, Fraction(1)),)) for name in "ab"}
    with pytest.raises(RuleError, match="different members"):
        evaluate(Binary("-", Name("a"), Name("b")), lambda _, name: series[name])


def test_a_mean_is_over_all_members_and_none_while_one_is_missing() -> None:
    assert values.mean_of(values.Series("seed", (("0", Fraction(1)), ("1", Fraction(4))))) == Fraction(5, 2)
    assert values.mean_of(values.Series("seed", (("0", Fraction(1)), ("1", GAP)))) == GAP


def test_negation_keeps_what_is_unknown() -> None:
    assert values.kleene_not(GAP) is GAP
    assert values.kleene_not(True) is False


def test_missing_together_is_not_run_only_if_all_of_it_is() -> None:
    assert values.together([NEVER, NEVER]) == NEVER
    assert values.together([NEVER, GAP]) == values.Missing(not_run=False, reasons=("never run", "a gap"))


@pytest.mark.parametrize(
    ("value", "text", "decimal"),
    [
        (Fraction(71, 1920), "71/1920", 0.03698),
        (Fraction(0), "0", 0.0),
        (Fraction("0.34665099965789636"), "0.34665099965789636", 0.34665),
        (Fraction("-0.0039"), "-39/10000", -0.0039),
        (Fraction("0.27486711098878242"), "0.2748671109887824", 0.27487),
    ],
)
def test_numbers_print_exactly_and_rounded(value: Fraction, text: str, decimal: float) -> None:
    assert (values.exact_text(value), values.rounded(value)) == (text, decimal)


@given(st.fractions(-1000, 1000, max_denominator=2000), st.integers(0, 6))
def test_a_number_is_rounded_once_from_the_exact_one_and_a_tie_to_the_even_digit(value, digits) -> None:
    with localcontext(Context(prec=60)):
        known = Decimal(value.numerator) / Decimal(value.denominator)
        rounded = known.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    assert Decimal(values.fixed(value, digits)) == rounded
    assert values.fixed(value, digits, signed=True)[0] in "+-"
