"""Every estimate of a study with its registered interval, a row a rule."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.values import rounded
from toolkit.website.charts.drawing import WIDTH, Chart, draw
from toolkit.website.charts.marks import Bar, Limits, listed, signed, signs, vertical
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
    bar: Bar | None
    threshold: Fraction | None
    limits: Limits | None = None

    @property
    def marked(self) -> tuple[Fraction, ...]:
        """Where its ticks stand: at the threshold and at bounds; zero has a line of its own."""
        threshold = () if self.threshold is None else (self.threshold,)
        bounds = () if self.limits is None else self.limits.places
        return tuple(place for place in dict.fromkeys((*threshold, *bounds)) if place)


@dataclass(frozen=True)
class _Whole:
    row: ForestRow
    mean: Fraction
    bar: Bar

    @property
    def words(self) -> str:
        return f"{signed(self.mean)}, {self.bar.words}"


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
    unit = Counter(one.row.unit for one in whole).most_common(1)[0][0]
    drawn = [one for one in whole if one.row.unit == unit]
    values = [
        {
            "rule": one.row.rule,
            "what": f"{one.row.rule}: {one.row.title}",
            "value": rounded(one.mean),
            "low": float(one.bar.low),
            "high": float(one.bar.high),
            "verdict": one.row.verdict.replace("_", " "),
            "words": one.words,
        }
        for one in drawn
    ]
    order = [one.row.rule for one in drawn]
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelFontWeight="bold")
    y = alt.Y("rule:N", sort=order, title=None, axis=axis)
    ends = [float(end) for one in drawn for end in (one.bar.low, one.bar.high)]
    x = alt.X("low:Q", title=f"estimate ({unit})", axis=alt.Axis(tickCount=8, labelExpr=signs(ends)))
    base = alt.Chart(alt.Data(values=values)).encode(y=y, tooltip=["what:N", "words:N"])
    layers = [
        vertical(0, INK),
        base.mark_rule(strokeWidth=4, color=ACCENT, opacity=0.5).encode(x=x, x2="high:Q"),
        base.mark_point(shape="diamond", size=110, filled=True, color=ACCENT, opacity=1).encode(x="value:Q"),
        base.mark_text(align="left", dx=10, fontSize=12).encode(x=alt.value(WIDTH), text="verdict:N"),
    ]
    marked = [{"rule": one.row.rule, "at": rounded(place)} for one in drawn for place in one.row.marked]
    if marked:
        tick = alt.Chart(alt.Data(values=marked)).mark_tick(
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
    across = sum(one.bar.holds_zero for one in drawn)
    rules = f"{len(drawn)} rule{'s' if len(drawn) > 1 else ''}"
    if across == len(drawn):
        said = f"The interval of {'each of ' if len(drawn) > 1 else ''}{rules} includes zero"
    else:
        said = f"The intervals of {across or 'none'} of {rules} include zero"
    bounded = [(one.row.rule, one.row.limits) for one in drawn if one.row.limits]
    if len(bounded) == 1:
        ((rule, limits),) = bounded
        said += f"; that of {rule} is {'' if limits.kept else 'not '}{limits.words}"
    elif bounded:
        kept = sum(limits.kept for _, limits in bounded)
        said += f"; {kept or 'none'} of {len(bounded)} keep{'s' * (kept == 1)} registered bounds"
    return said


def _caption(rows: Sequence[ForestRow], drawn: Sequence[_Whole], study: str, unit: str) -> str:
    each = (f"{one.row.rule} {one.row.verdict.replace('_', ' ')}, {one.words}" for one in drawn)
    said = f"Study {study}. {'; '.join(each)}. Diamonds: estimates. Bars: their intervals"
    for made, count in Counter(one.bar.made for one in drawn).most_common():
        of_these = ", ".join(one.row.rule for one in drawn if one.bar.made == made)
        said += f", {made}" + ("" if count == len(drawn) else f" ({of_these})")
    said += ". Solid line: zero."
    if any(one.row.marked for one in drawn):
        said += (
            " Short upright ticks: registered thresholds, and bounds that a rule asks its interval to keep."
        )
    asked = [f"{one.row.rule} {one.row.limits.words}" for one in drawn if one.row.limits]
    if asked:
        said += f" Intervals are to lie: {'; '.join(asked)}."
    others = [row.rule for row in rows if row.mean is not None and row.bar and row.unit != unit]
    if others:
        said += f" In another unit, and not drawn: {listed(others)}."
    lacking = [row.rule for row in rows if row.mean is None or row.bar is None]
    if lacking:
        said += f" Without an interval, and not drawn: {listed(lacking)}."
    return said
