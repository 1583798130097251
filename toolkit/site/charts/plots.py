"""How charts are drawn: numbers as words and places on an axis; rows of points, lines, panels of dots."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from toolkit.rules.values import fixed
from toolkit.site.charts import svg
from toolkit.site.charts.svg import WIDE, Draw
from toolkit.structs import replace

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


Number = Fraction | float


def with_interval(value: Number, low: Number | None, high: Number | None) -> str:
    """Return a value and the interval that it has, if any, in words."""
    ends = "" if low is None or high is None else f" [{float(low):.3f}, {float(high):.3f}]"
    return f"{float(value):.3f}{ends}"


def signed(value: Number, digits: int = 4) -> str:
    """Return a number with its sign, and the minus that axes write; zero has no sign."""
    return "0" if value == 0 else fixed(value, digits, signed=True).replace("-", MINUS)


def plain(value: Number, form: str = "g") -> str:
    """Return a number with the minus that axes write."""
    return f"{float(value):{form}}".replace("-", MINUS)


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places for labels, those that would overlap moved apart about their middle."""
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
    """Return places for labels as `apart` does, between two ends; where room lacks, below the lower."""
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

    def at(self, value: Number) -> float:
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
    """Return a scale with a little room at both ends; a ratio's, if all are above zero, shows 1 too."""
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


# Points: height of a row, of one among many, and of a name that stands above its row, in pixels.
ROW, DENSE, HEAD = 26, 18, 14
MANY = 16
STACKED = 9
"""From dot to dot where several with intervals share a row."""
NAMES, NOTES = 240, 190
BELOW = 44
# Lines
LINES_HEIGHT = 260
LABEL_GAP = 15
LINE_NAMES = 190
TICK = 36
# Panels of dots
PANEL_HEIGHT = 300
GAP = 26
PANEL_HEAD, PANEL_BELOW = 46, 48
KEY = 18


@dataclass(frozen=True)
class Dot:
    """A value as it is drawn."""

    of: tuple[Any, ...]  # what it is of, as the first columns of its chart say it
    value: Number
    low: Number | None = None  # low, high: ends of its interval; None where it has none
    high: Number | None = None
    says: str = ""  # what a reader is told who points at it
    look: str = svg.ACCENT  # its colour
    shape: str = "circle"  # as `svg.dot` has them

    @property
    def words(self) -> str:
        """It and its interval, if any, in words."""
        return with_interval(self.value, self.low, self.high)

    @property
    def row(self) -> tuple[Any, ...]:
        """The row behind it, in the order of the chart's columns."""
        return (*self.of, self.value, *("" if end is None else end for end in (self.low, self.high)))

    def said(self, what: str, look: str) -> "Dot":
        """Return it in a colour, saying what it is the value of."""
        return replace(self, says=f"{what} {self.words}", look=look)


@dataclass(frozen=True)
class Lane:
    """A row: its name, its dots, and what stands at its end."""

    name: str  # name, note: words
    dots: tuple[Dot, ...]  # values
    note: str = ""
    limits: tuple[float, ...] = ()  # where a rule asks something of this row, in its colour


def lane_of(name: str, *dots: Dot, note: str = "") -> Lane:
    """Return a row of dots; what stands at its end is the first dot in words, unless a note says more."""
    return Lane(name, dots, note or dots[0].words)


@dataclass(frozen=True)
class Reference:
    """A line from top to bottom: where, as what, under which name."""

    at: float
    look: str
    name: str = ""


def points(lanes: Sequence[Lane], references: Sequence[Reference], axis: Axis) -> Draw:
    """Return what draws rows of points against lines; where it is narrow, names stand above their rows."""

    def draw(width: float) -> tuple[float, list[str]]:
        is_wide = width >= WIDE
        left = min(NAMES, max(svg.width_of(lane.name) for lane in lanes) + 12) if is_wide else 8
        noted = max(svg.width_of(lane.note) for lane in lanes) if is_wide else 0
        scale = spanned(
            _shown(lanes, references), left, width - (min(NOTES, noted + 14) if noted else 8), axis
        )
        names = [r for r in references if r.name]
        top = 22.0 if names else 6.0
        least = ROW if len(lanes) <= MANY else DENSE
        head = 0 if is_wide else HEAD
        heights = [head + _lane_height(lane, scale, least) for lane in lanes]
        bottom = top + sum(heights)
        parts = across(scale, axis, top, bottom)
        places = list(zip(accumulate(heights, initial=top), heights, strict=False))
        # Where names stand above their rows, no line crosses them.
        spans = [(top, bottom)] if is_wide else [(y + head + 3, y + height) for y, height in places]
        for line in references:
            at = scale.at(line.at)
            parts += [svg.line(at, start, at, end, line.look) for start, end in spans]
        parts += _reference_names(names, scale, width)
        for lane, place in zip(lanes, places, strict=True):
            parts += _lane(lane, scale, place, width, is_wide=is_wide)
        return bottom + BELOW, parts

    return draw


