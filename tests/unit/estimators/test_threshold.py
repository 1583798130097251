"""Steps until a learning curve reaches a threshold."""

from fractions import Fraction

import pytest

from toolkit.estimators import steps_to_threshold

STEPS = (0, 20, 40)


@pytest.mark.parametrize(
    ("success", "threshold", "expected"),
    [
        ((0, 1, 1), Fraction(1, 2), 10),
        ((Fraction(1, 2), 0, 0), Fraction(1, 2), 0),
        ((0, Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2), 30),
        ((0, Fraction(1, 2), 0), Fraction(1, 2), 20),
        ((0, 0, Fraction(49, 100)), Fraction(1, 2), None),
        ((1, 0, 1), Fraction(1, 2), 0),
    ],
)
def test_the_first_arrival_counts_interpolated(
    success: tuple[Fraction, ...], threshold: Fraction, expected: int | None
) -> None:
    assert steps_to_threshold([Fraction(s) for s in success], STEPS, threshold) == expected


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        steps_to_threshold([Fraction(1)], STEPS, Fraction(1, 2))
