"""Estimates of rules with their registered intervals: a row a rule, or one rule's by seed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.site.charts import svg
from toolkit.site.charts.plots import (
    Axis,
    Bar,
    Dot,
    Lane,
    Reference,
    Scale,
    capital,
    drawn_dot,
    listed,
    marked,
    plain,
    points,
    signed,
    spanned,
    tick_texts,
)
from toolkit.site.charts.svg import ACCENT, FAINT, Chart, drawn

FOREST_COLUMNS = ("rule", "verdict", "estimate", "low", "high")
CELL_WIDTH, CELL_HEIGHT = 190, 30
CELL_HEAD = 18
"""Of drawings inside a table, and of their axis in its head."""
MOST_ROWS = 8  # more seeds than these share one row
SEED_COLUMNS = ("member", "value", "low", "high")


@dataclass(frozen=True)
class ForestRow:
    """A rule's estimate."""

    rule: str  # rule, title, verdict: the rule
    title: str
    verdict: str
    unit: str  # unit of its estimate; empty where it has none
    mean: Fraction | None  # the estimate; None where there is none
    bar: Bar | None  # its registered interval; None where there is none
    threshold: Fraction | None  # the value beside zero that the interval is compared with
    bounds: tuple[Fraction, ...] = ()  # the numbers that the rule's tests hold the interval against
    says: str = ""  # what the interval shows, in the terms of these tests


@dataclass(frozen=True)
class Whole:
    """A row with an estimate and an interval."""

    row: ForestRow
    mean: Fraction
    bar: Bar

    @property
    def dot(self) -> Dot:
        """The estimate as it is drawn."""
        row, verdict = self.row, self.row.verdict.replace("_", " ")
        shows = f", {row.says}" if row.says else ""
        says = f"{row.rule}, {row.title}: {signed(self.mean)}, {self.bar.words}{shows}; {verdict}"
        cells = (row.rule, verdict, self.mean, self.bar.low, self.bar.high)
        ends = float(self.bar.low), float(self.bar.high)
        return Dot(float(self.mean), *ends, says, (cells,), ACCENT, "diamond")


def forest(rows: tuple[ForestRow, ...], study: str) -> Chart | None:
    """Draw the estimates of a study's rules with their intervals; None where no rule has one."""
    shown = _shown(rows)
    if not shown:
        return None
    unit = shown[0].row.unit
    lanes = [
        Lane(
            e.row.rule,
            (e.dot,),
            e.row.verdict.replace("_", " "),
            tuple(float(mark) for mark in marked(e.row.threshold, e.row.bounds)),
        )
        for e in shown
    ]
    return drawn(
        _forest_finding(shown),
        _forest_caption(rows, shown, unit),
        FOREST_COLUMNS,
        points(lanes, [Reference(0, "zero", "zero")], Axis(f"estimate ({unit})", "signed")),
        about=f"Study {study}: every registered interval, and the verdict of its rule",
    )


def _shown(rows: Sequence[ForestRow]) -> list[Whole]:
    """Return the rows with an estimate and an interval in the unit that most of them have."""
    whole = [Whole(row, row.mean, row.bar) for row in rows if row.mean is not None and row.bar is not None]
    units = Counter(e.row.unit for e in whole).most_common(1)
    return [e for e in whole if e.row.unit == units[0][0]]


def _forest_finding(drawn: Sequence[Whole]) -> str:
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


def _forest_caption(rows: Sequence[ForestRow], drawn: Sequence[Whole], unit: str) -> str:
    caption = "Diamonds: estimates. Bars: their intervals"
    for made, count in Counter(e.bar.made for e in drawn).most_common():
        of_these = ", ".join(e.row.rule for e in drawn if e.bar.made == made)
        caption += f", {made}" + ("" if count == len(drawn) else f" ({of_these})")
    caption += "."
    if any(marked(e.row.threshold, e.row.bounds) for e in drawn):
        caption += (
            " Short upright ticks: registered thresholds, and bounds that a rule asks its interval to keep."
        )
    others = [row.rule for row in rows if row.mean is not None and row.bar and row.unit != unit]
    if others:
        caption += f" In another unit, and not drawn: {listed(others)}."
    lacking = [row.rule for row in rows if row.mean is None or row.bar is None]
    if lacking:
        caption += f" Without an interval, and not drawn: {listed(lacking)}."
    return caption


@dataclass(frozen=True)
class Cells:
    """A table's forest plot."""

    unit: str  # of the estimates that are drawn
    head: str  # the axis, for the head of its column; empty where nothing is drawn
    # Rule → its drawing; rules without an interval, or in another unit than most, have none
    by_rule: dict[str, str]


def cells(rows: Sequence[ForestRow]) -> Cells:
    """Return the drawings of a table's rows."""
    shown = _shown(rows)
    if not shown:
        return Cells("", "", {})
    values = [0.0]
    for one in shown:
        values += map(
            float, (one.mean, one.bar.low, one.bar.high, *marked(one.row.threshold, one.row.bounds))
        )
    scale = spanned(values, 6, CELL_WIDTH - 6, Axis(""))
    return Cells(shown[0].row.unit, _head(scale), {one.row.rule: _cell(one, scale) for one in shown})


