"""Points with intervals against reference lines: one row a thing, values across."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from toolkit.website.charts import svg
from toolkit.website.charts.drawing import WIDE, Draw
from toolkit.website.charts.marks import apart, swarm, with_interval
from toolkit.website.charts.scale import Axis, Scale, across, spanned

ROW, DENSE, HEAD = 26, 18, 14
"""Height of a row, of one among many, and of a name that stands above its row, in pixels."""
MANY = 16
STACKED = 9
"""From dot to dot where several with intervals share a row."""
NAMES, NOTES = 240, 190
LINE_OF_TEXT = 14
BELOW = 44
Ends = tuple[float | None, float | None]
"""Of an interval; None where there is none."""


@dataclass(frozen=True)
class Dot:
    """A value as it is drawn.

    Args:
        value: where it stands.
        low, high: ends of its interval; None where it has none.
        says: what a reader is told who points at it.
        rows: the rows behind it, in the order of the chart's columns.
        look: its colour.
        shape: as `svg.dot` has them.
    """

    value: float
    low: float | None
    high: float | None
    says: str
    rows: tuple[tuple[Any, ...], ...]
    look: str
    shape: str = "circle"


def measured(what: str, keys: tuple[Any, ...], value: float, ends: Ends, look: str) -> Dot:
    """Return a value as it is drawn, with the ends of its interval where it has one.

    Args:
        what: whose value it is, in words.
        keys: what it goes by in its row.
        value: where it stands.
        ends: of its interval.
        look: its colour.
    """
    row = (*keys, value, *("" if end is None else end for end in ends))
    return Dot(value, *ends, f"{what} {with_interval(value, *ends)}", (row,), look)


@dataclass(frozen=True)
class Lane:
    """A row: its name, its dots, and what stands at its end.

    Args:
        name, note: words.
        dots: values.
        limits: where a rule asks something of this row, in its colour.
    """

    name: str
    dots: tuple[Dot, ...]
    note: str = ""
    limits: tuple[float, ...] = ()


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
        heights = [head + _height(lane, scale, least) for lane in lanes]
        bottom = top + sum(heights)
        parts = across(scale, axis, top, bottom)
        places = list(zip(accumulate(heights, initial=top), heights, strict=False))
        # Where names stand above their rows, no line crosses them.
        spans = [(top, bottom)] if is_wide else [(y + head + 3, y + height) for y, height in places]
        for line in references:
            at = scale.at(line.at)
            parts += [svg.line(at, start, at, end, line.look) for start, end in spans]
        parts += _named(names, scale, width)
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


def _height(lane: Lane, scale: Scale, least: float) -> float:
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


def _named(references: Sequence[Reference], scale: Scale, width: float) -> list[str]:
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
