"""A rule's estimate by seed: its members, their mean, its interval, zero and the registered threshold."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from toolkit.decisions.values import rounded
from toolkit.website.charts import marks
from toolkit.website.charts.drawing import WIDTH, Chart, draw
from toolkit.website.charts.theme import ACCENT, FAINT, INK, LIMIT

MOST_ROWS = 8  # more seeds than these share one row
ROW = 44
DOT = 11  # pixels
STRIP = 130
MEAN = "mean"


@dataclass(frozen=True)
class Spread:
    """An estimate and the members that it is the mean of.

    Args:
        title: what is measured.
        unit: its unit.
        arms: the arms compared, first minus second; or the one measured.
        member: what the members are: `seed`, `run`.
        members: (name, value), those without a value left out.
        absent: how many members have no value.
        mean: their mean; None where a member is missing.
        bar: its interval.
        threshold: the registered threshold.
        limits: the bounds that the rule asks the interval to keep; None where it asks for none.
    """

    title: str
    unit: str
    arms: tuple[str, ...]
    member: str
    members: tuple[tuple[str, Fraction], ...]
    absent: int
    mean: Fraction | None
    bar: marks.Bar | None
    threshold: Fraction | None
    limits: marks.Limits | None = None


def seed_differences(spread: Spread) -> Chart | None:
    """Draw an estimate: a dot a member, the mean, its interval, zero and the registered threshold."""
    import altair as alt

    if not spread.members:
        return None
    together = len(spread.members) > MOST_ROWS
    shared = f"{len(spread.members)} {spread.member}s"
    dots = [
        {
            "row": shared if together else f"{spread.member} {name}",
            "member": f"{spread.member} {name}",
            "value": rounded(value),
            "label": marks.signed(rounded(value)),
        }
        for name, value in spread.members
    ]
    order = list(dict.fromkeys(str(dot["row"]) for dot in dots))
    shown = [rounded(value) for _, value in spread.members]
    if spread.mean is not None:
        order.append(MEAN)
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))
    x = alt.X("value:Q", title=_axis(spread), axis=alt.Axis(tickCount=8, labelExpr=marks.signs(shown)))
    layers = [
        marks.vertical(0, INK),
        *(
            marks.vertical(rounded(mark), LIMIT, (5, 4))
            for mark in marks.marked(spread.threshold, spread.limits)
        ),
    ]
    if spread.bar and spread.mean is not None:
        layers.append(_bar(spread.bar, y))
    reach = max(*shown, 0.0) - min(*shown, 0.0)
    offsets = marks.swarm(shown, DOT * reach / WIDTH) if together else [0] * len(dots)
    for offset in sorted(set(offsets)):
        values = [dot for dot, moved in zip(dots, offsets, strict=True) if moved == offset]
        base = alt.Chart(alt.Data(values=values)).encode(x=x, y=y, tooltip=["member:N", "label:N"])
        layers.append(base.mark_circle(size=80, color=FAINT, opacity=1, yOffset=DOT * offset))
    if not together:
        layers.append(base.mark_text(dy=-13).encode(text="label:N"))
    if spread.mean is not None:
        mean = {"row": MEAN, "value": rounded(spread.mean), "label": marks.signed(rounded(spread.mean))}
        point = alt.Chart(alt.Data(values=[mean])).encode(x=x, y=y)
        layers.append(point.mark_point(shape="diamond", size=150, filled=True, color=ACCENT, opacity=1))
        layers.append(point.mark_text(dy=-15, fontWeight="bold").encode(text="label:N"))
    height = STRIP if together else ROW * len(order)
    return draw(alt.layer(*layers), finding(spread), caption(spread), height, subtitle=spread.title)


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
        low, high = (f"{rounded(value):.4g}" for value in (min(values), max(values)))
        title = (
            f"{' '.join(spread.arms).replace('_', ' ') or spread.title}: {low} to {high} over {whole} {each}"
        )
    title += f", {spread.absent} missing" if spread.absent else ""
    if spread.mean is not None:
        title += f"; mean {marks.signed(rounded(spread.mean))}"
    if spread.bar and spread.limits:
        title += f", {spread.bar.name} {'' if spread.limits.kept else 'not '}{spread.limits.words}"
    elif spread.bar:
        inside = "includes" if spread.bar.holds_zero else "excludes"
        title += f", interval {inside} zero"
    return marks.capital(title)


def caption(spread: Spread) -> str:
    """Return the drawing in words."""
    text = ", ".join(
        f"{spread.member} {name} {marks.signed(rounded(value))}" for name, value in spread.members
    )
    text = f"{spread.title}. Dots: {text}."
    if spread.absent:
        text += f" {spread.absent} without a value, so that there is no mean."
    if spread.mean is not None:
        text += f" Diamond: mean {marks.signed(rounded(spread.mean))}."
    if spread.bar:
        text += f" Bar: {spread.bar.words} of the mean, {spread.bar.made}."
    else:
        text += " No interval was registered or can be had for it."
    text += " Solid line: zero."
    bounds = spread.limits.places if spread.limits else ()
    if spread.threshold is not None and spread.threshold not in bounds:
        text += f" Dashed line: registered threshold {marks.plain(rounded(spread.threshold), '+g')}."
    if spread.limits:
        dashed = [marks.plain(rounded(bound)) for bound in bounds if bound]
        text += f" Dashed line{'s' if len(dashed) > 1 else ''}: {marks.listed(dashed)}." if dashed else ""
        text += f" The rule asks for an interval {spread.limits.words}."
    return text


def _axis(spread: Spread) -> str:
    if len(spread.arms) > 1:
        return f"{' minus '.join(arm.replace('_', ' ') for arm in spread.arms[:2])} ({spread.unit})"
    return spread.unit


def _bar(bar: marks.Bar, y: Any) -> Any:
    import altair as alt

    span = {"row": MEAN, "low": float(bar.low), "high": float(bar.high), "interval": bar.words}
    mark = alt.Chart(alt.Data(values=[span])).mark_rule(strokeWidth=4, color=ACCENT, opacity=0.5)
    return mark.encode(x=alt.X("low:Q"), x2="high:Q", y=y, tooltip="interval:N")
