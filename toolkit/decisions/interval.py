"""Registered intervals, and what they say beside a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.values import Missing, Scalar, exact

if TYPE_CHECKING:
    from toolkit.decisions.endpoints import IntervalSpec
    from toolkit.decisions.measure import Registers

# An interval printed more coarsely than this cannot be told to belong to an estimate.
COARSEST = Fraction(1, 2000)


@dataclass(frozen=True)
class Interval:
    """An interval of an endpoint's mean.

    Args:
        id: its name in the rules.
        endpoint: the endpoint.
        level: confidence level.
        low, high: its ends, exactly as printed where it was published.
        source: `published` where the rows behind it were never published.
        method: how it was made, and from what.
    """

    id: str
    endpoint: str
    level: Fraction
    low: Fraction
    high: Fraction
    source: str
    method: str


def registered_interval(spec: IntervalSpec, mean: Scalar, registers: Registers) -> Interval | Missing:
    """Return a registered interval of a study, or what is missing for it.

    An interval as published has to be the registered one: same method, resamples and units. And it has to
    belong to the study's own figures: its printed estimate is the mean that the registers give, at the
    printed digits.

    Args:
        spec: the registered interval.
        mean: the endpoint's mean in the registers.
        registers: the study.
    """
    rows = registers.rows("intervals") if registers.has("intervals") else []
    matching = [r for r in rows if r["endpoint"] == spec.endpoint and exact(r["level"]) == spec.level]
    if isinstance(mean, Missing):
        return mean
    if not matching:
        return _unavailable(
            f"no {float(spec.level):.0%} interval of {spec.endpoint} was published, and no episode rows"
        )
    row = matching[0]
    made = (row["method"], row["resamples"], row["resampled"])
    registered = (spec.method, spec.resamples, "; ".join(spec.resampled))
    if made != registered:
        return _unavailable(
            f"the published interval of {spec.endpoint} was made by {' / '.join(map(str, made))}, "
            f"and {' / '.join(map(str, registered))} is registered"
        )
    printed, half = exact(row["estimate"]), Fraction(1, 2 * 10 ** int(row["decimals"]))
    if abs(printed - mean) > min(half, COARSEST):
        return _unavailable(
            f"the published interval of {spec.endpoint} belongs to an estimate of {float(printed)}, "
            f"and the registers give {float(mean):.5f}"
        )
    method = f"{row['method']}, {row['resamples']} resamples of {row['resampled']}"
    return Interval(
        spec.id, spec.endpoint, spec.level, exact(row["low"]), exact(row["high"]), "published", method
    )


def evidence_of(interval: Interval | Missing | None, threshold: Fraction | None) -> str:
    """Say what an interval shows: whether zero, or else the threshold, lies in it."""
    if interval is None or isinstance(interval, Missing):
        return "not_estimated"
    if interval.low <= 0 <= interval.high:
        return "includes_zero"
    if threshold is not None and interval.low <= threshold <= interval.high:
        return "includes_threshold"
    return "excludes_zero"


def _unavailable(reason: str) -> Missing:
    return Missing(not_run=False, reasons=(reason,))
