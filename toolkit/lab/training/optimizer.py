"""Adam, the plain gradient step and SignSGD, in sums, products and square roots alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
EPSILON = 1e-8
NOTHING = 1e-14
"""A slope without a sign: rounding leaves less of a sum whose terms cancel, and any other is larger."""


@dataclass(frozen=True)
class Weights:
    """A policy's parameters and the optimizer's state."""

    step: int  # steps done
    parameters: tuple[float, ...]  # of the policy
    first_moment: tuple[float, ...]  # Adam's running mean of the gradient; zeros under another optimizer
    second_moment: tuple[float, ...]  # Adam's running mean of the squared gradient; likewise


def start(parameters: Sequence[float]) -> Weights:
    """Return the state before the first step."""
    zeros = (0.0,) * len(parameters)
    return Weights(0, tuple(parameters), zeros, zeros)


def ascend(
    weights: Weights,
    gradient: Sequence[float],
    learning_rate: float,
    optimizer: str = "adam",
    square_decay: float = SQUARE_DECAY,
) -> Weights:
    """Return the state after one step up the gradient."""
    if optimizer == "adam":
        return _adam(weights, gradient, learning_rate, square_decay)
    if optimizer == "gradient":
        moves = [learning_rate * slope for slope in gradient]
    elif optimizer == "sign":
        moves = [learning_rate * ((slope > NOTHING) - (slope < -NOTHING)) for slope in gradient]
    else:
        raise ValueError(f"there is no optimizer {optimizer!r}")
    moved = (parameter + move for parameter, move in zip(weights.parameters, moves, strict=True))
    return replace(weights, step=weights.step + 1, parameters=tuple(moved))


def _adam(weights: Weights, gradient: Sequence[float], learning_rate: float, square_decay: float) -> Weights:
    step = weights.step + 1
    mean_part, square_part = _correction(MEAN_DECAY, step), _correction(square_decay, step)
    parameters, first, second = [], [], []
    for parameter, mean, square, slope in zip(
        weights.parameters, weights.first_moment, weights.second_moment, gradient, strict=True
    ):
        mean = MEAN_DECAY * mean + (1.0 - MEAN_DECAY) * slope  # noqa: PLW2901 - the running mean itself
        square = square_decay * square + (1.0 - square_decay) * slope * slope  # noqa: PLW2901
        first.append(mean)
        second.append(square)
        root = sqrt(square / square_part) + EPSILON
        parameters.append(parameter + learning_rate * (mean / mean_part) / root)
    return Weights(step, tuple(parameters), tuple(first), tuple(second))


def _correction(decay: float, step: int) -> float:
    """Return 1 - β^t, by products: a library's power may differ in the last bit."""
    power = 1.0
    for _ in range(step):
        power *= decay
    return 1.0 - power
