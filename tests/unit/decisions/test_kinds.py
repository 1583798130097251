"""Checking a test before any row is read."""

import pytest

from toolkit.decisions.expressions import Kind, check_test, names_in
from toolkit.decisions.grammar import parse
from toolkit.errors import RuleError

NAMES = {
    "series": Kind.NUMBERS,
    "scalar": Kind.NUMBER,
    "interval": Kind.INTERVAL,
    "H1": Kind.RULE,
}


@pytest.mark.parametrize(
    "text",
    [
        "mean(series) >= 0.03",
        "each(series > 0)",
        "majority(series < scalar)",
        "scalar <= 0.02",
        "lower(interval) > -0.03",
        "any(passes(H1), scalar > 1)",
        "not(each(within(series, 0, 1)))",
        "count(abs(series) > 1) >= 2",
        "decreasing(rest(series))",
        "each(series - series < 1)",
        "between(1 - mean(series) / scalar, 0.3, 0.7)",
    ],
)
def test_a_well_formed_test_passes(text: str) -> None:
    check_test(parse(text, "here"), NAMES, "here")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mean(unknown) > 0", "not declared"),
        ("mean(scalar) > 0", "takes a series"),
        ("series > 0", "does not give true or false"),
        ("mean(series)", "does not give true or false"),
        ("each(scalar > 0)", "takes a series"),
        ("each(series)", "takes a series of true or false"),
        ("interval > 0", "takes numbers"),
        ("lower(series) > 0", "takes an interval"),
        ("passes(series)", "takes a rule"),
        ("H1", "does not give true or false"),
        ("within(scalar, 1)", "takes 3 arguments"),
        ("within(scalar, series, 1)", "takes a number"),
        ("all(scalar)", "takes true or false"),
        ("(scalar > 0) + 1 > 0", "takes numbers"),
        ("passes(scalar > 0)", "takes a rule"),
    ],
)
def test_a_malformed_test_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RuleError, match=problem):
        check_test(parse(text, "here"), NAMES, "here")


def test_names_are_listed_in_order_of_appearance() -> None:
    assert list(names_in(parse("all(mean(b) > a, passes(H1), -c < 1)", ""))) == ["b", "a", "H1", "c"]
