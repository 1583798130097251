"""A forest plot inside a table: a small drawing a row, all of them over one axis."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.website.charts import marks, svg
from toolkit.website.charts.forest import ForestRow, Whole
from toolkit.website.charts.points import drawn_dot
from toolkit.website.charts.scale import Axis, Scale, spanned, tick_texts

WIDTH, HEIGHT = 190, 30
HEAD = 18


@dataclass(frozen=True)
class Cells:
    """A table's forest plot.

    Args:
        unit: of the estimates that are drawn.
        head: the axis, for the head of its column; empty where nothing is drawn.
        by_rule: rule → its drawing; rules without an interval, or in another unit than most, have none.
    """

    unit: str
    head: str
    by_rule: dict[str, str]


def cells(rows: Sequence[ForestRow]) -> Cells:
    """Return the drawings of a table's rows."""
    whole = [Whole(row, row.mean, row.bar) for row in rows if row.mean is not None and row.bar is not None]
    if not whole:
        return Cells("", "", {})
    unit = Counter(one.row.unit for one in whole).most_common(1)[0][0]
    shown = [one for one in whole if one.row.unit == unit]
    values = [0.0]
    for one in shown:
        marked = marks.marked(one.row.threshold, one.row.bounds)
        values += map(float, (one.mean, one.bar.low, one.bar.high, *marked))
    scale = spanned(values, 6, WIDTH - 6, Axis(""))
    return Cells(unit, _head(scale), {one.row.rule: _cell(one, scale) for one in shown})


def _head(scale: Scale) -> str:
    ticks = scale.ticks(42)
    parts = [
        svg.text(words, min(max(scale.at(tick), 14), WIDTH - 14), 12, "tick", "middle")
        for tick, words in zip(ticks, tick_texts(ticks, "signed"), strict=True)
    ]
    return _drawing(parts, HEAD)


def _cell(one: Whole, scale: Scale) -> str:
    middle = HEIGHT / 2
    parts = [svg.line(scale.at(0), 0, scale.at(0), HEIGHT, "zero")]
    for bound in marks.marked(one.row.threshold, one.row.bounds):
        at = scale.at(float(bound))
        anchor = "end" if at > WIDTH - 34 else None
        parts.append(svg.line(at, 3, at, HEIGHT - 3, "limit tick"))
        parts.append(svg.text(marks.plain(bound), at + (-3 if anchor else 3), 9, "bound", anchor))
    return _drawing([*parts, drawn_dot(one.dot, scale, middle)], HEIGHT)


def _drawing(parts: Sequence[str], height: int) -> str:
    return svg.tag(
        "svg", *parts, class_="drawing cell", width=WIDTH, height=height, viewBox=f"0 0 {WIDTH} {height}"
    )
