"""Every estimate of a study with its registered interval, a row a rule."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.values import rounded
from toolkit.website.charts import marks
from toolkit.website.charts.drawing import WIDTH, Chart, draw
from toolkit.website.charts.theme import ACCENT, INK, LIMIT

ROW = 30


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


def forest(rows: tuple[ForestRow, ...], study: str) -> Chart | None:
    """Draw the estimates of a study's rules with their intervals; None where no rule has one.

    Args:
        rows: the rules; those without an interval, or in another unit than most, are named in the caption.
        study: the study's name.
    """
    import altair as alt

    whole = [_Whole(row, row.mean, row.bar) for row in rows if row.mean is not None and row.bar is not None]
    if not whole:
        return None
    unit = Counter(e.row.unit for e in whole).most_common(1)[0][0]
    drawn = [e for e in whole if e.row.unit == unit]
    values = [
        {
            "rule": e.row.rule,
            "what": f"{e.row.rule}: {e.row.title}",
            "value": rounded(e.mean),
            "low": float(e.bar.low),
            "high": float(e.bar.high),
            "verdict": e.row.verdict.replace("_", " "),
            "words": e.words,
        }
        for e in drawn
    ]
    order = [e.row.rule for e in drawn]
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelFontWeight="bold")
    y = alt.Y("rule:N", sort=order, title=None, axis=axis)
    ends = [float(end) for e in drawn for end in (e.bar.low, e.bar.high)]
    x = alt.X("low:Q", title=f"estimate ({unit})", axis=alt.Axis(tickCount=8, labelExpr=marks.signs(ends)))
    base = alt.Chart(alt.Data(values=values)).encode(y=y, tooltip=["what:N", "words:N"])
    layers = [
        marks.vertical(0, INK),
        base.mark_rule(strokeWidth=4, color=ACCENT, opacity=0.5).encode(x=x, x2="high:Q"),
        base.mark_point(shape="diamond", size=110, filled=True, color=ACCENT, opacity=1).encode(x="value:Q"),
        base.mark_text(align="left", dx=10, fontSize=12).encode(x=alt.value(WIDTH), text="verdict:N"),
    ]
    ticks = [
        {"rule": e.row.rule, "at": rounded(mark)}
        for e in drawn
        for mark in marks.marked(e.row.threshold, e.row.limits)
    ]
    if ticks:
        tick = alt.Chart(alt.Data(values=ticks)).mark_tick(
            color=LIMIT, thickness=2, height=18, orient="vertical"
        )
        layers.append(tick.encode(x="at:Q", y=y))
    return draw(
        alt.layer(*layers),
        _finding(drawn),
        _caption(rows, drawn, study, unit),
        ROW * len(drawn),
        subtitle=f"Study {study}: every registered interval, and the verdict of its rule",
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
