"""Moments under noise: the closed form, every mask listed, the definition, regrouped pools, the bandit."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import estimators
from toolkit.estimators.moments import GroupMoments, OutcomeMoments
from toolkit.registers.study import Study

DESIGNS = ("paired", "independent")
EPSILON = 1e-4
RATES = st.one_of(st.sampled_from([0.0, 0.1, 1.0]), st.floats(0, 1))
WEIGHTS = st.sampled_from([None, 0.0, 0.5])
"""None: left out; else the share of rollouts whose weight is zero."""


def drawn(seed: int, tasks: int, size: int, zeros: float | None) -> tuple[np.ndarray, ...]:
    """Return outcomes (T, G), scores (T, G, 3) and weights (T, G) or None."""
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 2, (tasks, size)).astype(float)
    scores = rng.normal(size=(tasks, size, 3))
    weights = (
        None if zeros is None else rng.uniform(0, 2, (tasks, size)) * (rng.random((tasks, size)) > zeros)
    )
    return outcomes, scores, weights


def masks(size: int, q: float, design: str) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield what the grader lets stand, Z in {0, 1}^G, and how likely it is."""
    if design == "paired":
        yield (1,) * size, 1 - q
        yield (0,) * size, q
        return
    for kept in product((0, 1), repeat=size):
        yield kept, math.prod(1 - q if z else q for z in kept)