def _shown(lanes: Sequence[Lane], references: Sequence[Reference]) -> list[float]:
    dots = [dot for lane in lanes for dot in lane.dots]
    ends = [end for dot in dots for end in (dot.low, dot.high) if end is not None]
    limits = [limit for lane in lanes for limit in lane.limits]
    return [float(at) for at in (*(dot.value for dot in dots), *ends, *limits, *(r.at for r in references))]


def _offsets(lane: Lane, scale: Scale) -> list[float]:
    """Return how far each dot stands off the middle of its row, in pixels."""
    if any(dot.low is not None for dot in lane.dots):
        return [STACKED * (k - (len(lane.dots) - 1) / 2) for k in range(len(lane.dots))]
    return [10.0 * off for off in swarm([scale.at(dot.value) for dot in lane.dots], 10)]


def _lane_height(lane: Lane, scale: Scale, least: float) -> float:
    reach = max((abs(off) for off in _offsets(lane, scale)), default=0.0)
    return max(least, 2 * reach + 16)


def _lane(lane: Lane, scale: Scale, place: tuple[float, float], width: float, *, is_wide: bool) -> list[str]:
    top, height = place
    head = 0 if is_wide else HEAD
    middle = top + head + (height - head) / 2
    if is_wide:
        parts = [svg.text(svg.cut(lane.name, scale.start - 10), scale.start - 10, middle + 4, None, "end")]
        parts += [svg.text(svg.cut(lane.note, NOTES), scale.end + 12, middle + 4)] if lane.note else []
    else:
        room = width - svg.width_of(lane.note) - 12
        parts = [svg.text(svg.cut(lane.name, room), 0, top + 13)]
        parts += [svg.text(lane.note, width, top + 13, "soft", "end")] if lane.note else []
    parts += [
        svg.line(scale.at(at), middle - 9, scale.at(at), middle + 9, "limit tick") for at in lane.limits
    ]
    for dot, off in zip(lane.dots, _offsets(lane, scale), strict=True):
        parts.append(drawn_dot(dot, scale, middle + off))
    return parts


def drawn_dot(dot: Dot, scale: Scale, y: float) -> str:
    """Return a dot with its interval as one mark."""
    shapes = [svg.dot(scale.at(dot.value), y, dot.shape, 4.0 if dot.shape == "circle" else 4.6)]
    if dot.low is not None and dot.high is not None:
        shapes.insert(0, svg.line(scale.at(dot.low), y, scale.at(dot.high), y, "bar"))
    return svg.mark(dot.says, [dot.row], *shapes, look=dot.look)


def _reference_names(references: Sequence[Reference], scale: Scale, width: float) -> list[str]:
    """Return the names of lines above them, moved apart where they would lie on each other."""
    if not references:
        return []
    widest = max(svg.width_of(r.name) for r in references) + 8
    places = apart([scale.at(r.at) for r in references], widest)
    inside = [
        min(max(x, svg.width_of(r.name) / 2), width - svg.width_of(r.name) / 2)
        for x, r in zip(places, references, strict=True)
    ]
    return [svg.text(r.name, x, 14, "soft", "middle") for x, r in zip(inside, references, strict=True)]


@dataclass(frozen=True)
class Spot:
    """A point of a line, or a dot by itself."""

    x: float  # x, y: where it stands
    y: float
    says: str  # what a reader is told who points at it
    rows: tuple[tuple[Any, ...], ...]  # the rows behind it, in the order of the chart's columns
    look: str = ""  # its colour, where it is not that of a line
    bar: Bar | None = None  # its interval upwards
    name: str = ""  # written in the dot


