"""An exponential that gives the same bits on every machine.

Libraries compute exp differently, and numpy's depends on the vector unit at hand: one bit in a probability
is another policy after a hundred steps. Sums and products of doubles are the same everywhere.
"""

from __future__ import annotations

from math import floor, ldexp

_PER_LOG_2 = 1.4426950408889634
# ln 2 in two parts; the first has 32 trailing zero bits, so that its multiples by whole numbers are exact.
_LOG_2_HIGH = 6.93147180369123816490e-01
_LOG_2_LOW = 1.90821492927058770002e-10
_LARGEST = 700.0
# 1/13!, …, 1/1!, 1: the remainder is at most (ln 2 / 2)^14 / 14!, far below half a unit in the last place.
_TERMS = (
    1.0 / 6227020800.0,
    1.0 / 479001600.0,
    1.0 / 39916800.0,
    1.0 / 3628800.0,
    1.0 / 362880.0,
    1.0 / 40320.0,
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
)


def exp(x: float) -> float:
    """Return e^x within one unit in the last place, by sums and products alone.

    Raises:
        OverflowError: |x| is above 700.
    """
    if not -_LARGEST <= x <= _LARGEST:
        raise OverflowError(f"the exponential of {x} is out of range")
    halvings = floor(x * _PER_LOG_2 + 0.5)
    rest = (x - halvings * _LOG_2_HIGH) - halvings * _LOG_2_LOW
    total = 0.0
    for term in _TERMS:
        total = (total + term) * rest
    return ldexp(total + 1.0, halvings)


def softmax(logits: list[float]) -> list[float]:
    """Return the probabilities of logits: e^logit over their sum, from left to right."""
    largest = max(logits)
    weights = [exp(logit - largest) for logit in logits]
    total = 0.0
    for weight in weights:
        total += weight
    return [weight / total for weight in weights]
