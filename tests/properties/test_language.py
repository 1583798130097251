"""What must hold for every test of the rule language, and for every text that is none."""

import contextlib
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import RuleError
from toolkit.rules.expressions import COMPARISONS, OPERATORS, Binary, Call, Expression, Name, Number, parse

numbers = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4})?", fullmatch=True).map(lambda t: Number(t, Fraction(t)))
names = st.from_regex(r"[a-z_]{1,9}", fullmatch=True).filter(lambda n: n not in OPERATORS).map(Name)


def grow(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(
            Call, st.sampled_from(sorted(OPERATORS)), st.lists(children, min_size=1, max_size=3).map(tuple)
        ),
        st.builds(Binary, st.sampled_from(("+", "-", "*", "/", *COMPARISONS)), children, children),
    )


expressions = st.recursive(numbers | names, grow, max_leaves=12)


def written(expression: Expression) -> str:
    """Write an expression out, with every grouping explicit."""
    match expression:
        case Number(text, _):
            return text
        case Name(name):
            return name
        case Call(operator, arguments):
            return f"{operator}({', '.join(map(written, arguments))})"
        case Binary(operator, left, right):
            return f"({written(left)}) {operator} ({written(right)})"


@given(expressions)
def test_what_is_written_is_what_is_parsed(expression: Expression) -> None:
    assert parse(written(expression), "here") == expression


@given(expressions)
def test_spaces_mean_nothing(expression: Expression) -> None:
    text = written(expression)
    assert parse(text.replace("(", " ( ").replace(",", "\t,\n"), "here") == expression


@given(st.text(max_size=60) | st.text(alphabet="()+-*/<>=,. 0123456789abcmean", max_size=80))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(RuleError):
        parse(text, "here")
