"""Close calls: what a bootstrap with other random numbers could turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.decisions.evaluation import Resolve, evaluate
from toolkit.decisions.interval import Interval, evidence_of
from toolkit.estimators.bootstrap import CLOSE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from toolkit.decisions.expressions import Expression
    from toolkit.decisions.values import Missing, Value

ENDS = ("lower", "upper")


def close_tests(
    expression: Expression, resolve: Resolve, intervals: Mapping[str, Interval | Missing]
) -> tuple[str, ...]:
    """Return the ends that would turn a test if they lay three Monte Carlo errors elsewhere, in words.

    Args:
        expression: a checked test.
        resolve: gives the value of a name in its role.
        intervals: those that the test may name, by name.
    """
    holds = evaluate(expression, resolve)
    found = []
    for name, interval in intervals.items():
        if isinstance(interval, Interval):
            for end, moved in _moved(interval):
                if evaluate(expression, _with(resolve, name, moved)) != holds:
                    found.append(described(interval, end))
    return tuple(dict.fromkeys(found))


def close_evidence(interval: Interval | Missing | None, threshold: Fraction | None) -> tuple[str, ...]:
    """Return the ends that would change the evidence if they lay three Monte Carlo errors elsewhere."""
    if not isinstance(interval, Interval):
        return ()
    evidence = evidence_of(interval, threshold)
    turned = [end for end, moved in _moved(interval) if evidence_of(moved, threshold) != evidence]
    return tuple(described(interval, end) for end in dict.fromkeys(turned))


def described(interval: Interval, end: str) -> str:
    """Return an end with its error, in words."""
    low_error, high_error = interval.errors or (0, 0)
    value, error = (interval.low, low_error) if end == "lower" else (interval.high, high_error)
    return (
        f"the {end} end of {interval.id}, {float(value):+.5f} with a Monte Carlo error of {float(error):.5f}"
    )


def _moved(interval: Interval) -> Iterator[tuple[str, Interval]]:
    """Yield an interval with one end moved each way; none where the ends are exact."""
    if interval.errors is None:
        return
    low, high = (CLOSE_ERRORS * error for error in interval.errors)
    for sign in (-1, 1):
        yield "lower", replace(interval, low=interval.low + sign * low)
        yield "upper", replace(interval, high=interval.high + sign * high)


def _with(resolve: Resolve, name: str, moved: Interval) -> Resolve:
    def answer(role: str, asked: str) -> Value:
        if role in ENDS and asked == name:
            return moved.low if role == "lower" else moved.high
        return resolve(role, asked)

    return answer
