"""The theory against enumeration of every action, mask and flip, and against the paper."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import estimators
from toolkit.estimators.theory import ByDesign


@pytest.mark.parametrize("size", range(1, 7))
def test_the_spurious_rate_is_what_enumeration_gives(size: int) -> None:
    q = Fraction(3, 10)
    rate = Fraction(0)
    for flips in product((0, 1), repeat=size):
        if len(set(flips)) > 1:
            rate += q ** sum(flips) * (1 - q) ** (size - sum(flips))
    assert estimators.spurious_rate(q, size) == rate


HALF, TENTH = Fraction(1, 2), Fraction(1, 10)


def pair(quantity: ByDesign, form: str) -> tuple[str, str]:
    return format(float(quantity.independent), form), format(float(quantity.paired), form)


def test_every_printed_digit_of_the_papers_appendix() -> None:
    """app:bandit: θ = 0, G = 8, q = 0.1."""
    result = estimators.bandit(estimators.success_probability(0.0), 8, TENTH)
    assert pair(result.contrast_variance, ".4f") == ("0.4950", "0.4500")
    assert pair(result.mean_centred_trace, ".6f") == ("0.002615", "0.005845")
    assert pair(result.mean_centred_norm, ".4f") == ("0.1969", "0.1969")
    assert pair(result.standardized_trace, ".6f") == ("0.007053", "0.019724")
    assert pair(result.standardized_norm, ".4f") == ("0.3918", "0.3905")
    left, right = Fraction(203, 4096), Fraction(7, 512)
    assert (result.clean_norm_squared, result.score_spread) == (left, right)
    assert (f"{float(left):.5f}", f"{float(right):.5f}") == ("0.04956", "0.01367")
    gap = TENTH * (1 - TENTH) * (left - right)
    assert f"{float(gap):.5f}" == "0.00323"


@pytest.mark.parametrize("p", [Fraction(1, 5), HALF, Fraction(9, 10)])
@pytest.mark.parametrize("q", [Fraction(0), TENTH, HALF, Fraction(1)])
def test_the_exact_condition_is_an_identity(p: Fraction, q: Fraction) -> None:
    """prop:condition, in exact arithmetic: trace_P - trace_I = q(1 - q)(L - R); and unbiasedness."""
    result = estimators.bandit(p, 6, q)
    trace, norm = result.mean_centred_trace, result.mean_centred_norm
    left, right = result.clean_norm_squared, result.score_spread
    assert trace.paired - trace.independent == q * (1 - q) * (left - right)
    # prop:unbiased: ∇J = (1 - q) p (1 - p), times (G - 1)/G, under both designs.
    assert norm.paired == norm.independent == Fraction(5, 6) * (1 - q) * p * (1 - p)


def test_a_logit_becomes_a_probability() -> None:
    assert estimators.success_probability(0.0) == HALF
    assert float(estimators.success_probability(2.0)) == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert float(estimators.success_probability(-800.0)) == 0.0
    with pytest.raises(ValueError, match="finite"):
        estimators.success_probability(float("nan"))


def test_the_proposition_in_both_designs() -> None:
    variance = estimators.contrast_variance(0.06, 0.15)
    assert (variance.independent, variance.paired) == pytest.approx((0.42, 0.30))


def test_the_estimate_is_the_mean_over_all_pairs_of_siblings() -> None:
    groups = np.random.default_rng(1).normal(size=(40, 8))
    by_pairs = np.mean([(group[i] - group[j]) ** 2 for group in groups for i, j in combinations(range(8), 2)])
    assert estimators.reward_contrast(groups) == pytest.approx(by_pairs)


def traces(outcomes: np.ndarray, scores: np.ndarray, q: float) -> tuple[float, float]:
    """Return the mask-induced traces of the paired and the independent design, mask by mask."""
    size = len(outcomes)

    def trace(masks: list[tuple[tuple[int, ...], float]]) -> float:
        gradients = [
            estimators.group_gradient(estimators.mean_centred(outcomes * np.array(m)), scores)
            for m, _ in masks
        ]
        weights = np.array([w for _, w in masks])
        mean = sum(w * g for w, g in zip(weights, gradients, strict=True))
        return float(sum(w * g @ g for w, g in zip(weights, gradients, strict=True)) - mean @ mean)

    alone = [(m, float(np.prod([1 - q if z else q for z in m]))) for m in product((0, 1), repeat=size)]
    return trace([((1,) * size, 1 - q), ((0,) * size, q)]), trace(alone)


@given(st.integers(0, 2**31), st.integers(2, 6), st.floats(0.01, 0.99))
def test_the_difference_of_traces_is_the_condition(seed: int, size: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    outcomes, scores = rng.integers(0, 2, size).astype(float), rng.normal(size=(size, 3))
    sides = estimators.exact_condition(outcomes, scores @ scores.T)
    paired, independent = traces(outcomes, scores, q)
    assert paired - independent == pytest.approx(float(sides.trace_difference(q)), abs=1e-10)
    # The independent masks keep the expected gradient, so its own mean is (1 - q) g_c in both designs.
    assert sides.left >= -1e-12
    assert sides.right >= -1e-12


@pytest.mark.parametrize("successes", range(9))
def test_orthogonal_scores_have_their_closed_form(successes: int) -> None:
    outcomes = np.arange(8) < successes
    sides = estimators.exact_condition(outcomes, 4 * np.eye(8))
    closed = estimators.orthogonal_condition(successes, 8, 4)
    assert float(closed.left) == pytest.approx(sides.left, abs=1e-12)
    assert float(closed.right) == pytest.approx(sides.right, abs=1e-12)
    assert closed.pairing_lowers_trace == (successes >= 2)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_many_groups_are_one_group_after_the_other(seed: int, groups: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    outcomes, scores = rng.integers(0, 2, (groups, size)), rng.normal(size=(groups, size, 3))
    left, right = estimators.exact_conditions(outcomes, scores @ scores.swapaxes(1, 2))
    for at in range(groups):
        one = estimators.exact_condition(outcomes[at], scores[at] @ scores[at].T)
        assert (left[at], right[at]) == pytest.approx((one.left, one.right), abs=1e-12)
        # eq:condition, from the vectors.
        centred = scores[at] - scores[at].mean(axis=0)
        gradient = ((outcomes[at] - outcomes[at].mean())[:, None] * scores[at]).mean(axis=0)
        assert left[at] == pytest.approx(gradient @ gradient, abs=1e-12)
        assert right[at] == pytest.approx(
            (outcomes[at] * (centred**2).sum(axis=1)).sum() / size**2, abs=1e-12
        )
