"""A quotient over what may be zero says so; one over what is told from zero does not."""

from fractions import Fraction

import pytest

from tests.unit.decisions.study import rule
from tests.unit.decisions.test_closeness import decide, study  # noqa: F401 - the fixture
from tests.unit.decisions.test_statistic import decided, level, statistic
from toolkit.decisions.intervals import Interval, caution, means_divided_by
from toolkit.registers.study import Study
from toolkit.rules.expressions import parse
from toolkit.rules.values import Missing, Series
from toolkit.structs import as_builtins


def series(*values: str) -> Series[Fraction]:
    return Series("seed", tuple((str(at), Fraction(value)) for at, value in enumerate(values)))


def interval(low: str, high: str) -> Interval:
    return Interval("i", "gap", Fraction("0.95"), Fraction(low), Fraction(high), "computed", "")


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("between(1 - mean(other) / mean(gap), 0.3, 0.7)", ["gap"]),
        ("mean(gap) > 0", []),
        ("mean(gap) / 2 > 0", []),
        ("all(mean(a) / abs(mean(b)) > 0, each(a / b > 1))", ["b", "b"]),
        ("mean(a) / (mean(b) - mean(c)) > 0", []),
        ("mean(a) / variance(b) > 0", []),
    ],
)
def test_what_a_test_divides_by(test: str, names: list[str]) -> None:
    assert list(means_divided_by(parse(test, "here"))) == names


@pytest.mark.parametrize(
    ("values", "is_said"),
    [
        (("0.01", "-0.005", "0.002"), True),
        (("0.10", "0.11", "0.09"), False),
        (("-0.10", "-0.11", "-0.09"), False),
        # Three seeds: ± t(0.975, 2) = 4.303 standard errors. Mean 1, error 0.5/√3 = 0.289: 1.24 reaches zero.
        (("0.5", "1", "1.5"), True),
        (("0.6", "1", "1.4"), False),  # 0.99
    ],
)
def test_near_zero_is_what_students_interval_over_the_seeds_holds(
    values: tuple[str, ...], is_said: bool
) -> None:
    found = caution("gap", series(*values), None)
    assert bool(found) == is_said
    if is_said:
        assert "the mean of gap, is not told from zero" in found
        assert "3 members" in found


def test_a_registered_interval_counts_before_students() -> None:
    near, far = series("0.01", "-0.005", "0.002"), series("0.10", "0.11", "0.09")
    assert caution("gap", near, interval("0.001", "0.002")) == ""
    assert "[-0.1000, +0.3000] (its registered interval)" in caution("gap", far, interval("-0.1", "0.3"))
    assert caution("gap", far, interval("0", "0.3"))
    assert caution("gap", far, interval("-0.3", "0"))
    # One that cannot be had leaves Student's.
    assert "2 members" in caution("gap", series("0.1", "-0.1"), Missing(not_run=False, reasons=("x",)))


@pytest.mark.parametrize("gap", [Missing(not_run=True, reasons=("x",)), series("0"), Fraction(0)])
def test_where_nothing_is_known_nothing_is_said(gap: object) -> None:
    assert caution("gap", gap, None) == ""


def test_a_decision_says_it_beside_its_criterion(study: Study) -> None:  # noqa: F811
    """In the small study the registered interval of the gap excludes zero; moved by its mean it cannot."""
    decision = decide(study, "mean(gap) / mean(gap) = 1", "mean(gap) > -1")
    known = decide(study, "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"').interval
    holds_zero = known.low <= 0 <= known.high
    assert [bool(c.cautions) for c in decision.criteria] == [holds_zero, False]
    documents = as_builtins(decision.criteria)
    assert ["cautions" in document for document in documents] == [holds_zero, False]


@pytest.mark.parametrize(("formula", "is_said"), [("mean(x) / mean(d)", True), ("mean(d) / mean(x)", False)])
def test_a_statistic_that_divides_by_nearly_nothing_is_said_where_it_is_read(
    formula: str, is_said: bool
) -> None:
    """`x` is a success rate; `d` the difference of two arms' rates, drawn alike."""
    gap = level("d", "Y").replace('["paired"]', '["paired", "independent"]').replace('["0"', '["-1"')
    parts = (gap, statistic("share", formula, ends='["-999", "999"]'), rule("H", "share < 900"))
    (criterion,) = decided(*parts).criteria
    assert bool(criterion.cautions) == is_said
