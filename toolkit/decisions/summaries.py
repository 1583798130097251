"""One number of a series, or of two, exactly."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

from toolkit.decisions.values import Missing

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
