"""The bandit's drift: every outcome and mask, and Adam itself on gradients drawn from them."""

import math
from itertools import product

import numpy as np
import pytest

from toolkit import estimators
from toolkit.lab.training.checkpoint import ascend, start


def group_gradients(
    success: float, size: int, flip: float, *, paired: bool, scaled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return each possible gradient of a group and its chance, by actions and masks."""
    values, chances = [], []
    for actions in product((0, 1), repeat=size):
        chance = math.prod(success if a else 1 - success for a in actions)
        every = [(1,) * size, (0,) * size] if paired else list(product((0, 1), repeat=size))
        for mask in every:
            if paired:
                weight = 1 - flip if mask[0] else flip
            else:
                weight = math.prod(1 - flip if kept else flip for kept in mask)
            rewards = np.array(actions) * np.array(mask)
            advantages = rewards - rewards.mean()
            if scaled and advantages.any():
                advantages = advantages / (np.std(rewards, ddof=1) + 1e-4)
            values.append(float((advantages * (np.array(actions) - success)).mean()))
            chances.append(chance * weight)
    return np.array(values), np.array(chances)


@pytest.mark.parametrize(("success", "size", "flip"), [(0.5, 4, 0.1), (0.3, 3, 0.3), (0.8, 5, 0.05)])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_drift_is_what_enumeration_gives(success: float, size: int, flip: float, batch: int) -> None:
    adam = estimators.bandit_drift(success, size, flip, batch)
    plain = estimators.bandit_drift(success, size, flip, batch, "gradient")
    for design, scaled in product(("paired", "independent"), (False, True)):
        values, chances = group_gradients(success, size, flip, paired=design == "paired", scaled=scaled)
        centred, weights = group_gradients(success, size, flip, paired=True, scaled=False)
        towards, mean = float(weights @ centred), float(chances @ values)
        # The mean square of a batch's gradient, over every way that its groups can fall.
        square = mean**2 + (float(chances @ values**2) - mean**2) / batch
        name = "standardized" if scaled else "mean_centred"
        assert float(getattr(getattr(adam, name), design)) == pytest.approx(
            towards * mean / math.sqrt(square), rel=1e-10
        )
        assert float(getattr(getattr(plain, name), design)) == pytest.approx(towards * mean, rel=1e-10)


def adams_mean_step(values: np.ndarray, chances: np.ndarray, batch: int, square_decay: float) -> float:
    """Feed the trainer's Adam stationary gradients, 200 coordinates alike, and average its steps at rest."""
    rng = np.random.default_rng(11)
    picked = rng.choice(values, size=(2500, batch, 200), p=chances / chances.sum()).mean(axis=1)
    state = start([0.0] * 200)
    for step, gradient in enumerate(picked.tolist()):
        state = ascend(state, gradient, 1.0, square_decay=square_decay)
        if step == 499:
            at_rest = np.mean(state.parameters)
    return float(np.mean(state.parameters) - at_rest) / 2000


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_adam_itself_moves_as_the_drift_says(design: str) -> None:
    """Where gradients are stationary, the drift over μ is the mean step."""
    values, chances = group_gradients(0.5, 4, 0.1, paired=design == "paired", scaled=False)
    mean = float(chances @ values)
    drift = float(getattr(estimators.bandit_drift(0.5, 4, 0.1, 1).mean_centred, design))
    assert adams_mean_step(values, chances, 1, 0.999) == pytest.approx(drift / mean, rel=0.005)


def test_a_bandit_that_is_never_rewarded_does_not_move() -> None:
    found = estimators.bandit_drift(0.5, 4, 1.0, 2)
    assert (found.mean_centred.paired, found.standardized.independent) == (0, 0)
