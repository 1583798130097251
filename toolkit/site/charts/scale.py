"""From numbers to words and to places on an axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from toolkit.rules.values import fixed
from toolkit.site.charts import svg

LABEL = 40
MINUS = "\u2212"


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
MOST_DIGITS = 12
BESIDE = 8
"""How far words of an axis may reach beyond its ends."""
CLOSE = 34
"""From tick to tick, where they are closest."""


@dataclass(frozen=True)
class Bar:
    """An interval as it is drawn."""

    level: Fraction  # confidence level
    low: Fraction  # low, high: its ends
    high: Fraction
    made: str  # where it comes from, how it was made, and what was resampled

    @property
    def words(self) -> str:
        """The interval in words."""
        return f"{self.name} [{signed(self.low)}, {signed(self.high)}]"

    @property
    def name(self) -> str:
        """What it is called: by its level."""
        return f"{float(100 * self.level):g}% interval"

    @property
    def holds_zero(self) -> bool:
        """Whether zero lies in it."""
        return self.low <= 0 <= self.high


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """Return a value and the interval that it has, if any, in words."""
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def reaching_one(intervals: Sequence[tuple[float | None, float | None]]) -> str:
    """Return how many intervals reach one, to end a title; nothing where there are none."""
    whole = [(low, high) for low, high in intervals if low is not None and high is not None]
    across = sum(low <= 1 <= high for low, high in whole)
    return f"; {across or 'no'} interval{'s reach' if across > 1 else ' reaches'} 1" if whole else ""


def marked(threshold: Fraction | None, bounds: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return where a threshold and bounds are marked; zero has a line of its own."""
    return tuple(dict.fromkeys(value for value in (threshold, *bounds) if value))


def signed(value: Fraction | float, digits: int = 4) -> str:
    """Return a number with its sign, and the minus that axes write; zero has no sign."""
    return "0" if value == 0 else fixed(value, digits, signed=True).replace("-", MINUS)


def plain(value: Fraction | float, form: str = "g") -> str:
    """Return a number with the minus that axes write."""
    return f"{float(value):{form}}".replace("-", MINUS)


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places for labels, in the same order, none closer to the next than a gap.

    Labels that would overlap are moved apart about their middle.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    clusters: list[tuple[float, list[int]]] = []
    for i in order:
        clusters.append((places[i], [i]))
        while len(clusters) > 1:
            (one, low), (other, high) = clusters[-2:]
            if other - one >= gap * (len(low) + len(high)) / 2 - 1e-12:
                break
            together = [*low, *high]
            clusters[-2:] = [(sum(places[j] for j in together) / len(together), together)]
    moved = list(places)
    for middle, held in clusters:
        for k, i in enumerate(held):
            moved[i] = middle + gap * (k - (len(held) - 1) / 2)
    return moved


def held(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places for labels as `apart` does, moved up and down so that they stay between two ends.

    Where there is no room for all of them, they go beyond the lower end.
    """
    moved = apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: moved[i])
    for k, i in enumerate(order):
        moved[i] = max(moved[i], low + k * gap)
    for k, i in enumerate(reversed(order)):
        moved[i] = min(moved[i], high - k * gap)
    return moved


def swarm(values: Sequence[float], width: float) -> list[int]:
    """Return how many dots' heights each value is moved off its line, so that no two dots touch."""
    placed: list[tuple[float, int]] = []
    offsets = [0] * len(values)
    for i in sorted(range(len(values)), key=lambda i: (values[i], i)):
        tried = 0
        while any(at == _spread(tried) and abs(value - values[i]) < width for value, at in placed):
            tried += 1
        offsets[i] = _spread(tried)
        placed.append((values[i], offsets[i]))
    return offsets


def short(text: str, most: int = LABEL) -> str:
    """Return a label that leaves room for the drawing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """Return parts as one enumeration."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _spread(tried: int) -> int:
    """Return the order in which places about a line are tried: 0, 1, -1, 2, -2."""
    return (tried + 1) // 2 * (1 if tried % 2 else -1)


@dataclass(frozen=True)
class Axis:
    """What an axis says."""

    title: str  # what is measured, with its unit
    form: str = "plain"  # `plain`, `signed` or `percent`
    is_ratio: bool = False  # equal factors are equally far apart, so that half and twice lie evenly about 1


@dataclass(frozen=True)
class Scale:
    """Where numbers stand."""

    low: float  # low, high: the numbers at both ends
    high: float
    start: float  # start, end: the ends, in pixels
    end: float
    is_ratio: bool = False  # equal factors are equally far apart

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
    told = (d for d in range(MOST_DIGITS) if all(_is_told(t * factor, d) for t in ticks))
    distinct = (d for d in told if len({round(t * factor, d) for t in ticks}) == len(ticks))
    digits = next(distinct, MOST_DIGITS)
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
