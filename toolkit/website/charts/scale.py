"""From numbers to places on an axis, and the numbers that an axis names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolkit.website.charts import svg
from toolkit.website.charts.marks import MINUS

FEW = 3
ROUND = (1, 2, 5)
FINE = (
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 3, 4, 5, 7),
    ROUND,
    (1, 3),
    (1,),
)
"""Leading digits of ticks where equal factors are equally far apart: the finest that leave room are taken."""
LOW_ENOUGH = 1e-9
BESIDE = 8
"""How far words of an axis may reach beyond its ends."""
CLOSE = 34
"""From tick to tick, where they are closest."""


@dataclass(frozen=True)
class Axis:
    """What an axis says.

    Args:
        title: what is measured, with its unit.
        form: `plain`, `signed` or `percent`.
        is_ratio: equal factors are equally far apart, so that half and twice lie evenly about 1.
    """

    title: str
    form: str = "plain"
    is_ratio: bool = False


@dataclass(frozen=True)
class Scale:
    """Where numbers stand.

    Args:
        low, high: the numbers at both ends.
        start, end: the ends, in pixels.
        is_ratio: equal factors are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    is_ratio: bool = False

    def at(self, value: float) -> float:
        """Return where a number stands."""
        low, high, value = (math.log(n) if self.is_ratio else n for n in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, apart: float = 60) -> list[float]:
        """Return round numbers that stand about so many pixels apart, upwards."""
        decades = (
            range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            if self.is_ratio
            else ()
        )
        for digits in FINE if decades else ():
            found = [m * 10.0**n for n in decades for m in digits if self.low <= m * 10.0**n <= self.high]
            gaps = [abs(self.at(b) - self.at(a)) for a, b in pairwise(found)]
            if len(found) >= FEW and min(gaps) >= CLOSE:
                return found
        return round_numbers(self.low, self.high, max(2, int(abs(self.end - self.start) / apart)))


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """Return at most about so many round numbers between two, upwards."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in ROUND if m * power >= rough), 10 * power)
    first = math.ceil(low / step - LOW_ENOUGH)
    return [n * step for n in range(first, math.floor(high / step + LOW_ENOUGH) + 1)]


def spanned(values: Sequence[float], start: float, end: float, axis: Axis, room: float = 0.04) -> Scale:
    """Return a scale that shows values with a little room at both ends; a ratio's shows 1 as well.

    Where a ratio is not above zero there is no axis of equal factors: it has one of equal steps.
    """
    low, high = min(values), max(values)
    if axis.is_ratio and low > 0:
        low, high = min(low, 1.0), max(high, 1.0)
        beyond = max((high / low) ** room, 1.01)
        return Scale(low / beyond, high * beyond, start, end, is_ratio=True)
    beyond = (high - low or abs(high) or 1.0) * room
    return Scale(low - beyond, high + beyond, start, end)


def tick_texts(ticks: Sequence[float], form: str) -> list[str]:
    """Return how ticks are written, all with the digits that tell them apart."""
    factor = 100 if form == "percent" else 1
    digits = next((d for d in range(7) if all(_is_told(t * factor, d) for t in ticks)), 7)
    return [_written(tick * factor, digits, form) for tick in ticks]


def _is_told(value: float, digits: int) -> bool:
    return abs(round(value, digits) - value) <= LOW_ENOUGH * max(1.0, abs(value))


def _written(value: float, digits: int, form: str) -> str:
    if abs(value) < LOW_ENOUGH:
        return "0%" if form == "percent" else "0"
    sign = "+" if form == "signed" else ""
    return f"{value:{sign}.{digits}f}{'%' if form == 'percent' else ''}".replace("-", MINUS)


def across(scale: Scale, axis: Axis, top: float, bottom: float) -> list[str]:
    """Return an axis along the bottom, with its lines upwards."""
    ticks = scale.ticks()
    places = [scale.at(tick) for tick in ticks]
    named = []
    for place, words in zip(places, tick_texts(ticks, axis.form), strict=True):
        half = svg.width_of(words, 11) / 2 - BESIDE
        named.append((words, min(max(place, scale.start + half), scale.end - half), bottom + 16))
    title = svg.cut(axis.title, abs(scale.end - scale.start) * 1.15)
    return [
        svg.grid((x, top, x, bottom) for x in places),
        svg.texts(named, "tick", "middle"),
        svg.text(title, (scale.start + scale.end) / 2, bottom + 35, "soft", "middle"),
    ]


def upwards(scale: Scale, axis: Axis, left: float, right: float) -> list[str]:
    """Return an axis along the left, with its lines across; its title stands on top, where there is room."""
    ticks = scale.ticks(45)
    places = [scale.at(tick) for tick in ticks]
    named = zip(tick_texts(ticks, axis.form), places, strict=True)
    return [
        svg.grid((left, y, right, y) for y in places),
        svg.texts([(words, left - 7, y + 4) for words, y in named], "tick", "end"),
    ]
