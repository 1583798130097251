"""How charts are drawn: rows of points, lines over steps, and one number against another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from toolkit.site.charts import svg
from toolkit.site.charts.scale import (
    Axis,
    Bar,
    Scale,
    across,
    apart,
    held,
    round_numbers,
    spanned,
    swarm,
    tick_texts,
    upwards,
    with_interval,
)
from toolkit.site.charts.svg import WIDE, Draw

# Points: height of a row, of one among many, and of a name that stands above its row, in pixels.
ROW, DENSE, HEAD = 26, 18, 14
MANY = 16
STACKED = 9
"""From dot to dot where several with intervals share a row."""
NAMES, NOTES = 240, 190
BELOW = 44
Ends = tuple[float | None, float | None]
"""Of an interval; None where there is none."""
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

    value: float  # where it stands
    low: float | None  # low, high: ends of its interval; None where it has none
    high: float | None
    says: str  # what a reader is told who points at it
    rows: tuple[tuple[Any, ...], ...]  # the rows behind it, in the order of the chart's columns
    look: str  # its colour
    shape: str = "circle"  # as `svg.dot` has them


def measured(what: str, keys: tuple[Any, ...], value: float, ends: Ends, look: str) -> Dot:
    """Return a value as it is drawn, with the ends of its interval where it has one."""
    row = (*keys, value, *("" if end is None else end for end in ends))
    return Dot(value, *ends, f"{what} {with_interval(value, *ends)}", (row,), look)


@dataclass(frozen=True)
class Lane:
    """A row: its name, its dots, and what stands at its end."""

    name: str  # name, note: words
    dots: tuple[Dot, ...]  # values
    note: str = ""
    limits: tuple[float, ...] = ()  # where a rule asks something of this row, in its colour


def lane_of(name: str, *dots: Dot, note: str = "") -> Lane:
    """Return a row of dots; what stands at its end is the first dot in words, unless a note says more."""
    return Lane(name, dots, note or with_interval(dots[0].value, dots[0].low, dots[0].high))


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
    return [*(dot.value for dot in dots), *ends, *limits, *(r.at for r in references)]


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
    return svg.mark(dot.says, dot.rows, *shapes, look=dot.look)


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
    dots: str = "all"  # whether points are drawn: `all`, or `none`
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
        y = _bounded(spanned(values, bottom, top, frame.up), frame.bounds)
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


def _bounded(scale: Scale, bounds: tuple[float, float]) -> Scale:
    return Scale(
        max(scale.low, bounds[0]), min(scale.high, bounds[1]), scale.start, scale.end, scale.is_ratio
    )


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
    size = 3.6 if line.dots == "all" else 2.4
    dots = [
        svg.mark(spot.says, spot.rows, svg.dot(*place, line.shape, size), look=line.look)
        for spot, place in zip(line.spots, places, strict=True)
    ]
    return [*([way] if way else []), *(dots if line.dots != "none" else [])]


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
