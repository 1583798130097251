"""Values that a rule computes with: exact fractions, series by member, and what is missing (Kleene logic)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any, Generic, TypeVar

from toolkit.errors import DamagedError

# A denominator beyond this is a measured figure's, not a count's: it is shown as a decimal.
LARGEST_COUNT = 10**6
SHOWN_DECIMALS = 5


@dataclass(frozen=True)
class Missing:
    """Why there is no value."""

    not_run: bool  # the runs it needs were never made; otherwise they were, and something else is missing
    reasons: tuple[str, ...]  # what is missing, each in one phrase


T = TypeVar("T", bound="Fraction | bool")
U = TypeVar("U", bound="Fraction | bool")
V = TypeVar("V")

Scalar = Fraction | Missing
Truth = bool | Missing


@dataclass(frozen=True)
class Series(Generic[T]):
    """Values by member, in order."""

    unit: str  # what the members are: `seed`, `run`, `checkpoint`, or `place` of a list
    items: tuple[tuple[str, T | Missing], ...]  # (member, value or what is missing)

    @property
    def values(self) -> tuple[T | Missing, ...]:
        """The values in order."""
        return tuple(value for _, value in self.items)

    def map(self, function: Callable[[T], U]) -> Series[U]:
        """Apply a function to every value that is there."""
        return Series(
            self.unit, tuple((k, v if isinstance(v, Missing) else function(v)) for k, v in self.items)
        )

    def present(self) -> tuple[T, ...] | Missing:
        """Return all values, or what is missing of them."""
        return whole(self.values)


Value = Scalar | Truth | Series[Fraction] | Series[bool]


def whole(values: Iterable[V | Missing]) -> tuple[V, ...] | Missing:
    """Return values that are all there, or what is missing of them."""
    given = tuple(values)
    absent = [value for value in given if isinstance(value, Missing)]
    return together(absent) if absent else tuple(v for v in given if not isinstance(v, Missing))


def together(missing: Iterable[Missing]) -> Missing:
    """Return several missing values as one; it is `not_run` only if all of them are."""
    absent = list(missing)
    reasons = dict.fromkeys(reason for gap in absent for reason in gap.reasons)
    return Missing(all(gap.not_run for gap in absent), tuple(reasons))


def kleene_all(truths: Sequence[Truth]) -> Truth:
    """Conjunction: lost as soon as one is lost, unknown if none is lost and one is unknown."""
    if any(truth is False for truth in truths):
        return False
    absent = [truth for truth in truths if isinstance(truth, Missing)]
    return together(absent) if absent else True


def kleene_not(truth: Truth) -> Truth:
    """Negation; unknown stays unknown."""
    return truth if isinstance(truth, Missing) else not truth


def kleene_any(truths: Sequence[Truth]) -> Truth:
    """Disjunction: won as soon as one is won, unknown if none is won and one is unknown."""
    return kleene_not(kleene_all([kleene_not(truth) for truth in truths]))


def kleene_majority(truths: Sequence[Truth]) -> Truth:
    """More than half hold; unknown while the unknown ones could still turn it."""
    won = sum(truth is True for truth in truths)
    absent = [truth for truth in truths if isinstance(truth, Missing)]
    if 2 * won > len(truths):
        return True
    if 2 * (won + len(absent)) <= len(truths):
        return False
    return together(absent)


def mean_of(value: Scalar | Series[Fraction]) -> Scalar:
    """Return the mean of a series, or what is missing for it; a number is its own mean."""
    present = value.present() if isinstance(value, Series) else value
    return sum(present, Fraction(0)) / len(present) if isinstance(present, tuple) else present


def exact(value: float | Decimal) -> Fraction:
    """Return a stored number exactly; a double counts as the shortest decimal that prints it."""
    if not math.isfinite(value):
        raise DamagedError("a stored number is not finite", found=value)
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def exact_text(value: Fraction) -> str:
    """Return a number as printed: a fraction of counts exactly, a measured figure in double precision."""
    return str(value) if value.denominator <= LARGEST_COUNT else repr(float(value))


def rounded(value: Fraction) -> float:
    """Return a number rounded to five decimals, as shown beside the exact one."""
    return float(round(value, SHOWN_DECIMALS))


def fixed(value: float | Fraction, digits: int = 4, *, signed: bool = False) -> str:
    """Return a number with so many decimals: rounded once, from the exact one, a tie to the even digit."""
    return f"{float(round(Fraction(value), digits)):{'+' if signed else ''}.{digits}f}"


def printed(value: Value | None) -> tuple[Any, Any]:
    """Return a value as printed: exactly, and rounded; by member where it is a series."""
    if isinstance(value, Series):
        pairs = {key: printed(member) for key, member in value.items}
        return {key: pair[0] for key, pair in pairs.items()}, {key: pair[1] for key, pair in pairs.items()}
    if value is None or isinstance(value, Missing | bool):
        return None, None
    return exact_text(value), rounded(value)


FEWEST = 2

Numbers = Sequence[Fraction]


def mean(values: Numbers) -> Fraction:
    """Return the arithmetic mean."""
    return sum(values, Fraction(0)) / len(values)


def variance(values: Numbers) -> Fraction | Missing:
    """Return the sample variance: squared distances from the mean over one less than their number."""
    if len(values) < FEWEST:
        return _none("variance of a single number")
    centre = mean(values)
    return sum(((value - centre) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


def slope(y: Numbers, x: Numbers) -> Fraction | Missing:
    """Return the slope of the least-squares line with an intercept, of y on x."""
    y_centre, x_centre = mean(y), mean(x)
    spread = sum(((b - x_centre) ** 2 for b in x), Fraction(0))
    if spread == 0:
        return _none("a slope over a single place")
    return sum(((a - y_centre) * (b - x_centre) for a, b in zip(y, x, strict=True)), Fraction(0)) / spread


def rank_correlation(x: Numbers, y: Numbers) -> Fraction | Missing:
    """Return Kendall's tau-a: pairs in the same order less those in the other, over all pairs.

    A pair that is tied in either series counts as neither, and stays among the pairs divided by.

    Source:
        Kendall, "A new measure of rank correlation", Biometrika 30 (1938).
    """
    pairs = list(combinations(zip(x, y, strict=True), 2))
    if not pairs:
        return _none("rank correlation of a single pair")
    return Fraction(sum(_sign(a - c) * _sign(b - d) for (a, b), (c, d) in pairs), len(pairs))


SUMMARIES: dict[str, Callable[[Numbers], Fraction | Missing]] = {
    "mean": mean,
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "variance": variance,
}
OF_PAIRS: dict[str, Callable[[Numbers, Numbers], Fraction | Missing]] = {
    "slope": slope,
    "rank_correlation": rank_correlation,
}


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _none(reason: str) -> Missing:
    return Missing(not_run=False, reasons=(reason,))