@dataclass(frozen=True)
class Line:
    """A line."""

    name: str  # stands where it ends; empty where it has none
    spots: tuple[Spot, ...]  # its points, from left to right
    look: str  # its colour, and how it is drawn: `thin`, `dashed`, or bold where neither is said
    says: str = ""  # what the whole line says; where it is given, no point says anything by itself
    shape: str = "circle"  # of its dots


@dataclass(frozen=True)
class Frame:
    """What lines stand in."""

    across: Axis  # across, up: what the axes say
    up: Axis
    ticks: tuple[float, ...] | None = None  # steps that are named; None where round numbers are
    y_values: tuple[float, ...] = ()  # further values that the upright axis shows
    band: tuple[tuple[float, float, float], ...] = ()  # an area behind the lines: (x, low, high)
    rules: tuple[tuple[float, str], ...] = ()  # values with a dashed line across, and its name
    # Values that the upright axis does not go beyond
    bounds: tuple[float, float] = (float("-inf"), float("inf"))
    height: float = LINES_HEIGHT  # of the plot, in pixels


def lines(drawn: Sequence[Line], frame: Frame) -> Draw:
    """Return what draws lines in a frame."""

    def draw(width: float) -> tuple[float, list[str]]:
        names = [line for line in drawn if line.name]
        room = min(LINE_NAMES, max((svg.width_of(line.name) for line in names), default=0) + 16)
        room = min(room, width * 0.36) if width < WIDE else room
        values = [s.y for line in drawn for s in line.spots] + [
            *frame.y_values,
            *(at for at, _ in frame.rules),
        ]
        values += [end for _, low, high in frame.band for end in (low, high)]
        top, bottom = 24.0, 24.0 + frame.height
        y = spanned(values, bottom, top, frame.up)
        y = replace(y, low=max(y.low, frame.bounds[0]), high=min(y.high, frame.bounds[1]))
        left = 10 + max(svg.width_of(words, 11) for words in tick_texts(y.ticks(45), frame.up.form))
        xs = [s.x for line in drawn for s in line.spots]
        inset = 6.0
        x = Scale(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1, left + inset, width - room - inset)
        parts = [*upwards(y, frame.up, left, width - room), *_steps(frame, x, bottom)]
        parts.append(svg.text(svg.cut(frame.up.title, width), 0, 12, "soft"))
        if frame.band:
            there = [(x.at(at), y.at(low)) for at, low, _ in frame.band]
            back = [(x.at(at), y.at(high)) for at, _, high in reversed(frame.band)]
            parts.append(svg.path([*there, *back], "band", closed=True))
        for at, name in frame.rules:
            parts.append(svg.line(left, y.at(at), width - room, y.at(at), "even"))
            parts.append(svg.text(name, width - room - 4, y.at(at) - 5, "soft", "end"))
        for one in drawn:
            parts += _line(one, x, y)
        return bottom + 40, [*parts, *_line_names(names, x, y, (top, bottom), width - room)]

    return draw


def _steps(frame: Frame, x: Scale, bottom: float) -> list[str]:
    if frame.ticks is None:
        ticks = round_numbers(x.low, x.high, max(2, int((x.end - x.start) / 55)))
        words = tick_texts(ticks, frame.across.form)
    else:
        ticks = _thinned(frame.ticks, x)
        words = [f"{tick:g}" for tick in ticks]
    named = [(said, x.at(tick), bottom + 16) for tick, said in zip(ticks, words, strict=True)]
    return [
        svg.texts(named, "tick", "middle"),
        svg.text(frame.across.title, (x.start + x.end) / 2, bottom + 33, "soft", "middle"),
    ]


def _thinned(steps: Sequence[float], x: Scale) -> list[float]:
    """Return steps that can be named without touching; the first and the last are among them."""
    kept = [steps[-1]]
    for step in reversed(steps[:-1]):
        if x.at(kept[-1]) - x.at(step) >= TICK:
            kept.append(step)
    if kept[-1] != steps[0] and len(kept) > 1:
        kept[-1] = steps[0]
    return kept[::-1]


def _line(line: Line, x: Scale, y: Scale) -> list[str]:
    places = [(x.at(spot.x), y.at(spot.y)) for spot in line.spots]
    way = svg.path(places, f"line {line.look}") if len(places) > 1 else ""
    if line.says:
        shape = way or svg.dot(*places[0], line.shape, 3)
        return [svg.mark(line.says, [row for s in line.spots for row in s.rows], shape, look=line.look)]
    dots = [
        svg.mark(spot.says, spot.rows, svg.dot(*place, line.shape, 3.6), look=line.look)
        for spot, place in zip(line.spots, places, strict=True)
    ]
    return [*([way] if way else []), *dots]


