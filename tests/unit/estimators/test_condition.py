"""The exact condition against enumerated masks, and its closed form for orthogonal scores."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.estimators import (
    exact_condition,
    exact_conditions,
    group_gradient,
    mean_centred,
    orthogonal_condition,
)


def traces(outcomes: np.ndarray, scores: np.ndarray, q: float) -> tuple[float, float]:
    """Return the mask-induced traces of the paired and the independent design, mask by mask."""
    size = len(outcomes)

    def trace(masks: list[tuple[tuple[int, ...], float]]) -> float:
        gradients = [group_gradient(mean_centred(outcomes * np.array(m)), scores) for m, _ in masks]
        weights = np.array([w for _, w in masks])
        mean = sum(w * g for w, g in zip(weights, gradients, strict=True))
        return float(sum(w * g @ g for w, g in zip(weights, gradients, strict=True)) - mean @ mean)

    alone = [(m, float(np.prod([1 - q if z else q for z in m]))) for m in product((0, 1), repeat=size)]
    return trace([((1,) * size, 1 - q), ((0,) * size, q)]), trace(alone)


@given(st.integers(0, 2**31), st.integers(2, 6), st.floats(0.01, 0.99))
def test_the_difference_of_traces_is_the_condition(seed: int, size: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    outcomes, scores = rng.integers(0, 2, size).astype(float), rng.normal(size=(size, 3))
    sides = exact_condition(outcomes, scores @ scores.T)
    paired, independent = traces(outcomes, scores, q)
    assert paired - independent == pytest.approx(float(sides.trace_difference(q)), abs=1e-10)
    # The independent masks keep the expected gradient, so its own mean is (1 - q) g_c in both designs.
    assert sides.left >= -1e-12
    assert sides.right >= -1e-12


@pytest.mark.parametrize("successes", range(9))
def test_orthogonal_scores_have_their_closed_form(successes: int) -> None:
    outcomes = np.arange(8) < successes
    sides = exact_condition(outcomes, 4 * np.eye(8))
    closed = orthogonal_condition(successes, 8, 4)
    assert float(closed.left) == pytest.approx(sides.left, abs=1e-12)
    assert float(closed.right) == pytest.approx(sides.right, abs=1e-12)
    assert closed.pairing_lowers_trace == (successes >= 2)


def test_pairing_never_loses_on_an_all_correct_group() -> None:
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(8, 20))
    sides = exact_condition(np.ones(8), scores @ scores.T)
    assert sides.left == pytest.approx(0, abs=1e-12)
    assert sides.pairing_lowers_trace


@pytest.mark.parametrize(
    ("outcomes", "gram"),
    [
        ([1, 0], np.eye(3)),
        ([], np.eye(0)),
        (np.zeros((0, 2)), np.eye(2)),
        ([0.5, 1], np.eye(2)),
        ([1, 0], [[1, np.nan], [0, 1]]),
        (1, np.eye(1)),
    ],
)
def test_what_is_no_group_is_refused(outcomes: object, gram: object) -> None:
    with pytest.raises(ValueError, match=r"expected outcomes|outcomes are"):
        exact_condition(outcomes, gram)


@pytest.mark.parametrize(("successes", "size"), [(9, 8), (-1, 8), (0, 0)])
def test_what_is_no_count_is_refused(successes: int, size: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= k <= G"):
        orthogonal_condition(successes, size)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_many_groups_are_one_group_after_the_other(seed: int, groups: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    outcomes, scores = rng.integers(0, 2, (groups, size)), rng.normal(size=(groups, size, 3))
    left, right = exact_conditions(outcomes, scores @ scores.swapaxes(1, 2))
    for at in range(groups):
        one = exact_condition(outcomes[at], scores[at] @ scores[at].T)
        assert (left[at], right[at]) == pytest.approx((one.left, one.right), abs=1e-12)
        # eq:condition, from the vectors.
        centred = scores[at] - scores[at].mean(axis=0)
        gradient = ((outcomes[at] - outcomes[at].mean())[:, None] * scores[at]).mean(axis=0)
        assert left[at] == pytest.approx(gradient @ gradient, abs=1e-12)
        assert right[at] == pytest.approx(
            (outcomes[at] * (centred**2).sum(axis=1)).sum() / size**2, abs=1e-12
        )


def test_two_clusters_of_scores_have_their_closed_form() -> None:
    """Two clusters of scores: L = (k(G-k)/G²)² d², R = k (G-k)²/G⁴ d², equal only where k = 1."""
    for k in range(1, 6):
        outcomes = (np.arange(6) < k).astype(float)
        scores = outcomes[:, None] * np.array([3.0, 4.0])
        left, right = exact_conditions([outcomes], [scores @ scores.T])
        assert left[0] == pytest.approx((k * (6 - k) / 36) ** 2 * 25, abs=1e-12)
        assert right[0] == pytest.approx(k * (6 - k) ** 2 / 6**4 * 25, abs=1e-12)
