"""A criterion that compares two measured numbers says both."""

import pytest

from toolkit.decisions.evaluation import compared_with
from toolkit.decisions.expressions import Call, Name
from toolkit.decisions.grammar import parse


def test_what_is_measured_on_the_other_side_is_named() -> None:
    assert compared_with(parse("mean(a) > mean(b)", "")) == Call("mean", (Name("b"),))
    assert compared_with(parse("each(a < first(a))", "")) == Call("first", (Name("a"),))


@pytest.mark.parametrize("test", ["mean(a) >= 0.03", "mean(a) > -0.03", "all(a > 0, b > c)", "passes(H1)"])
def test_a_number_as_written_needs_no_second_one(test: str) -> None:
    assert compared_with(parse(test, "")) is None
