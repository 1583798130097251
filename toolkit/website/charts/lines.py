"""Lines over steps, each named where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.website.charts import svg
from toolkit.website.charts.drawing import WIDE, Draw
from toolkit.website.charts.marks import held
from toolkit.website.charts.scale import Axis, Scale, round_numbers, spanned, tick_texts, upwards

HEIGHT = 260
LINE_OF_TEXT = 15
NAMES = 190
TICK = 36


@dataclass(frozen=True)
class Spot:
    """A point of a line: where, what a reader is told who points at it, and the rows behind it."""

    x: float
    y: float
    says: str
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Line:
    """A line.

    Args:
        name: stands where it ends; empty where it has none.
        spots: its points, from left to right.
        look: its colour, and how it is drawn: `thin`, `dashed`, or bold where neither is said.
        says: what the whole line says; where it is given, no point says anything by itself.
        dots: whether points are drawn: `all`, or `none`.
        shape: of its dots.
    """

    name: str
    spots: tuple[Spot, ...]
    look: str
    says: str = ""
    dots: str = "all"
    shape: str = "circle"


@dataclass(frozen=True)
class Frame:
    """What lines stand in.

    Args:
        across, up: what the axes say.
        ticks: steps that are named; None where round numbers are.
        y_values: further values that the upright axis shows.
        band: an area behind the lines: (x, low, high).
        rules: values with a dashed line across, and its name.
        bounds: values that the upright axis does not go beyond.
        height: of the plot, in pixels.
    """

    across: Axis
    up: Axis
    ticks: tuple[float, ...] | None = None
    y_values: tuple[float, ...] = ()
    band: tuple[tuple[float, float, float], ...] = ()
    rules: tuple[tuple[float, str], ...] = ()
    bounds: tuple[float, float] = (float("-inf"), float("inf"))
    height: float = HEIGHT


def lines(drawn: Sequence[Line], frame: Frame) -> Draw:
    """Return what draws lines in a frame."""

    def draw(width: float) -> tuple[float, list[str]]:
        names = [line for line in drawn if line.name]
        room = min(NAMES, max((svg.width_of(line.name) for line in names), default=0) + 16)
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
        return bottom + 40, [*parts, *_names(names, x, y, (top, bottom), width - room)]

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


def _names(named: Sequence[Line], x: Scale, y: Scale, within: tuple[float, float], right: float) -> list[str]:
    """Return every line's name beside its last point, moved apart, and led to by a thin line."""
    if not named:
        return []
    top, bottom = within
    ends = [line.spots[-1] for line in named]
    places = held([y.at(end.y) for end in ends], LINE_OF_TEXT, top, bottom)
    parts = []
    for line, end, place in zip(named, ends, places, strict=True):
        parts.append(svg.line(x.at(end.x) + 5, y.at(end.y), right + 8, place, f"leader {line.look}"))
        parts.append(svg.text(line.name, right + 11, place + 4, f"name {line.look}"))
    return parts