def _line_names(
    named: Sequence[Line], x: Scale, y: Scale, within: tuple[float, float], right: float
) -> list[str]:
    """Return every line's name beside its last point, moved apart, and led to by a thin line."""
    if not named:
        return []
    top, bottom = within
    ends = [line.spots[-1] for line in named]
    places = held([y.at(end.y) for end in ends], LABEL_GAP, top, bottom)
    parts = []
    for line, end, place in zip(named, ends, places, strict=True):
        parts.append(svg.line(x.at(end.x) + 5, y.at(end.y), right + 8, place, f"leader {line.look}"))
        parts.append(svg.text(line.name, right + 11, place + 4, f"name {line.look}"))
    return parts


@dataclass(frozen=True)
class Panel:
    """Dots that share an axis: what it says, a sentence above it, and lines."""

    axis: Axis  # what is across
    note: str  # above it
    spots: tuple[Spot, ...]  # the dots
    has_one: bool = False  # whether a line marks 1, where both designs are equal


def scatter(panels: Sequence[Panel], up: Axis, key: Sequence[tuple[str, str]] = ()) -> Draw:
    """Return what draws panels, with the diagonal where both axes say the same number."""

    def draw(width: float) -> tuple[float, list[str]]:
        is_wide = width >= WIDE
        beside = len(panels) if is_wide else 1
        wide = min((width - GAP * (beside - 1)) / beside, 460)
        spots = [spot for panel in panels for spot in panel.spots]
        ups = [spot.y for spot in spots]
        ups += [float(end) for spot in spots if spot.bar for end in (spot.bar.low, spot.bar.high)]
        ups += [1.0] if any(p.has_one for p in panels) else []
        parts, tall = [], PANEL_HEAD + PANEL_HEIGHT + PANEL_BELOW
        for at, panel in enumerate(panels):
            left = (at % beside) * (wide + GAP)
            parts += _panel(panel, up, ups, (left, at // beside * tall), wide)
        bottom = -(-len(panels) // beside) * tall
        for at, (name, look) in enumerate(key):
            y = bottom + KEY * at + 8
            parts += [svg.tag("g", svg.dot(6.0, y, "circle", 5), class_=look), svg.text(name, 18, y + 4)]
        return bottom + KEY * len(key) + 4, parts

    return draw


def _panel(
    panel: Panel, up: Axis, ups: Sequence[float], corner: tuple[float, float], width: float
) -> list[str]:
    left, top = corner[0] + 44, corner[1] + PANEL_HEAD
    bottom, right = top + PANEL_HEIGHT, corner[0] + width
    xs = [spot.x for spot in panel.spots] + ([1.0] if panel.has_one else [])
    x, y = spanned(xs, left, right, panel.axis), spanned(ups, bottom, top, up)
    parts = across(x, panel.axis, top, bottom)
    parts += upwards(y, Axis("", up.form), left, right)
    parts += [svg.text(svg.cut(panel.note or up.title, width), corner[0], corner[1] + 14, "soft")]
    parts += [svg.text(svg.cut(up.title, width), corner[0], top - 12, "soft")] if panel.note else []
    low, high = max(x.low, y.low), min(x.high, y.high)
    if low < high:
        parts.append(svg.line(x.at(low), y.at(low), x.at(high), y.at(high), "even"))
    if panel.has_one:
        parts.append(svg.line(left, y.at(1.0), right, y.at(1.0), "zero"))
    return [*parts, *(_spot(spot, x, y) for spot in panel.spots)]


def _spot(spot: Spot, x: Scale, y: Scale) -> str:
    at, up = x.at(spot.x), y.at(spot.y)
    shapes = [svg.dot(at, up, "circle", 8.5 if spot.name else 4)]
    if spot.bar:
        shapes.insert(0, svg.line(at, y.at(float(spot.bar.low)), at, y.at(float(spot.bar.high)), "bar"))
    if spot.name:
        shapes.append(svg.text(spot.name, at, up + 3.5, "within"))
    return svg.mark(spot.says, spot.rows, *shapes, look=spot.look)
