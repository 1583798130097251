"""The area under a learning curve, as a mean over training steps."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def auc_weights(steps: Sequence[int]) -> tuple[Fraction, ...]:
    """Weights of the trapezoidal mean over the evaluated steps.

    Args:
        steps: training steps of the evaluations, strictly increasing, shape (K,).

    Returns:
        Exact weights that sum to one, shape (K,); (0.1, 0.2, 0.2, 0.2, 0.2, 0.1) for steps 0, 20, …, 100.

    Raises:
        ValueError: fewer than two steps, or steps that do not increase.

    Source:
        Paper sec:protocol, "Evaluation": trapezoidal mean of true success over the six evaluations.
    """
    if len(steps) < 2:  # noqa: PLR2004 - a curve has two ends
        raise ValueError("an area needs at least two steps")
    gaps = [after - before for before, after in pairwise(steps)]
    if min(gaps) <= 0:
        raise ValueError(f"steps must increase, found {list(steps)}")
    span = 2 * (steps[-1] - steps[0])
    return tuple(Fraction(left + right, span) for left, right in zip([0, *gaps], [*gaps, 0], strict=True))


def auc(success: Sequence[Fraction], steps: Sequence[int]) -> Fraction:
    """Trapezoidal mean of success over training steps.

    Args:
        success: true success at each step, fractions in [0, 1], shape (K,).
        steps: the steps, strictly increasing, shape (K,).

    Returns:
        An exact fraction in [0, 1].

    Raises:
        ValueError: as `auc_weights`, or shapes that differ.

    Source:
        Paper sec:protocol, "Evaluation".
    """
    weights = auc_weights(steps)
    return sum((w * s for w, s in zip(weights, success, strict=True)), Fraction(0))
