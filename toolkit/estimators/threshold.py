"""How long a learning curve takes to reach a level of success."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def steps_to_threshold(
    success: Sequence[Fraction], steps: Sequence[int], threshold: Fraction
) -> Fraction | None:
    """Training steps until success first reaches a threshold, linearly interpolated.

    Args:
        success: true success at each step, fractions in [0, 1], shape (K,).
        steps: the steps, strictly increasing, shape (K,).
        threshold: the level to reach, a fraction in [0, 1].

    Returns:
        Steps, exactly; the first step itself where the curve starts at the threshold or above it; None where
        no evaluation reaches it (censored, never imputed).

    Raises:
        ValueError: shapes that differ.

    Source:
        Paper sec:protocol, "Evaluation", and the registered analysis plan: first evaluation at or above the
        threshold, interpolated from the evaluation before it.
    """
    curve = list(zip(steps, success, strict=True))
    if curve and curve[0][1] >= threshold:
        return Fraction(curve[0][0])
    for (before, low), (after, high) in pairwise(curve):
        if high >= threshold:
            return before + (after - before) * (threshold - low) / (high - low)
    return None
