"""The members of a series, a dot each, with their intervals; a ratio against one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.website.charts.drawing import WIDTH, Chart, draw, drawn_once
from toolkit.website.charts.marks import capital, short, vertical
from toolkit.website.charts.theme import ACCENT, FAINT, INK

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW = 26
RATIO = "ratio"


@dataclass(frozen=True)
class Dot:
    """A member.

    Args:
        name: which.
        value: its value.
        low, high: ends of its interval; None where it has none.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def words(self) -> str:
        """The value and its interval."""
        ends = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value:.3f}{ends}"


@drawn_once
def members(title: str, member: str, unit: str, dots: tuple[Dot, ...], interval: str) -> Chart | None:
    """Draw the members of a series.

    Args:
        title: what is measured.
        member: what they are: `checkpoint`, `run`.
        unit: their unit; a `ratio` is drawn against one.
        dots: the members.
        interval: of what level the intervals are, where they come from, and what was resampled; or why there
            are none.
    """
    import altair as alt

    if not dots:
        return None
    values = [
        {"member": d.name, "value": d.value, "low": d.low, "high": d.high, "label": d.words} for d in dots
    ]
    order = [dot.name for dot in dots]
    labels = alt.Axis(ticks=False, domain=False, grid=False, labelLimit=240)
    y = alt.Y("member:N", sort=order, title=None, axis=labels)
    x = alt.X("value:Q", title=unit, scale=alt.Scale(zero=True), axis=alt.Axis(format=".2f", tickCount=6))
    base = alt.Chart(alt.Data(values=values)).encode(y=y, tooltip=["member:N", "label:N"])
    layers = [vertical(1, INK, (5, 4))] if unit == RATIO else []
    spans = [value for value in values if value["low"] is not None]
    if spans:
        span = alt.Chart(alt.Data(values=spans)).mark_rule(strokeWidth=4, color=ACCENT, opacity=0.45)
        layers.append(span.encode(y=y, x=alt.X("low:Q"), x2="high:Q"))
    elif unit == RATIO:
        layers.append(base.mark_rule(color=FAINT).encode(x=x, x2=alt.datum(1)))
    layers.append(base.mark_circle(size=90, color=ACCENT, opacity=1).encode(x=x))
    layers.append(base.mark_text(align="left", dx=10).encode(x=alt.value(WIDTH), text="label:N"))
    said = f"{title}. " + "; ".join(f"{dot.name} {dot.words}" for dot in dots) + f". {capital(interval)}."
    if unit == RATIO:
        said += " Dashed line: 1, where both sides are equal."
    shown = short(title, 160)
    return draw(alt.layer(*layers), finding(member, unit, dots), said, ROW * len(order) + 10, subtitle=shown)


def finding(member: str, unit: str, dots: Sequence[Dot]) -> str:
    """Return what the members show, in words made from them."""
    values, many = [dot.value for dot in dots], f"{member}s" if len(dots) > 1 else member
    if unit != RATIO:
        low, high = min(values), max(values)
        where = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
        return f"{where} over {len(dots)} {many}"
    below = sum(value < 1 for value in values)
    if below in (0, len(dots)):
        side = "below" if below else "not below"
        said = f"{'All ' if len(dots) > 1 else ''}{len(dots)} {many} {side} 1"
        said += f", {min(values):.3f} to {max(values):.3f}" if len(dots) > 1 else ""
    else:
        said = f"{below} of {len(dots)} {many} below 1"
    ended = [dot for dot in dots if dot.low is not None and dot.high is not None]
    across = sum((dot.low or 0) <= 1 <= (dot.high or 0) for dot in ended)
    if ended:
        many = "s reach" if across > 1 else " reaches"
        said += f"; {across or 'no'} interval{many} 1"
    return said
