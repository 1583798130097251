"""Optimizers: the step that each is expected to take for one unit of mean gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def adam_step(squared_mean: Array, noise: Array) -> Array:
    """Expected step of Adam for one unit of mean gradient: 1/√(μ² + σ²).

    Args:
        squared_mean: μ², any shape, >= 0, in score².
        noise: σ² = v/B, the variance of the batch's gradient, same shape.

    Returns:
        Step over mean, same shape, in 1/score; zero for a coordinate that never moves.

    Source:
        Kingma and Ba 2015, algorithm 1, with stationary gradients, averages longer than their noise, and
        ε = 0: the first moment is μ on average, the second μ² + σ².
    """
    return _over(np.ones_like(noise), np.sqrt(squared_mean + noise))


def sign_step(squared_mean: Array, noise: Array) -> Array:
    """Expected sign of the batch's gradient for one unit of mean: erf(√(z/2))/√z over σ, z = μ²/σ².

    Args:
        squared_mean: μ², any shape, >= 0, in score².
        noise: σ² = v/B, same shape.

    Returns:
        As `adam_step`.

    Source:
        E sign(x) = 2Φ(μ/σ) - 1 = erf(μ/(σ√2)) for a normal x: the central limit, poor for few groups that are
        mostly constant. Towards μ = 0 the step is √(2/π)/σ, four fifths of Adam's.
    """
    length, deviation = np.sqrt(squared_mean), np.sqrt(noise)
    erf = np.frompyfunc(math.erf, 1, 1)
    with np.errstate(over="ignore"):  # a noise of zero: the sign is certain
        signs = np.asarray(erf(_over(length, deviation * math.sqrt(2), otherwise=math.inf)), dtype=float)
    # Below this the quotient of two tiny numbers is less exact than the limit.
    small = length < 1e-6 * deviation
    return np.where(
        small, _over(np.full_like(noise, math.sqrt(2 / math.pi)), deviation), _over(signs, length)
    )


def gradient_step(squared_mean: Array, noise: Array) -> Array:
    """Expected step of plain gradient ascent for one unit of mean: one."""
    del squared_mean
    return np.ones_like(noise)


def _over(number: Array, divisor: Array, otherwise: float = 0.0) -> Array:
    return np.divide(number, divisor, out=np.full_like(divisor, otherwise), where=divisor > 0)


OPTIMIZERS: dict[str, Callable[[Array, Array], Array]] = {
    "adam": adam_step,
    "gradient": gradient_step,
    "sign": sign_step,
}


def step_of(optimizer: str, groups: float) -> Callable[[Array, Array], Array]:
    """Return what gives an optimizer's expected step, for a number of groups that there can be.

    Raises:
        ValueError: an unknown optimizer, or no group.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"expected one of {', '.join(OPTIMIZERS)}, found {optimizer!r}")
    if not groups > 0:
        raise ValueError(f"a step has at least one group, found {groups}")
    return OPTIMIZERS[optimizer]
