"""Every estimate of a study with its registered interval, a row a rule: as a chart, or inside a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.website.charts import marks, svg
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.points import Dot, Lane, Reference, drawn_dot, points
from toolkit.website.charts.scale import Axis, Scale, spanned, tick_texts
from toolkit.website.charts.theme import ACCENT

COLUMNS = ("rule", "verdict", "estimate", "low", "high")
WIDTH, HEIGHT = 190, 30
HEAD = 18
"""Of drawings inside a table, and of their axis in its head."""


@dataclass(frozen=True)
class ForestRow:
    """A rule's estimate.

    Args:
        rule, title, verdict: the rule.
        unit: unit of its estimate; empty where it has none.
        mean: the estimate; None where there is none.
        bar: its registered interval; None where there is none.
        threshold: the value beside zero that the interval is compared with.
        bounds: the numbers that the rule's tests hold the interval against.
        says: what the interval shows, in the terms of these tests.
    """

    rule: str
    title: str
    verdict: str
    unit: str
    mean: Fraction | None
    bar: marks.Bar | None
    threshold: Fraction | None
    bounds: tuple[Fraction, ...] = ()
    says: str = ""


@dataclass(frozen=True)
class Whole:
    """A row with an estimate and an interval."""

    row: ForestRow
    mean: Fraction
    bar: marks.Bar

    @property
    def dot(self) -> Dot:
        """The estimate as it is drawn."""
        row, verdict = self.row, self.row.verdict.replace("_", " ")
        shows = f", {row.says}" if row.says else ""
        says = f"{row.rule}, {row.title}: {marks.signed(self.mean)}, {self.bar.words}{shows}; {verdict}"
        cells = (row.rule, verdict, self.mean, self.bar.low, self.bar.high)
        ends = float(self.bar.low), float(self.bar.high)
        return Dot(float(self.mean), *ends, says, (cells,), ACCENT, "diamond")


def forest(rows: tuple[ForestRow, ...], study: str) -> Chart | None:
    """Draw the estimates of a study's rules with their intervals; None where no rule has one.

    Args:
        rows: the rules; those without an interval, or in another unit than most, are named in the caption.
        study: the study's name.
    """
    shown = _shown(rows)
    if not shown:
        return None
    unit = shown[0].row.unit
    lanes = [
        Lane(
            e.row.rule,
            (e.dot,),
            e.row.verdict.replace("_", " "),
            tuple(float(mark) for mark in marks.marked(e.row.threshold, e.row.bounds)),
        )
        for e in shown
    ]
    return drawn(
        _finding(shown),
        _caption(rows, shown, unit),
        COLUMNS,
        points(lanes, [Reference(0, "zero", "zero")], Axis(f"estimate ({unit})", "signed")),
        about=f"Study {study}: every registered interval, and the verdict of its rule",
    )


def _shown(rows: Sequence[ForestRow]) -> list[Whole]:
    """Return the rows with an estimate and an interval in the unit that most of them have."""
    whole = [Whole(row, row.mean, row.bar) for row in rows if row.mean is not None and row.bar is not None]
    units = Counter(e.row.unit for e in whole).most_common(1)
    return [e for e in whole if e.row.unit == units[0][0]]


def _finding(drawn: Sequence[Whole]) -> str:
    across = sum(e.bar.holds_zero for e in drawn)
    rules = f"{len(drawn)} rule{'s' if len(drawn) > 1 else ''}"
    if across == len(drawn):
        title = f"The interval of {'each of ' if len(drawn) > 1 else ''}{rules} includes zero"
    else:
        title = f"The intervals of {across or 'none'} of {rules} include zero"
    bounded = [e.row for e in drawn if e.row.bounds]
    if len(bounded) == 1:
        title += f"; that of {bounded[0].rule} is {bounded[0].says}"
    elif bounded:
        kept = sum(not row.says.startswith("not ") for row in bounded)
        title += f"; {kept or 'none'} of {len(bounded)} keep{'s' * (kept == 1)} registered bounds"
    return title


def _caption(rows: Sequence[ForestRow], drawn: Sequence[Whole], unit: str) -> str:
    caption = "Diamonds: estimates. Bars: their intervals"
    for made, count in Counter(e.bar.made for e in drawn).most_common():
        of_these = ", ".join(e.row.rule for e in drawn if e.bar.made == made)
        caption += f", {made}" + ("" if count == len(drawn) else f" ({of_these})")
    caption += "."
    if any(marks.marked(e.row.threshold, e.row.bounds) for e in drawn):
        caption += (
            " Short upright ticks: registered thresholds, and bounds that a rule asks its interval to keep."
        )
    others = [row.rule for row in rows if row.mean is not None and row.bar and row.unit != unit]
    if others:
        caption += f" In another unit, and not drawn: {marks.listed(others)}."
    lacking = [row.rule for row in rows if row.mean is None or row.bar is None]
    if lacking:
        caption += f" Without an interval, and not drawn: {marks.listed(lacking)}."
    return caption


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
    shown = _shown(rows)
    if not shown:
        return Cells("", "", {})
    values = [0.0]
    for one in shown:
        marked = marks.marked(one.row.threshold, one.row.bounds)
        values += map(float, (one.mean, one.bar.low, one.bar.high, *marked))
    scale = spanned(values, 6, WIDTH - 6, Axis(""))
    return Cells(shown[0].row.unit, _head(scale), {one.row.rule: _cell(one, scale) for one in shown})


def _head(scale: Scale) -> str:
    ticks = scale.ticks(42)
    named = [
        (words, min(max(scale.at(tick), 14), WIDTH - 14), 12)
        for tick, words in zip(ticks, tick_texts(ticks, "signed"), strict=True)
    ]
    return _drawing([svg.texts(named, "tick", "middle")], HEAD)


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
