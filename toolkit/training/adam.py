"""Adam, in sums, products and square roots alone: the same bits on every machine.

Source:
    Kingma and Ba 2015, algorithm 1; β and ε as there and as in the paper's trainer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
EPSILON = 1e-8


@dataclass(frozen=True)
class Weights:
    """A policy's parameters and the optimizer's state.

    Args:
        step: steps done.
        parameters: of the policy.
        first_moment: running mean of the gradient.
        second_moment: running mean of the squared gradient.
    """

    step: int
    parameters: tuple[float, ...]
    first_moment: tuple[float, ...]
    second_moment: tuple[float, ...]


def start(parameters: Sequence[float]) -> Weights:
    """Return the state before the first step."""
    zeros = (0.0,) * len(parameters)
    return Weights(0, tuple(parameters), zeros, zeros)


def ascend(weights: Weights, gradient: Sequence[float], learning_rate: float) -> Weights:
    """Return the state after one step up the gradient.

    Args:
        weights: the state before.
        gradient: of what is to grow, one number a parameter.
        learning_rate: size of the step.
    """
    step = weights.step + 1
    mean_part, square_part = _corrections(step)
    parameters, first, second = [], [], []
    for parameter, mean, square, slope in zip(
        weights.parameters, weights.first_moment, weights.second_moment, gradient, strict=True
    ):
        mean = MEAN_DECAY * mean + (1.0 - MEAN_DECAY) * slope  # noqa: PLW2901 - the running mean itself
        square = SQUARE_DECAY * square + (1.0 - SQUARE_DECAY) * slope * slope  # noqa: PLW2901
        first.append(mean)
        second.append(square)
        parameters.append(
            parameter + learning_rate * (mean / mean_part) / (sqrt(square / square_part) + EPSILON)
        )
    return Weights(step, tuple(parameters), tuple(first), tuple(second))


def _corrections(step: int) -> tuple[float, float]:
    """Return 1 - β^t for both decays, by products: a library's power may differ in the last bit."""
    mean_power = square_power = 1.0
    for _ in range(step):
        mean_power *= MEAN_DECAY
        square_power *= SQUARE_DECAY
    return 1.0 - mean_power, 1.0 - square_power
