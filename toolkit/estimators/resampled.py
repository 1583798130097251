"""What the operators of the rule language give on many resamples at once, in floats.

A number is an array of shape (B,), a series one of shape (B, n); 1 stands for B where nothing was drawn. A
truth is one or zero. Where there is no value stands NaN, and whatever is made of it is NaN.
"""

import operator as operators
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.estimators import bootstrap

Array = NDArray[Any]
_SYMBOLS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operators.ge,
    "<=": operators.le,
    ">": operators.gt,
    "<": operators.lt,
    "=": operators.eq,
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
}


class Resampled:
    """Numbers and series on some draws of seeds, the same draws for all of them.

    Args:
        rows: positions of the drawn seeds, shape (B, S); `original_sample` and `draws` make one.
    """

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self._rows = rows
        self.denominators: list[Array] = []

    @classmethod
    def original_sample(cls, seeds: int) -> "Resampled":
        """Return every seed once, as measured."""
        return cls(np.arange(seeds)[None])

    @classmethod
    def draws(cls, seeds: int, resamples: int, rng_seed: int) -> "Resampled":
        """Return draws with replacement, as `draw_seeds` makes them."""
        return cls(bootstrap.draw_seeds(seeds, resamples, rng_seed))

    def number(self, value: float) -> Array:
        """Return a number that nothing draws."""
        return np.array([value])

    def fixed(self, values: Sequence[float]) -> Array:
        """Return a series that nothing draws."""
        return np.array(values, dtype=float)[None]

    def of_seeds(self, values: Sequence[float]) -> Array:
        """Return a series with one value a seed, drawn."""
        return np.array(values, dtype=float)[self._rows]

    def combine(self, symbol: str, left: Array, right: Array) -> Array:
        """Return a sum, difference, product, quotient or comparison, member by member."""
        first, second = _aligned(left, right)
        missing = np.isnan(first) | np.isnan(second)
        if symbol == "/":
            self.denominators.append(second)
            missing |= second == 0
        with np.errstate(all="ignore"):
            return np.where(missing, np.nan, _SYMBOLS[symbol](first, second))

    def apply(self, operator: str, *values: Array) -> Array:
        """Return what an operator with a name gives."""
        with np.errstate(all="ignore"):
            return _APPLY[operator](*values)

    def in_full(self, number: Array) -> Array:
        """Return a number on every draw, shape (B,)."""
        return np.broadcast_to(number, (len(self._rows),))


def without_value(values: Array) -> int:
    """Return on how many resamples there is no value, or none that is finite."""
    return int((~np.isfinite(values)).sum())


def turned(resampled: Resampled, observed: Resampled) -> float:
    """Return the share of resamples in which some denominator has another sign than was observed."""
    pairs = zip(resampled.denominators, observed.denominators, strict=True)
    signs = [
        (np.sign(drawn) != np.sign(measured)).reshape(len(drawn), -1).any(axis=1) for drawn, measured in pairs
    ]
    return float(np.logical_or.reduce(np.broadcast_arrays(*signs)).mean()) if signs else 0.0


def _within(x: Array, centre: Array, margin: Array) -> Array:
    x, centre, margin = _aligned(x, centre, margin)
    return _known(abs(x - centre) <= margin, x + centre + margin)


def _between(x: Array, low: Array, high: Array) -> Array:
    x, low, high = _aligned(x, low, high)
    return _known((x >= low) & (x <= high), x + low + high)


def _decreasing(series: Array) -> Array:
    falls = [after < before for before, after in pairwise(np.moveaxis(series, -1, 0))]
    return _known(np.logical_and.reduce(falls), series.sum(-1))


def _variance(series: Array) -> Array:
    return _quotient((_apart(series) ** 2).sum(-1), np.array(series.shape[-1] - 1))


def _slope(y: Array, x: Array) -> Array:
    y, x = (_apart(values) for values in np.broadcast_arrays(y, x))
    return _quotient((x * y).sum(-1), (x**2).sum(-1))


def _rank_correlation(x: Array, y: Array) -> Array:
    x, y = (np.moveaxis(values, -1, 0) for values in np.broadcast_arrays(x, y))
    pairs = list(combinations(range(len(x)), 2))
    agreeing = sum((np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in pairs), np.zeros(()))
    return _quotient(np.asarray(agreeing), np.array(len(pairs)))


_APPLY: dict[str, Callable[..., Array]] = {
    "all": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "any": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    "not": lambda value: 1 - value,
    "each": lambda series: series.min(-1),
    "majority": lambda series: _known(2 * series.sum(-1) > series.shape[-1], series.sum(-1)),
    "count": lambda series: series.sum(-1),
    "within": _within,
    "between": _between,
    "decreasing": _decreasing,
    "mean": lambda series: series.mean(-1),
    "min": lambda series: series.min(-1),
    "max": lambda series: series.max(-1),
    "first": lambda series: _known(series[..., 0], series.sum(-1)),
    "last": lambda series: _known(series[..., -1], series.sum(-1)),
    "rest": lambda series: series[..., 1:],
    "variance": _variance,
    "list": lambda *values: np.stack(np.broadcast_arrays(*values), axis=-1),
    "slope": _slope,
    "rank_correlation": _rank_correlation,
    "abs": np.abs,
}


def _apart(series: Array) -> Array:
    """Return distances from the mean; exactly zero where all members are equal, however it rounds."""
    shifted = series - series[..., :1]
    apart: Array = shifted - shifted.mean(-1, keepdims=True)
    return apart


def _quotient(above: Array, below: Array) -> Array:
    return np.where(below == 0, np.nan, above / below)


def _known(values: Array, operands: Array) -> Array:
    """Return values, a truth as a number, and NaN where an operand is."""
    return np.where(np.isnan(operands), np.nan, values)


def _aligned(*values: Array) -> tuple[Array, ...]:
    """Return numbers and series so that they can be combined: a number counts for every member."""
    dimensions = max(value.ndim for value in values)
    return tuple(value[..., None] if value.ndim < dimensions else value for value in values)