def by_definition(
    outcomes: Sequence[float], scores: np.ndarray, q: float, design: str, *, weights: object, scaled: bool
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Return E‖g‖², E g, E[A w] and the variance of a contrast, from R = Z r and g = Σ A w S."""
    size = len(outcomes)
    w = [1 / size] * size if weights is None else list(weights)
    second, contrast = 0.0, 0.0
    mean, advantages = np.zeros(scores.shape[1]), np.zeros(size)
    for mask, chance in masks(size, q, design):
        observed = [z * r for z, r in zip(mask, outcomes, strict=True)]
        average = sum(observed) / size
        spread = (
            math.sqrt(sum((r - average) ** 2 for r in observed) / (size - 1)) + EPSILON if scaled else 1.0
        )
        weighted = [(r - average) / spread * one for r, one in zip(observed, w, strict=True)]
        gradient = sum(a * s for a, s in zip(weighted, scores, strict=True))
        second += chance * float(gradient @ gradient)
        mean += chance * gradient
        advantages += chance * np.array(weighted)
        pairs = [(one - other) ** 2 for one, other in permutations(observed, 2)]
        contrast += chance * sum(pairs) / len(pairs)
    return second, mean, advantages, contrast


def of(found: OutcomeMoments, design: str) -> GroupMoments:
    return getattr(found, design)


def gram(scores: np.ndarray) -> np.ndarray:
    return np.einsum("tip,tjp->tij", scores, scores)


@given(st.integers(0, 2**31), st.integers(2, 5), RATES, WEIGHTS, st.booleans())
def test_both_are_as_defined(seed: int, size: int, q: float, zeros: float | None, scaled: bool) -> None:
    outcomes, scores, weights = drawn(seed, 2, size, zeros)
    for function in (estimators.outcome_moments, estimators.enumerated_outcome_moments):
        moments = function(outcomes, gram(scores), q, weights=weights, standardized=scaled)
        for design in DESIGNS:
            group = of(moments, design)
            for task in range(2):
                mine = None if weights is None else weights[task]
                second, mean, advantages, contrast = by_definition(
                    outcomes[task], scores[task], q, design, weights=mine, scaled=scaled
                )
                assert group.second[task] == pytest.approx(second, rel=1e-10, abs=1e-12)
                assert group.coefficients[task] == pytest.approx(advantages, rel=1e-10, abs=1e-12)
                assert group.coefficients[task] @ scores[task] == pytest.approx(mean, rel=1e-10, abs=1e-12)
                assert group.contrast[task] == pytest.approx(contrast, rel=1e-10, abs=1e-14)


@given(st.integers(0, 2**31), st.integers(2, 5), RATES, WEIGHTS, st.booleans())
def test_a_form_gives_the_mean_square_of_any_coordinate(seed, size, q, zeros, scaled) -> None:
    outcomes, scores, weights = drawn(seed, 2, size, zeros)
    found = estimators.outcome_forms(outcomes, q, weights=weights, standardized=scaled)
    for design, (task, coordinate) in product(DESIGNS, product(range(2), range(3))):
        one = scores[task][:, [coordinate]]
        mine = None if weights is None else weights[task]
        expected, *_ = by_definition(outcomes[task], one, q, design, weights=mine, scaled=scaled)
        square = float(one[:, 0] @ getattr(found, design)[task] @ one[:, 0])
        assert square == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_group_of_64_is_what_drawn_masks_give_on_average(scaled: bool) -> None:
    rng, number = np.random.default_rng(11), 20_000
    outcomes, scores = rng.permutation(np.arange(64) < 40).astype(int), rng.integers(-3, 4, (64, 4))
    observed = outcomes * (rng.random((number, 64)) < 0.9)
    advantages = observed - observed.mean(axis=1, keepdims=True)
    if scaled:
        advantages /= observed.std(axis=1, ddof=1, keepdims=True) + EPSILON
    gradients = advantages @ scores / 64
    moments = estimators.outcome_moments(
        [outcomes], [scores @ scores.T], 0.1, standardized=scaled
    ).independent
    squares = (gradients**2).sum(axis=1)
    assert abs(squares.mean() - moments.second[0]) < 5 * squares.std() / math.sqrt(number)
    gap = gradients.mean(axis=0) - moments.coefficients[0] @ scores
    assert (abs(gap) < 5 * gradients.std(axis=0) / math.sqrt(number)).all()


def test_published_reward_contrasts_follow_from_the_counts_of_successes(published: Study) -> None:
    """Contrasts need no score: 64 groups of 8 with their numbers of successes, q = 0.10."""
    counts: dict[tuple[str, int], list[int]] = {}
    for row in published.rows("probe_clean_tasks"):
        counts.setdefault((row["trajectory"], row["step"]), []).append(row["successes"])
    rows = [row for row in published.rows("probe") if row["noise"] == "outcome"]
    assert Counter((row["trajectory"], row["step"]) for row in rows) == dict.fromkeys(counts, 2)
    assert len(counts) == 8
    for row in rows:
        outcomes = np.arange(8) < np.array(counts[row["trajectory"], row["step"]])[:, None]
        scaled, weights = row["estimator"] == "SW", np.ones((64, 8))
        moments = estimators.outcome_moments(
            outcomes, np.zeros((64, 8, 8)), 0.1, standardized=scaled, weights=weights
        )
        for design in DESIGNS:
            expected = pytest.approx(row[f"reward_contrast_{design}"], abs=1e-12)
            assert of(moments, design).contrast.mean() == expected


def pool(seed: int, tasks: int, rollouts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rewards (T, N), scores (T, N, 3) and their Gram matrices."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(tasks, rollouts, 3))
    return rng.integers(0, 2, (tasks, rollouts)), scores, np.einsum("tip,tjp->tij", scores, scores)


@given(
    st.integers(0, 2**31),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
)
def test_moments_are_those_of_explicit_gradients(seed, tasks, size, number, scaled, weighted) -> None:
    rewards, scores, gram = pool(seed, tasks, size + 3)
    rng = np.random.default_rng(seed + 1)
    groups = np.array(
        [[rng.permutation(size + 3)[:size] for _ in range(number)] for _ in range(tasks)], dtype=int
    )
    weights = rng.uniform(0, 2, rewards.shape) * (rng.random(rewards.shape) > 0.3) if weighted else None
    moments = estimators.regrouped_moments(rewards, gram, groups, weights=weights, standardized=scaled)
    forms = estimators.regrouped_forms(rewards, groups, weights=weights, standardized=scaled)
    for task in range(tasks):
        gradients, contrasts = [], []
        for members in groups[task]:
            observed = [float(rewards[task, at]) for at in members]
            mean = sum(observed) / size
            variance = sum((r - mean) ** 2 for r in observed) / (size - 1)
            gradient = np.zeros(3)
            for at, reward in zip(members, observed, strict=True):
                weight = 1 / size if weights is None else weights[task, at]
                advantage = (reward - mean) / ((math.sqrt(variance) + EPSILON) if scaled else 1)
                gradient += advantage * weight * scores[task, at]
            gradients.append(gradient)
            contrasts.append(2 * variance)
        table = np.array(gradients)
        assert moments.second[task] == pytest.approx((table**2).sum(axis=1).mean(), rel=1e-10, abs=1e-12)
        squares = np.einsum("ik,ij,jk->k", scores[task], forms[task], scores[task])
        assert squares == pytest.approx((table**2).mean(axis=0), rel=1e-10, abs=1e-12)
        assert moments.coefficients[task] @ scores[task] == pytest.approx(table.mean(axis=0), abs=1e-12)
        assert moments.contrast[task] == pytest.approx(np.mean(contrasts), abs=1e-14)
