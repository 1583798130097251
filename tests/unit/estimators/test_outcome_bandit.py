"""app:bandit through the probe's code: each of the 2^8 action tuples is a clean group of scalar scores.

The paper: the same code path computes the probe's outcome noise, and gives these numbers.
"""

import math
from itertools import product

import numpy as np
import pytest

from toolkit.estimators import bandit, enumerated_outcome_moments, exact_conditions, outcome_moments

SIZE, Q = 8, 0.1
PAPER = {
    # scaled: independent and paired trace, independent and paired norm
    False: (("0.002615", "0.005845"), ("0.1969", "0.1969")),
    True: (("0.007053", "0.019724"), ("0.3918", "0.3905")),
}


def groups(p: float, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every tuple of actions, its scalar scores a - p, and its probability."""
    actions = np.array(list(product((0, 1), repeat=size)), dtype=float)
    chances = np.array([math.prod(p if a else 1 - p for a in row) for row in actions])
    return actions, actions - p, chances


def through_the_probe(
    p: float, size: int, q: float, *, scaled: bool, listed: bool = False
) -> dict[str, tuple[float, float, float]]:
    """Return design → trace, norm of the mean gradient, variance of a contrast."""
    actions, scores, chances = groups(p, size)
    function = enumerated_outcome_moments if listed else outcome_moments
    products = scores[:, :, None] * scores[:, None, :]
    found = function(actions, products, q, standardized=scaled)
    figures = {}
    for design in ("independent", "paired"):
        one = getattr(found, design)
        # E g differs from tuple to tuple: the pooled mean is that of the means.
        mean = float(chances @ (one.coefficients * scores).sum(axis=1))
        figures[design] = (chances @ one.second - mean**2, abs(mean), chances @ one.contrast)
    return figures


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_every_printed_digit_of_the_papers_appendix(scaled: bool, listed: bool) -> None:
    found = through_the_probe(0.5, SIZE, Q, scaled=scaled, listed=listed)
    one, other = found["independent"], found["paired"]
    traces, norms = PAPER[scaled]
    assert (f"{one[0]:.6f}", f"{other[0]:.6f}") == traces
    assert (f"{one[1]:.4f}", f"{other[1]:.4f}") == norms
    assert (f"{one[2]:.4f}", f"{other[2]:.4f}") == ("0.4950", "0.4500")


@pytest.mark.parametrize(("p", "size", "q"), [(0.5, 8, 0.1), (0.2, 5, 0.3), (0.9, 6, 0.05), (0.4, 4, 0.0)])
@pytest.mark.parametrize("scaled", [False, True])
def test_it_is_the_bandit_of_the_other_estimator(p: float, size: int, q: float, scaled: bool) -> None:
    found, other = through_the_probe(p, size, q, scaled=scaled), bandit(p, size, q)
    trace = other.standardized_trace if scaled else other.mean_centred_trace
    norm = other.standardized_norm if scaled else other.mean_centred_norm
    for design, figures in found.items():
        expected = [float(getattr(part, design)) for part in (trace, norm, other.contrast_variance)]
        assert figures == pytest.approx(expected, abs=1e-12)


def test_both_sides_of_the_condition_are_the_bandits() -> None:
    actions, scores, chances = groups(0.5, SIZE)
    left, right = exact_conditions(actions, scores[:, :, None] * scores[:, None, :])
    assert (f"{chances @ left:.5f}", f"{chances @ right:.5f}") == ("0.04956", "0.01367")
    found = through_the_probe(0.5, SIZE, Q, scaled=False)
    gap = found["paired"][0] - found["independent"][0]
    assert gap == pytest.approx(Q * (1 - Q) * float(chances @ (left - right)), abs=1e-14)
    assert f"{gap:.5f}" == "0.00323"
