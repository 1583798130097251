"""The gradient that the trainer follows is the registered one."""

import numpy as np

from tests.unit.training.language_model.trained import Step, Trained

NEAR = 1e-4


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def expected(run: Trained, number: int, weights: np.ndarray) -> np.ndarray:
    """Return T⁻¹ Σ A w S of a step, from the register's rows and the probe's scores.

    Source:
        Paper app:probe.
    """
    groups = [group for group in run.groups if group["step"] == number]
    advantages = np.concatenate([group["advantages"] for group in groups])
    tokens = sum(sum(group["tokens"]) for group in groups)
    return (advantages * weights) @ run.steps[number - 1].scores / tokens


def is_padded(step: Step) -> bool:
    masks = (step.output["prompt_mask"], step.output["completion_mask"])
    return all(bool((mask == 0).any()) for mask in masks)


def test_the_loss_s_gradient_is_the_mean_of_advantage_times_score(paired: Trained) -> None:
    for number, step in enumerate(paired.steps, start=1):
        assert is_padded(step)
        assert relative(-step.gradient, expected(paired, number, np.ones(16))) < NEAR


def test_the_policy_has_a_layer_of_linear_attention(paired: Trained) -> None:
    config = paired.session.trainer.model.config
    assert "linear_attention" in config.layer_types
