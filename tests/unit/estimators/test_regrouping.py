"""Groups put together from a pool: explicit vectors, every group of a pool listed, and refusals."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.estimators import regrouped_moments

EPSILON = 1e-4


def pool(seed: int, tasks: int, rollouts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rewards (T, N), scores (T, N, 3) and their Gram matrices."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(tasks, rollouts, 3))
    return rng.integers(0, 2, (tasks, rollouts)), scores, np.einsum("tip,tjp->tij", scores, scores)


@settings(max_examples=40)
@given(
    st.integers(0, 2**31),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
)
def test_moments_are_those_of_explicit_gradients(
    seed: int, tasks: int, size: int, number: int, scaled: bool, weighted: bool
) -> None:
    rewards, scores, gram = pool(seed, tasks, size + 3)
    rng = np.random.default_rng(seed + 1)
    groups = np.array(
        [[rng.permutation(size + 3)[:size] for _ in range(number)] for _ in range(tasks)], dtype=int
    )
    weights = rng.uniform(0, 2, rewards.shape) * (rng.random(rewards.shape) > 0.3) if weighted else None
    found = regrouped_moments(rewards, gram, groups, weights=weights, standardized=scaled)
    for task in range(tasks):
        gradients, contrasts = [], []
        for listed in groups[task]:
            observed = [float(rewards[task, at]) for at in listed]
            mean = sum(observed) / size
            variance = sum((r - mean) ** 2 for r in observed) / (size - 1)
            gradient = np.zeros(3)
            for at, reward in zip(listed, observed, strict=True):
                weight = 1 / size if weights is None else weights[task, at]
                advantage = (reward - mean) / ((math.sqrt(variance) + EPSILON) if scaled else 1)
                gradient += advantage * weight * scores[task, at]
            gradients.append(gradient)
            contrasts.append(2 * variance)
        table = np.array(gradients)
        assert found.second[task] == pytest.approx((table**2).sum(axis=1).mean(), rel=1e-10, abs=1e-12)
        assert found.coefficients[task] @ scores[task] == pytest.approx(table.mean(axis=0), abs=1e-12)
        assert found.contrast[task] == pytest.approx(np.mean(contrasts), abs=1e-14)


def test_every_group_of_a_pool_together_has_the_pools_own_moments() -> None:
    """Over all groups of G of N: twice the sample variance, and c_i = (G-1)/(G(N-1)) (r_i - mean r)."""
    rewards, _, gram = pool(4, 2, 7)
    groups = np.array([list(combinations(range(7), 3))] * 2)
    found = regrouped_moments(rewards, gram, groups)
    assert found.contrast == pytest.approx(2 * rewards.var(axis=1, ddof=1), abs=1e-14)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.coefficients, centred * 2 / (3 * 6), atol=1e-15)


def test_a_group_of_one_reward_has_no_gradient() -> None:
    found = regrouped_moments([[1, 1, 1]], [np.eye(3)], [[[0, 2]]], standardized=True)
    assert (found.second.tolist(), found.contrast.tolist()) == ([0], [0])
    assert not found.coefficients.any()


PAIR = [[[0, 1]]]
EYE = np.eye(3)[None]


@pytest.mark.parametrize(
    ("rewards", "gram", "groups", "weights", "reason"),
    [
        ([[1, 0, 1]], EYE, [[[0, 3]]], None, "does not have"),
        ([[1, 0, 1]], EYE, [[[-1, 0]]], None, "does not have"),
        ([[1, 0, 1]], EYE, [[[0, 1], [2, 2]]], None, "or one twice"),
        ([[1, 0, 1]], EYE, [[[0, 1, 2, 0]]], None, "groups of 4 cannot be drawn from 3"),
        ([[1, 0, 1]], EYE, [[[0]]], None, "groups of 1 cannot"),
        ([[1, 0, 1]], EYE, np.zeros((1, 0, 2), dtype=int), None, "0 groups"),
        ([[1, 0, 1]], EYE, [[[0.0, 1.0]]], None, "of positions"),
        ([[1, 0, 1]], EYE, [[0, 1]], None, "of positions"),
        ([[1, 0, 1]], EYE, PAIR * 2, None, "of positions"),
        ([1, 0, 1], np.eye(3), PAIR, None, "expected rewards"),
        ([[1, 0, 1]], np.eye(2)[None], PAIR, None, "expected rewards"),
        ([[1, 0, math.nan]], EYE, PAIR, None, "finite"),
        ([[1, 0, 1]], EYE * math.nan, PAIR, None, "finite"),
        ([[1, 0, 1]], EYE, PAIR, [[1, 1, math.nan]], "finite"),
        ([[1, 0, 1]], EYE, PAIR, [[1, 1]], "finite weight"),
    ],
)
def test_what_is_no_group_is_refused(
    rewards: object, gram: object, groups: object, weights: object, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        regrouped_moments(rewards, gram, groups, weights=weights)
