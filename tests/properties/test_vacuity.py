"""What the solver says of a test is what trying values finds: the evaluator is the oracle."""

from fractions import Fraction
from itertools import product
from unittest.mock import patch

from hypothesis import event, given
from hypothesis import strategies as st

from tests.unit.decisions.study import RULES, rule
from tests.unit.decisions.test_vacuity import Supposed
from toolkit.decisions import evaluation
from toolkit.decisions.evaluation import Example, outcomes
from toolkit.errors import RuleError
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.rules.sections import Formula
from toolkit.rules.values import Missing, Series
from toolkit.structs import replace

TEST = """
[tests.flip]
endpoint = "gap"
method = "sign flip"
over = "seeds"
alternative = "less"

[families.one]
tests = ["flip"]
method = "holm"

"""
BOOK = load_rulebook(RULES + TEST + rule("A", "mean(gap) > 0.5", "pooled < 1") + rule("H", "pooled > 0.5"))
COMPARISONS = (">=", "<=", ">", "<", "=")

ENDS = [Fraction(n, 2) for n in (-2, -1, 0, 1, 2)]
POINTS = [
    Example(
        {
            "gap": Series("seed", (("0", a), ("1", b))),
            "other": Series("seed", (("0", c), ("1", d))),
            "pooled": pooled,
        },
        {"gap_95": interval},
        {
            "flip": (
                min(abs(a) / 2 + Fraction(1, 4), abs(b) / 4 + Fraction(1, 2)),
                abs(b) / 4 + Fraction(1, 2),
            )
        },
    )
    for a, b, c, d, pooled, interval in product(
        ENDS, ENDS, ENDS[::2], ENDS[1::2], ENDS[2:], [(ENDS[0], ENDS[4]), (ENDS[2], ENDS[3])]
    )
][::9]

constants = st.sampled_from(("0", "0.5", "1", "2", "(-1)", "(-0.5)"))
named = st.sampled_from(("pooled", "mean(gap)", "mean(other)", "min(gap)", "max(gap)", "last(other)"))
ends = st.sampled_from(
    ("p(flip)", "adjusted(flip)", "mean(rest(gap))", "max(rest(rest(gap)))", "lower(gap_95)", "upper(gap_95)")
)
numbers = constants | named | ends | st.just("count(gap > 0)")
listed = st.sampled_from(
    ("rank_correlation(gap, other)", "mean(list(pooled, 0.5))", "last(list(1, max(gap)))")
)
series = st.sampled_from(("gap", "other", "abs(gap)", "rest(gap)", "gap - other", "gap + pooled", "-gap"))
linear = st.one_of(
    numbers,
    listed,
    st.builds("({} {} {})".format, numbers, st.sampled_from("+-"), numbers),
    st.builds("abs({})".format, numbers),
    st.builds("({} * {})".format, constants, numbers),
)
bent = st.sampled_from(
    ("variance(gap)", "variance(gap - other)", "slope(gap, other)", "variance(list(pooled, mean(gap), 0))")
)
curved = linear | bent | st.builds("({} {} {})".format, numbers, st.sampled_from("*/"), numbers)


def truths_of(some: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return tests about some numbers, nested twice at most."""
    each_of = st.one_of(
        st.builds("{} {} {}".format, series, st.sampled_from(COMPARISONS), some),
        st.builds("within({}, {}, {})".format, series, constants, some),
        st.builds("between({}, {}, {})".format, series, constants, some),
        st.builds("gap {} other".format, st.sampled_from(COMPARISONS)),
    )
    alone = st.one_of(
        st.builds("{} {} {}".format, some, st.sampled_from(COMPARISONS), some),
        st.builds("within({}, {}, {})".format, some, some, constants),
        st.builds("{}({})".format, st.sampled_from(("each", "majority")), each_of),
        st.builds("count({}) {} {}".format, each_of, st.sampled_from(COMPARISONS), constants),
        st.builds("decreasing({})".format, series),
        st.sampled_from(("passes(A)", "equivalent(gap_95, 0.5)", "non_inferior(gap_95, 0.25)")),
    )
    several = st.lists(alone, min_size=1, max_size=3).map(", ".join)
    return alone | st.builds("{}({})".format, st.sampled_from(("all", "any", "not(all")), several).map(closed)


def closed(text: str) -> str:
    """Close every parenthesis that a text leaves open."""
    return text + ")" * (text.count("(") - text.count(")"))


def book_of(test: str) -> RuleBook:
    """Return the small registration with one test in rule H, unchecked but for its grammar."""
    criterion = replace(BOOK.rules["H"].criteria[0], test=Formula.decoded(test))
    return replace(BOOK, rules=BOOK.rules | {"H": replace(BOOK.rules["H"], criteria=(criterion,))})


def check(test: str) -> str:
    """Compare what the solver says of a test with what values show, and return what it says."""
    book = book_of(test)
    tried = [Supposed(book, point).decide("H").holds for point in POINTS]
    try:
        examples = outcomes(book, "H")
    except RuleError as error:
        if error.problem == "rule H can never pass":
            assert True not in tried
        elif error.problem == "rule H can never miss":
            assert False not in tried
        return error.problem
    assert Supposed(book, examples.passes).decide("H").holds is True
    assert Supposed(book, examples.misses).decide("H").holds is False
    for example in (examples.passes, examples.misses):
        assert all(inside(book, name, value) for name, value in example.endpoints.items())
        assert all(Fraction(1, 4) <= plain <= adjusted <= 1 for plain, adjusted in example.tests.values())
        assert all(Fraction(-1) <= low <= high <= 1 for low, high in example.intervals.values())
    return "open"


def inside(book: RuleBook, name: str, value: Fraction | Series[Fraction] | Missing) -> bool:
    """Whether a value lies within the declared range of its endpoint."""
    declared = book.endpoints[name]
    values = value.values if isinstance(value, Series) else (value,)
    return all(isinstance(one, Fraction) and declared.low <= one <= declared.high for one in values)


@given(truths_of(linear))
def test_a_linear_test_is_always_decided_and_as_values_show(test: str) -> None:
    says = check(test)
    event(says)
    assert "could not be decided" not in says


@given(truths_of(curved))
def test_what_products_and_quotients_allow_is_what_values_show(test: str) -> None:
    with patch.object(evaluation, "LIMIT", 2000):
        event(check(test))
