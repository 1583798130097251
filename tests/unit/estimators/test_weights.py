"""Importance weights, and what the group gradient is on average with them: every group enumerated.

A policy π of four actions in one step is trained; another, μ, samples. Groups are listed, each with the
probability that μ gives it.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from toolkit.estimators import importance_weights, outcome_moments

SIZE, FLIP_RATE = 3, 0.1
REWARDS = np.array([1.0, 0.0, 1.0, 0.0])
TRAINED = np.array([0.4, 0.2, 0.3, 0.1])
SAMPLER = np.array([0.1, 0.3, 0.35, 0.25])
SCORES = np.eye(4) - TRAINED  # of softmax logits
LOG_RATIOS = np.log(TRAINED) - np.log(SAMPLER)
BOUNDED = {"sequence_mask": [0.0, 2 / 3, 6 / 7, 0.4], "sequence_truncate": [3.0, 2 / 3, 6 / 7, 0.4]}
"""The first ratio is 4."""
LEVELS = pytest.mark.parametrize("level", BOUNDED)


def expected(weights: np.ndarray, *, standardized: bool) -> np.ndarray:
    """Return the mean gradient over all groups that the sampler may give, flips included, as estimated."""
    groups = np.array(list(product(range(4), repeat=SIZE)))
    chances = SAMPLER[groups].prod(axis=1)
    gram = np.zeros((len(groups), SIZE, SIZE))
    found = outcome_moments(
        REWARDS[groups], gram, FLIP_RATE, weights=weights[groups], standardized=standardized
    )
    return np.einsum("n,nia->a", chances, found.paired.coefficients[:, :, None] * SCORES[groups])


def siblings() -> Iterator[tuple[float, list[float]]]:
    """Yield the rewards of a rollout's siblings, and how likely they are: the sampler's."""
    for others in product(range(4), repeat=SIZE - 1):
        yield float(SAMPLER[list(others)].prod()), [float(REWARDS[other]) for other in others]


def advantage(own: float, others: list[float]) -> float:
    rewards = np.array([own, *others])
    return 0.0 if np.ptp(rewards) == 0 else (own - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)


@LEVELS
def test_a_ratio_above_the_bound_is_masked_or_truncated(level: str) -> None:
    assert importance_weights(LOG_RATIOS, level=level) == pytest.approx(BOUNDED[level])
    assert importance_weights(LOG_RATIOS, level=level, most=4.001) == pytest.approx(TRAINED / SAMPLER)
    assert importance_weights([[1000.0], [-1000.0]], level=level).tolist() == [[BOUNDED[level][0]], [0.0]]
    assert importance_weights([0.0], most=1.0, level=level).tolist() == [1.0], "at the bound is not above it"


@LEVELS
def test_the_standardized_gradient_is_the_trained_policy_s_among_the_sampler_s_siblings(level: str) -> None:
    """Paired flips take all successes away together: such a group has no gradient."""
    bounded = SAMPLER * BOUNDED[level]  # the trained policy's chances, but for what is above the bound
    truth = np.zeros(4)
    for action, chance in enumerate(bounded):
        mean = sum(p * advantage(REWARDS[action], others) for p, others in siblings())
        truth += SIZE * (1 - FLIP_RATE) * chance * mean * SCORES[action]
    found = expected(importance_weights(LOG_RATIOS, level=level), standardized=True)
    assert found == pytest.approx(truth, abs=1e-12)
    plain = expected(np.ones(4), standardized=True)
    assert np.linalg.norm(plain - truth) > 0.2 * np.linalg.norm(truth)


def test_the_mean_centred_gradient_with_whole_ratios_is_that_of_the_trained_policy_s_success() -> None:
    """Up to the factor of prop:unbiased and the share of groups that paired flips leave."""
    truth = TRAINED * (REWARDS - TRAINED @ REWARDS)
    weights = importance_weights(LOG_RATIOS, most=np.inf) / SIZE
    factor = (1 - FLIP_RATE) * (SIZE - 1) / SIZE
    assert expected(weights, standardized=False) == pytest.approx(factor * truth, abs=1e-12)
    plain = expected(np.full(4, 1 / SIZE), standardized=False)
    assert np.linalg.norm(plain - factor * truth) > 0.2 * np.linalg.norm(truth)
