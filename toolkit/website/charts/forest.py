"""Every estimate of a study with its registered interval, a row a rule."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.website.charts import marks
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.points import Dot, Lane, Reference, points
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import ACCENT

COLUMNS = ("rule", "verdict", "estimate", "low", "high")


@dataclass(frozen=True)
class ForestRow:
    """A rule's estimate.

    Args:
        rule, title, verdict: the rule.
        unit: unit of its estimate; empty where it has none.
        mean: the estimate; None where there is none.
        bar: its registered interval; None where there is none.
        threshold: the value beside zero that the interval is compared with.
        limits: the bounds that the rule asks the interval to keep; None where it asks for none.
    """

    rule: str
    title: str
    verdict: str
    unit: str
    mean: Fraction | None
    bar: marks.Bar | None
    threshold: Fraction | None
    limits: marks.Limits | None = None


@dataclass(frozen=True)
class _Whole:
    row: ForestRow
    mean: Fraction
    bar: marks.Bar

    @property
    def words(self) -> str:
        return f"{marks.signed(self.mean)}, {self.bar.words}"

    @property
    def dot(self) -> Dot:
        row, verdict = self.row, self.row.verdict.replace("_", " ")
        says = f"{row.rule}, {row.title}: {self.words}; {verdict}"
        cells = (row.rule, verdict, self.mean, self.bar.low, self.bar.high)
        ends = float(self.bar.low), float(self.bar.high)
        return Dot(float(self.mean), *ends, says, (cells,), ACCENT, "diamond")


def forest(rows: tuple[ForestRow, ...], study: str) -> Chart | None:
    """Draw the estimates of a study's rules with their intervals; None where no rule has one.

    Args:
        rows: the rules; those without an interval, or in another unit than most, are named in the caption.
        study: the study's name.
    """
    whole = [_Whole(row, row.mean, row.bar) for row in rows if row.mean is not None and row.bar is not None]
    if not whole:
        return None
    unit = Counter(e.row.unit for e in whole).most_common(1)[0][0]
    shown = [e for e in whole if e.row.unit == unit]
    lanes = [
        Lane(
            e.row.rule,
            (e.dot,),
            e.row.verdict.replace("_", " "),
            tuple(float(mark) for mark in marks.marked(e.row.threshold, e.row.limits)),
        )
        for e in shown
    ]
    return drawn(
        _finding(shown),
        _caption(rows, shown, study, unit),
        COLUMNS,
        points(lanes, [Reference(0, "zero", "zero")], Axis(f"estimate ({unit})", "signed")),
        about=f"Study {study}: every registered interval, and the verdict of its rule",
    )


def _finding(drawn: Sequence[_Whole]) -> str:
    across = sum(e.bar.holds_zero for e in drawn)
    rules = f"{len(drawn)} rule{'s' if len(drawn) > 1 else ''}"
    if across == len(drawn):
        title = f"The interval of {'each of ' if len(drawn) > 1 else ''}{rules} includes zero"
    else:
        title = f"The intervals of {across or 'none'} of {rules} include zero"
    bounded = [(e.row.rule, e.row.limits) for e in drawn if e.row.limits]
    if len(bounded) == 1:
        ((rule, limits),) = bounded
        title += f"; that of {rule} is {'' if limits.kept else 'not '}{limits.words}"
    elif bounded:
        kept = sum(limits.kept for _, limits in bounded)
        title += f"; {kept or 'none'} of {len(bounded)} keep{'s' * (kept == 1)} registered bounds"
    return title


def _caption(rows: Sequence[ForestRow], drawn: Sequence[_Whole], study: str, unit: str) -> str:
    each = (f"{e.row.rule} {e.row.verdict.replace('_', ' ')}, {e.words}" for e in drawn)
    caption = f"Study {study}. {'; '.join(each)}. Diamonds: estimates. Bars: their intervals"
    for made, count in Counter(e.bar.made for e in drawn).most_common():
        of_these = ", ".join(e.row.rule for e in drawn if e.bar.made == made)
        caption += f", {made}" + ("" if count == len(drawn) else f" ({of_these})")
    caption += ". Solid line: zero."
    if any(marks.marked(e.row.threshold, e.row.limits) for e in drawn):
        caption += (
            " Short upright ticks: registered thresholds, and bounds that a rule asks its interval to keep."
        )
    asked = [f"{e.row.rule} {e.row.limits.words}" for e in drawn if e.row.limits]
    if asked:
        caption += f" Intervals are to lie: {'; '.join(asked)}."
    others = [row.rule for row in rows if row.mean is not None and row.bar and row.unit != unit]
    if others:
        caption += f" In another unit, and not drawn: {marks.listed(others)}."
    lacking = [row.rule for row in rows if row.mean is None or row.bar is None]
    if lacking:
        caption += f" Without an interval, and not drawn: {marks.listed(lacking)}."
    return caption
