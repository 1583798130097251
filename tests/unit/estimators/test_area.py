"""The area under a learning curve."""

from fractions import Fraction

import pytest

from toolkit.estimators import auc, auc_weights

STEPS = (0, 20, 40, 60, 80, 100)


def test_registered_weights_are_the_papers() -> None:
    assert auc_weights(STEPS) == tuple(Fraction(w, 10) for w in (1, 2, 2, 2, 2, 1))


def test_uneven_steps_weigh_by_their_gaps() -> None:
    # By hand: trapezoids (1+0)/2 * 10 and (0+1)/2 * 30 over a span of 40.
    assert auc([Fraction(1), Fraction(0), Fraction(1)], (0, 10, 40)) == Fraction(1, 2)


def test_a_published_curve_has_its_published_area() -> None:
    counts = (73, 83, 81, 85, 82, 85)  # C2 paired seed 0, of 128 episodes each; the register says 0.640625
    assert auc([Fraction(c, 128) for c in counts], STEPS) == Fraction("0.640625")


def test_area_agrees_with_numpy() -> None:
    import numpy as np

    values = [Fraction(k, 7) for k in (1, 5, 2, 6, 3)]
    steps = (0, 3, 10, 11, 40)
    expected = np.trapezoid([float(v) for v in values], steps) / 40
    assert float(auc(values, steps)) == pytest.approx(expected)


@pytest.mark.parametrize("steps", [(), (0,), (0, 0), (20, 0)])
def test_steps_that_are_no_curve_are_refused(steps: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="step"):
        auc_weights(steps)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        auc([Fraction(1)], (0, 1))
