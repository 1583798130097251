"""Registered intervals, and what they say beside a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.lookup import Tables
from toolkit.decisions.values import Missing, Scalar, exact, fixed

if TYPE_CHECKING:
    from toolkit.documents.decisions import Evidence, IntervalDocument, IntervalSource

# An interval printed more coarsely than this cannot be told to belong to an estimate.
COARSEST = Fraction(1, 2000)


@dataclass(frozen=True)
class Interval:
    """An interval of an endpoint's mean, or of a statistic.

    Args:
        id: its name in the rules.
        endpoint: the endpoint, or the statistic.
        level: confidence level.
        low, high: its ends, exactly as printed where it was published.
        source: `computed` from episode rows, by seed and task; `computed from tasks`, from their differences;
            `computed from seeds`, from their values; or `published` where episode rows never were.
        method: how it was made, and from what.
        errors: Monte Carlo standard errors of its ends, where it was computed.
        resamples: how many it was computed from.
    """

    id: str
    endpoint: str
    level: Fraction
    low: Fraction
    high: Fraction
    source: IntervalSource
    method: str
    errors: tuple[Fraction, Fraction] | None = None
    resamples: int = 0

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        if self.source == "computed":
            return f"computed from episode rows, {self.resamples:,} resamples"
        return f"{self.source}, {self.resamples:,} resamples" if self.resamples else self.source

    @property
    def text(self) -> str:
        """Its level and its ends, as `95% [-0.0039, +0.0779]`."""
        return f"{float(100 * self.level):g}% [{self.ends_text}]"

    @property
    def ends_text(self) -> str:
        """Its ends, as `-0.0039, +0.0779`."""
        return f"{fixed(self.low, signed=True)}, {fixed(self.high, signed=True)}"

    def end_text(self, end: str) -> str:
        """Return the `lower` or `upper` end with its Monte Carlo error, in words."""
        low_error, high_error = self.errors or (0, 0)
        value, error = (self.low, low_error) if end == "lower" else (self.high, high_error)
        numbers = f"{fixed(value, 5, signed=True)} with a Monte Carlo error of {fixed(error, 5)}"
        return f"the {end} end of {self.id}, {numbers}"

    def as_dict(self) -> IntervalDocument:
        """Return the interval as it is printed with `--json`."""
        document: IntervalDocument = {
            "level": float(self.level),
            "low": float(self.low),
            "high": float(self.high),
            "source": self.source,
            "method": self.method,
        }
        if self.errors is not None:
            document["low_error"], document["high_error"] = map(float, self.errors)
        if self.resamples:
            document["resamples"] = self.resamples
        return document


def computed_interval(
    spec: IntervalSpec, low: float, high: float, low_error: float, high_error: float
) -> Interval:
    """Return a registered interval by its ends and their Monte Carlo errors."""
    ends, errors = (Fraction(low), Fraction(high)), (Fraction(low_error), Fraction(high_error))
    names = (spec.id, spec.endpoint, spec.level)
    return Interval(*names, *ends, "computed", spec.made, errors, spec.resamples)


def registered_interval(spec: IntervalSpec, mean: Scalar, registers: Tables) -> Interval | Missing:
    """Return a registered interval of a study, or what is missing for it.

    An interval as published has to be the registered one: same method, resamples and units. And it has to
    belong to the study's own figures: its printed estimate is the mean that the registers give, at the
    printed digits.
    """
    rows = registers.rows("intervals") if registers.has("intervals") else []
    matching = [r for r in rows if r["endpoint"] == spec.endpoint and exact(r["level"]) == spec.level]
    if isinstance(mean, Missing):
        return mean
    if not matching:
        return unavailable(
            f"no {float(spec.level):.0%} interval of {spec.endpoint} was published, and no episode rows"
        )
    row = matching[0]
    made = (row["method"], row["resamples"], row["resampled"])
    registered = (spec.method, spec.resamples, "; ".join(spec.resampled))
    if made != registered:
        return unavailable(
            f"the published interval of {spec.endpoint} was made by {' / '.join(map(str, made))}, "
            f"and {' / '.join(map(str, registered))} is registered"
        )
    printed, half = exact(row["estimate"]), Fraction(1, 2 * 10 ** int(row["decimals"]))
    if abs(printed - mean) > min(half, COARSEST):
        return unavailable(
            f"the published interval of {spec.endpoint} belongs to an estimate of {float(printed)}, "
            f"and the registers give {float(mean):.5f}"
        )
    method = f"{row['method']}, {row['resamples']} resamples of {row['resampled']}"
    return Interval(
        spec.id, spec.endpoint, spec.level, exact(row["low"]), exact(row["high"]), "published", method
    )


def evidence_of(interval: Interval | Missing | None, threshold: Fraction | None) -> Evidence:
    """Say what an interval shows: whether zero, or else the threshold, lies in it."""
    if interval is None or isinstance(interval, Missing):
        return "not_estimated"
    if interval.low <= 0 <= interval.high:
        return "includes_zero"
    if threshold is not None and interval.low <= threshold <= interval.high:
        return "includes_threshold"
    return "excludes_zero"


def unavailable(reason: str) -> Missing:
    """Return why there is no interval."""
    return Missing(not_run=False, reasons=(reason,))
