"""What must hold for every learning curve."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from toolkit.estimators import auc, auc_weights

curves = st.lists(
    st.tuples(st.integers(0, 1000), st.fractions(0, 1, max_denominator=128)),
    min_size=2,
    unique_by=lambda p: p[0],
).map(sorted)
Curve = list[tuple[int, Fraction]]


@given(curves)
def test_weights_are_positive_and_sum_to_one(curve: Curve) -> None:
    weights = auc_weights([step for step, _ in curve])
    assert sum(weights) == 1
    assert min(weights) > 0


@given(curves)
def test_an_area_lies_between_the_lowest_and_the_highest_success(curve: Curve) -> None:
    steps, success = zip(*curve, strict=True)
    assert min(success) <= auc(success, steps) <= max(success)


@given(curves)
def test_a_point_on_the_line_between_two_others_changes_nothing(curve: Curve) -> None:
    (left, low), (right, high), *rest = [(2 * step, value) for step, value in curve]
    middle = ((left + right) // 2, (low + high) / 2)
    before = [(left, low), (right, high), *rest]
    after = [(left, low), middle, (right, high), *rest]
    assert auc(*reversed(list(zip(*before, strict=True)))) == auc(*reversed(list(zip(*after, strict=True))))
