"""Spurious variance: observed rewards that differ although every rollout truly succeeded."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)


def spurious_rate(flip_rate: Number, group_size: int) -> Number:
    """Probability that independent flips give an all-correct group non-zero observed variance.

    Under the paired design the probability is zero: a shared flip reaches everybody or nobody.

    Args:
        flip_rate: probability q that a success is graded a failure, in [0, 1]; exact if a fraction.
        group_size: rollouts in the group, G >= 1.

    Returns:
        1 - (1 - q)^G - q^G, of the type of `flip_rate`; 0 for a group of one.

    Raises:
        ValueError: a rate outside [0, 1], or an empty group.

    Source:
        Paper sec:spurious, P_spurious(q, G).
    """
    check_rate(flip_rate)
    if group_size < 1:
        raise ValueError(f"a group has at least one rollout, found {group_size}")
    return 1 - (1 - flip_rate) ** group_size - flip_rate**group_size


def check_rate(flip_rate: float | Fraction) -> None:
    """Check that a number is a probability.

    Raises:
        ValueError: it is not in [0, 1].
    """
    if not 0 <= flip_rate <= 1:
        raise ValueError(f"a rate lies in [0, 1], found {flip_rate}")
