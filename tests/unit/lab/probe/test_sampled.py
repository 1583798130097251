"""A language model's group gradient from rollouts that another policy sampled: every rollout enumerated.

Five words, answers of two: the trained policy and the sampler are one model under two adapters, at a
temperature that makes them unlike.
"""

import copy
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe import tiny
from tests.unit.stack import require_stack
from toolkit.estimators import importance_weights, outcome_moments, standardized
from toolkit.lab.probe.lora import Scorer, log_probabilities
from toolkit.lab.probe.recorded import Transcript

require_stack()

import torch  # noqa: E402

WORDS, FLIP_RATE, TEMPERATURE = 5, 0.1, 0.25
PROMPT = (3, 1, 2)
ANSWERS = [
    Transcript((*PROMPT, *answer), (False, False, False, True, True))
    for answer in product(range(WORDS), repeat=2)
]
REWARDS = np.array([float(sum(one.tokens[-2:]) % 3 == 0) for one in ANSWERS])
SINGLE = 1e-4


@pytest.fixture(scope="module")
def trained() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.TEXT, "vocab_size", WORDS)
        model = tiny.tiny_model()
    with torch.no_grad():
        model.get_output_embeddings().weight *= 2
    return model


@pytest.fixture(scope="module")
def chances(trained: Any) -> np.ndarray:
    """Return the sampler's probability of every answer."""
    sampler = copy.deepcopy(trained)
    tiny.draw(sampler, 5)
    with torch.no_grad():
        found = [float(tiny.log_likelihood(sampler, one, TEMPERATURE).exp()) for one in ANSWERS]
    assert sum(found) == pytest.approx(1)
    return np.array(found)


@pytest.fixture(scope="module")
def log_ratios(trained: Any, chances: np.ndarray) -> np.ndarray:
    own = log_probabilities(trained, ANSWERS, TEMPERATURE, 8)
    assert all(part.shape == (2,) for part in own)
    return np.array([part.sum() for part in own]) - np.log(chances)


@pytest.fixture(scope="module")
def scores(trained: Any) -> np.ndarray:
    with Scorer(trained, TEMPERATURE) as scorer:
        return np.array(list(scorer.scores(ANSWERS)), dtype=float)


def gradient(model: Any, values: np.ndarray) -> np.ndarray:
    """Return ∇ Σ_y π(y) v(y) over all answers, in the coordinates of the scores."""
    for tensor in Scorer(model).adapter.tensors.values():
        tensor.grad = None
    chosen = ((one, float(value)) for one, value in zip(ANSWERS, values, strict=True))
    sum(tiny.log_likelihood(model, one, TEMPERATURE).exp() * value for one, value in chosen).backward()
    found = [tensor.grad.flatten() for tensor in Scorer(model).adapter.tensors.values()]
    return torch.cat(found).double().numpy()


def close(found: np.ndarray, truth: np.ndarray) -> bool:
    return bool(np.linalg.norm(found - truth) < SINGLE * np.linalg.norm(truth))


def test_with_whole_ratios_the_sampler_s_mean_is_the_trained_policy_s(
    trained: Any, chances: np.ndarray, log_ratios: np.ndarray, scores: np.ndarray
) -> None:
    weights = importance_weights(log_ratios, most=np.inf)
    assert chances @ weights == pytest.approx(1, abs=SINGLE)
    truth = gradient(trained, REWARDS)
    assert close((chances * weights * REWARDS) @ scores, truth)
    assert not close((chances * REWARDS) @ scores, truth)


@pytest.mark.parametrize("level", ["sequence_mask", "sequence_truncate"])
def test_the_standardized_gradient_of_groups_is_that_of_the_enumerated_policy(
    trained: Any, chances: np.ndarray, log_ratios: np.ndarray, scores: np.ndarray, level: str
) -> None:
    """Groups of two; the sibling is the sampler's, and a ratio above the bound counts as the level says."""
    groups = np.array(list(product(range(len(ANSWERS)), repeat=2)))
    of_group = chances[groups].prod(axis=1)

    def expected(weights: np.ndarray) -> np.ndarray:
        gram = np.zeros((len(groups), 2, 2))
        found = outcome_moments(
            REWARDS[groups], gram, FLIP_RATE, weights=weights[groups], standardized=True
        ).paired.coefficients
        return np.bincount(groups.ravel(), (of_group[:, None] * found).ravel()) @ scores

    advantages = standardized(np.array([[[own, other] for other in REWARDS] for own in REWARDS]))[..., 0]
    above = np.exp(log_ratios) > 3
    assert 0 < above.sum() < len(ANSWERS) / 2
    kept = {"sequence_mask": 0.0, "sequence_truncate": 3 / np.exp(log_ratios)}[level]
    values = 2 * (1 - FLIP_RATE) * (advantages @ chances) * np.where(above, kept, 1)
    truth = gradient(trained, values)
    assert close(expected(importance_weights(log_ratios, level=level)), truth)
    assert not close(expected(np.ones(len(ANSWERS))), truth)
    other = {"sequence_mask": "sequence_truncate", "sequence_truncate": "sequence_mask"}[level]
    assert not close(expected(importance_weights(log_ratios, level=other)), truth)
