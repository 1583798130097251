"""The bandit against enumeration of every action tuple and every corruption mask, and against the paper."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from toolkit.estimators import bandit, standardized, success_probability
from toolkit.estimators.theory import ByDesign

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)


def enumerated(p: float, size: int, q: float, *, paired: bool, scaled: bool) -> tuple[float, float]:
    """Return variance and absolute mean of the group gradient from all 2^G actions and all masks."""
    mean = square = 0.0
    for actions in product((0, 1), repeat=size):
        chance = np.prod([p if a else 1 - p for a in actions])
        masks = [((1,) * size, 1 - q), ((0,) * size, q)]
        if not paired:
            masks = [
                (m, np.prod([(1 - q) if kept else q for kept in m])) for m in product((0, 1), repeat=size)
            ]
        for mask, weight in masks:
            rewards = np.array(actions) * np.array(mask)
            advantages = standardized(rewards) if scaled else rewards - rewards.mean()
            value = float(np.mean(advantages * (np.array(actions) - p)))
            mean += chance * weight * value
            square += chance * weight * value**2
    return square - mean**2, abs(mean)


@pytest.mark.parametrize(("p", "size", "q"), [(0.5, 4, 0.1), (0.2, 3, 0.3), (0.9, 5, 0.05), (0.5, 2, 0.5)])
def test_the_bandit_is_what_enumeration_gives(p: float, size: int, q: float) -> None:
    result = bandit(p, size, q)
    for paired in (False, True):
        side = "paired" if paired else "independent"
        for scaled, trace, norm in (
            (False, result.mean_centred_trace, result.mean_centred_norm),
            (True, result.standardized_trace, result.standardized_norm),
        ):
            expected = enumerated(p, size, q, paired=paired, scaled=scaled)
            assert (getattr(trace, side), getattr(norm, side)) == pytest.approx(
                expected, rel=1e-10, abs=1e-14
            )


def pair(quantity: ByDesign, form: str) -> tuple[str, str]:
    return format(float(quantity.independent), form), format(float(quantity.paired), form)


def test_every_printed_digit_of_the_papers_appendix() -> None:
    """app:bandit: θ = 0, G = 8, q = 0.1."""
    result = bandit(success_probability(0.0), 8, TENTH)
    assert pair(result.contrast_variance, ".4f") == ("0.4950", "0.4500")
    assert pair(result.mean_centred_trace, ".6f") == ("0.002615", "0.005845")
    assert pair(result.mean_centred_norm, ".4f") == ("0.1969", "0.1969")
    assert pair(result.standardized_trace, ".6f") == ("0.007053", "0.019724")
    assert pair(result.standardized_norm, ".4f") == ("0.3918", "0.3905")
    assert f"{float(result.clean_norm_squared):.5f}" == "0.04956"
    assert f"{float(result.score_spread):.5f}" == "0.01367"
    gap = TENTH * (1 - TENTH) * (result.clean_norm_squared - result.score_spread)
    assert f"{float(gap):.5f}" == "0.00323"


def test_rational_inputs_give_exact_results() -> None:
    result = bandit(HALF, 8, TENTH)
    assert result.contrast_variance.independent == Fraction(99, 200)
    assert result.clean_norm_squared == Fraction(203, 4096)
    assert result.score_spread == Fraction(7, 512)


@pytest.mark.parametrize("p", [Fraction(1, 5), HALF, Fraction(9, 10)])
@pytest.mark.parametrize("q", [Fraction(0), TENTH, HALF, Fraction(1)])
def test_the_exact_condition_is_an_identity(p: Fraction, q: Fraction) -> None:
    """prop:condition, in exact arithmetic: trace_P - trace_I = q(1 - q)(L - R); and unbiasedness."""
    result = bandit(p, 6, q)
    trace, norm = result.mean_centred_trace, result.mean_centred_norm
    left, right = result.clean_norm_squared, result.score_spread
    assert trace.paired - trace.independent == q * (1 - q) * (left - right)
    # prop:unbiased: ∇J = (1 - q) p (1 - p), times (G - 1)/G, under both designs.
    assert norm.paired == norm.independent == Fraction(5, 6) * (1 - q) * p * (1 - p)


@pytest.mark.parametrize("arguments", [(1.5, 8, 0.1), (0.5, 8, -0.1), (0.5, 1, 0.1), (0.5, 5000, 0.1)])
def test_what_is_no_bandit_is_refused(arguments: tuple[float, int, float]) -> None:
    with pytest.raises(ValueError, match="found"):
        bandit(*arguments)


def test_a_logit_becomes_a_probability() -> None:
    assert success_probability(0.0) == HALF
    assert float(success_probability(2.0)) == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert float(success_probability(-800.0)) == 0.0
    with pytest.raises(ValueError, match="finite"):
        success_probability(float("nan"))