def _head(scale: Scale) -> str:
    ticks = scale.ticks(42)
    named = [
        (words, min(max(scale.at(tick), 14), CELL_WIDTH - 14), 12)
        for tick, words in zip(ticks, tick_texts(ticks, "signed"), strict=True)
    ]
    return svg.picture([svg.texts(named, "tick", "middle")], "drawing cell", CELL_WIDTH, CELL_HEAD)


def _cell(one: Whole, scale: Scale) -> str:
    middle = CELL_HEIGHT / 2
    parts = [svg.line(scale.at(0), 0, scale.at(0), CELL_HEIGHT, "zero")]
    for bound in marked(one.row.threshold, one.row.bounds):
        at = scale.at(float(bound))
        anchor = "end" if at > CELL_WIDTH - 34 else None
        parts.append(svg.line(at, 3, at, CELL_HEIGHT - 3, "limit tick"))
        parts.append(svg.text(plain(bound), at + (-3 if anchor else 3), 9, "bound", anchor))
    return svg.picture([*parts, drawn_dot(one.dot, scale, middle)], "drawing cell", CELL_WIDTH, CELL_HEIGHT)


@dataclass(frozen=True)
class Spread:
    """An estimate and the members that it is the mean of."""

    title: str  # what is measured
    unit: str  # its unit
    arms: tuple[str, ...]  # the arms compared, first minus second; or the one measured
    member: str  # what the members are: `seed`, `run`
    members: tuple[tuple[str, Fraction], ...]  # (name, value), those without a value left out
    absent: int  # how many members have no value
    mean: Fraction | None  # their mean; None where a member is missing
    bar: Bar | None  # its interval
    threshold: Fraction | None  # the registered threshold
    bounds: tuple[Fraction, ...] = ()  # the numbers that the rule's tests hold the interval against
    says: str = ""  # what the interval shows, in the terms of these tests


def seed_differences(spread: Spread) -> Chart | None:
    """Draw an estimate: a dot a member, the mean, its interval, zero and the registered threshold."""
    if not spread.members:
        return None
    dots = [
        Dot(float(value), None, None, f"{name}: {signed(value)}", ((name, value, "", ""),), FAINT)
        for name, value in ((f"{spread.member} {name}", value) for name, value in spread.members)
    ]
    if len(dots) > MOST_ROWS:
        lanes = [Lane(f"{len(dots)} {spread.member}s", tuple(dots))]
    else:
        lanes = [
            Lane(f"{spread.member} {name}", (dot,), signed(value))
            for (name, value), dot in zip(spread.members, dots, strict=True)
        ]
    if spread.mean is not None:
        lanes.append(Lane("mean", (_mean(spread, spread.mean),), signed(spread.mean)))
    references = [Reference(0, "zero", "zero")]
    references += [
        Reference(float(bound), "limit", plain(bound, "+g"))
        for bound in marked(spread.threshold, spread.bounds)
    ]
    draw = points(lanes, references, Axis(_axis(spread), "signed"))
    return drawn(finding(spread), _seeds_caption(spread), SEED_COLUMNS, draw, about=spread.title)


def _mean(spread: Spread, mean: Fraction) -> Dot:
    bar = spread.bar
    says = f"mean of {len(spread.members)} {spread.member}{'s' if len(spread.members) > 1 else ''}: "
    says += signed(mean) + (f", {bar.words}" if bar else "")
    ends = (bar.low, bar.high) if bar else ("", "")
    low, high = (float(bar.low), float(bar.high)) if bar else (None, None)
    return Dot(float(mean), low, high, says, (("mean", mean, *ends),), ACCENT, "diamond")


def finding(spread: Spread) -> str:
    """Return what the members show, in words made from them."""
    values, whole = [value for _, value in spread.members], len(spread.members) + spread.absent
    each = f"{spread.member}{'s' if whole > 1 else ''}"
    if len(spread.arms) > 1:
        above = sum(value > 0 for value in values)
        equal = sum(value == 0 for value in values)
        first, second = (arm.replace("_", " ") for arm in spread.arms[:2])
        title = f"{first} above {second} in {above} of {whole} {each}"
        title += f", equal in {equal}" if equal else ""
    else:
        low, high = (f"{float(value):.4g}" for value in (min(values), max(values)))
        title = (
            f"{' '.join(spread.arms).replace('_', ' ') or spread.title}: {low} to {high} over {whole} {each}"
        )
    title += f", {spread.absent} missing" if spread.absent else ""
    if spread.mean is not None:
        title += f"; mean {signed(spread.mean)}"
    if spread.bar and spread.says:
        title += f", {spread.bar.name} {spread.says}"
    return capital(title)


def _seeds_caption(spread: Spread) -> str:
    parts = [f"{spread.absent} without a value, so that there is no mean."] if spread.absent else []
    if spread.bar:
        parts.append(f"Bar: {spread.bar.words} of the mean, {spread.bar.made}.")
    else:
        parts.append("No interval was registered or can be had for it.")
    if spread.threshold is not None and spread.threshold not in spread.bounds:
        parts.append(f"Dashed line: registered threshold {plain(spread.threshold, '+g')}.")
    if dashed := [plain(bound) for bound in spread.bounds if bound]:
        parts.append(f"Dashed line{'s' if len(dashed) > 1 else ''}: {listed(dashed)}.")
    return " ".join(parts)


def _axis(spread: Spread) -> str:
    if len(spread.arms) > 1:
        return f"{' minus '.join(arm.replace('_', ' ') for arm in spread.arms[:2])} ({spread.unit})"
    return spread.unit
