"""From the text of a test to its expression, and what is wrong with one before any row is read."""

from fractions import Fraction

import pytest

from toolkit.errors import RuleError
from toolkit.rules.expressions import (
    MAX_LENGTH,
    OPERATORS,
    Binary,
    Call,
    Name,
    Number,
    names_in,
    parse,
)


def number(text: str) -> Number:
    return Number(text, Fraction(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", Name("x")),
        ("0.57", number("0.57")),
        ("mean(x) >= 0.03", Binary(">=", Call("mean", (Name("x"),)), number("0.03"))),
        ("each(x > 0)", Call("each", (Binary(">", Name("x"), number("0")),))),
        ("within(x, 0.57, 0.07)", Call("within", (Name("x"), number("0.57"), number("0.07")))),
        ("1 - a / b", Binary("-", number("1"), Binary("/", Name("a"), Name("b")))),
        ("(1 - a) / b", Binary("/", Binary("-", number("1"), Name("a")), Name("b"))),
        ("a - b - c", Binary("-", Binary("-", Name("a"), Name("b")), Name("c"))),
        ("a > -0.03", Binary(">", Name("a"), Binary("-", number("0"), number("0.03")))),
        (
            "any(passes(A), passes(B))",
            Call("any", (Call("passes", (Name("A"),)), Call("passes", (Name("B"),)))),
        ),
    ],
)
def test_a_test_parses_to_its_expression(text: str, expected: object) -> None:
    assert parse(text, "here") == expected


NO_TESTS = ["", "mean(x", "mean()", "mean(x))", "a >= b >= c", "a b", "1.", ".5", "1e-3", "x = = 1", "x == 1"]
NO_TESTS += ["'text'", "x; y", "__import__('os')", "x.y", "x[0]", "lambda: 1", "½ > 0", "a ** b", ",", "("]
NO_TESTS += ["mеan(x) > 0"]  # noqa: RUF001 - a Cyrillic letter on purpose


@pytest.mark.parametrize("text", NO_TESTS)
def test_what_is_no_test_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse(text, "here")


def test_an_unknown_operator_is_named_with_the_known_ones() -> None:
    with pytest.raises(RuleError) as caught:
        parse("median(x) > 0", "H9.first")
    assert "median" in caught.value.problem
    assert caught.value.where == "H9.first"
    assert all(name in str(caught.value.expected) for name in OPERATORS)


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "x" + ")" * 5000, "-" * 1500 + "x", "x" * (MAX_LENGTH + 1), "1" + "+1" * 900 + " > 0"],
)
def test_hostile_depth_and_length_are_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse(text, "here")


def test_nesting_below_the_limit_is_refused_by_depth_not_by_the_interpreter() -> None:
    with pytest.raises(RuleError, match="deeply"):
        parse("abs(" * 60 + "x" + ")" * 60, "here")


def test_names_are_listed_in_order_of_appearance() -> None:
    assert list(names_in(parse("all(mean(b) > a, passes(H1), -c < 1)", ""))) == ["b", "a", "H1", "c"]
