"""One number against another, a dot a thing; panels beside each other, or below where it is narrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.website.charts import svg
from toolkit.website.charts.drawing import WIDE, Draw
from toolkit.website.charts.marks import Bar
from toolkit.website.charts.scale import Axis, Scale, across, spanned, upwards

HEIGHT = 300
GAP = 26
HEAD, BELOW = 46, 48
KEY = 18


@dataclass(frozen=True)
class Spot:
    """A dot.

    Args:
        x, y: where it stands.
        says: what a reader is told who points at it.
        rows: the rows behind it, in the order of the chart's columns.
        look: its colour.
        bar: its interval upwards.
        name: written in the dot.
    """

    x: float
    y: float
    says: str
    rows: tuple[tuple[Any, ...], ...]
    look: str
    bar: Bar | None = None
    name: str = ""


@dataclass(frozen=True)
class Panel:
    """Dots that share an axis: what it says, a sentence above it, and lines.

    Args:
        axis: what is across.
        note: above it.
        spots: the dots.
        has_one: whether a line marks 1, where both designs are equal.
    """

    axis: Axis
    note: str
    spots: tuple[Spot, ...]
    has_one: bool = False


def scatter(panels: Sequence[Panel], up: Axis, key: Sequence[tuple[str, str]] = ()) -> Draw:
    """Return what draws panels, with the diagonal where both axes say the same number.

    Args:
        panels: one beside the other.
        up: what is upwards, in all of them.
        key: names of colours, with the colours.
    """

    def draw(width: float) -> tuple[float, list[str]]:
        is_wide = width >= WIDE
        beside = len(panels) if is_wide else 1
        wide = min((width - GAP * (beside - 1)) / beside, 460)
        spots = [spot for panel in panels for spot in panel.spots]
        ups = [spot.y for spot in spots]
        ups += [float(end) for spot in spots if spot.bar for end in (spot.bar.low, spot.bar.high)]
        ups += [1.0] if any(p.has_one for p in panels) else []
        parts, tall = [], HEAD + HEIGHT + BELOW
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
    left, top = corner[0] + 44, corner[1] + HEAD
    bottom, right = top + HEIGHT, corner[0] + width
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
