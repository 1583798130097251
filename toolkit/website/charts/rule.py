"""Charts of a rule: its estimate by seed, its learning curves, the members of a series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Missing, Series, rounded
from toolkit.website.charts.drawing import Chart, draw, drawn_once
from toolkit.website.charts.theme import ACCENT, FAINT, INK, LIMIT, colours

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from toolkit.decisions.curves import CurvePoint
    from toolkit.decisions.decision import Decision

COARSE = 0.05  # below it, ticks lie closer than two digits can tell apart


@drawn_once
def learning_curves(points: tuple[CurvePoint, ...], title: str) -> Chart | None:
    """Draw true success over training steps: a thin line a seed, a bold one an arm's mean.

    Args:
        points: points of the curves; a replication is drawn dashed.
        title: heading of the chart.
    """
    import altair as alt

    if not points:
        return None
    values = [
        {"arm": p.arm, "series": p.series, "step": p.step, "success": rounded(p.success)} for p in points
    ]
    colour_of = colours(point.arm for point in points)
    arms = list(colour_of)
    steps = sorted({point.step for point in points})
    colour = alt.Color(
        "arm:N",
        title=None,
        scale=alt.Scale(domain=arms, range=list(colour_of.values())),
        legend=alt.Legend(symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3),
    )

    def lines(series: Callable[[str], bool], **mark: Any) -> Any:
        chosen = [value for value in values if series(str(value["series"]))]
        return (
            alt.Chart(alt.Data(values=chosen))
            .mark_line(**mark)
            .encode(
                x=alt.X("step:Q", title="training step", axis=alt.Axis(values=steps, grid=False)),
                y=alt.Y(
                    "success:Q",
                    title="true success",
                    axis=alt.Axis(format=".0%"),
                    scale=alt.Scale(zero=False),
                ),
                color=colour,
                detail="series:N",
            )
        )

    layers = [
        lines(lambda s: s.startswith("seed"), strokeWidth=1, opacity=0.45),
        lines(lambda s: s == "mean", strokeWidth=3, point=alt.OverlayMarkDef(size=40)),
    ]
    names = {point.series for point in points}
    seeds = len(names - {"mean", "replication"})
    words = f"{title}: true success at steps {steps[0]} to {steps[-1]}, {' and '.join(arms)}; "
    words += f"thin lines are {seeds} seeds" + (", bold lines their means" if "mean" in names else "")
    if "replication" in names:
        layers.append(lines(lambda s: s == "replication", strokeWidth=1.5, strokeDash=[3, 3]))
        words += "; the dashed line is a replication that decides nothing"
    return draw(alt.layer(*layers), title, words + ".", 260)


@drawn_once
def seed_differences(decision: Decision, arms: Sequence[str]) -> Chart | None:
    """Draw a rule's estimate: a dot a seed, the mean, its interval, zero and the registered threshold.

    Args:
        decision: the decision.
        arms: the arms that are compared, first minus second.
    """
    import altair as alt

    estimate = decision.estimate
    if estimate is None or estimate.members is None or isinstance(estimate.mean, Missing):
        return None
    seeds = [
        {"row": f"seed {seed}", "value": rounded(value), "label": f"{rounded(value):+.4f}"}
        for seed, value in estimate.members.items
        if not isinstance(value, Missing)
    ]
    mean = {"row": "mean", "value": rounded(estimate.mean), "label": f"{rounded(estimate.mean):+.4f}"}
    order = [str(seed["row"]) for seed in seeds] + ["mean"]
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False))
    shown = (value for value in (*estimate.members.values, estimate.mean) if not isinstance(value, Missing))
    widest = max(map(abs, shown))
    digits = "+.2f" if widest >= COARSE else "+.3f"
    x = alt.X(
        "value:Q", title=f"{estimate.title} ({estimate.unit})", axis=alt.Axis(format=digits, tickCount=8)
    )
    dots = alt.Chart(alt.Data(values=seeds)).mark_circle(size=90, color=FAINT, opacity=1).encode(x=x, y=y)
    point = alt.Chart(alt.Data(values=[mean])).mark_point(
        shape="diamond", size=150, filled=True, color=ACCENT, opacity=1
    )
    labels = alt.Chart(alt.Data(values=[*seeds, mean])).mark_text(dy=-13).encode(x=x, y=y, text="label:N")
    layers = [_vertical(0, INK, [1, 0])]
    threshold = decision.threshold
    words = f"{decision.rule}: mean {mean['label']}; " + ", ".join(f"{s['row']} {s['label']}" for s in seeds)
    if threshold is not None:
        layers.append(_vertical(rounded(threshold), LIMIT, [5, 4]))
        words += f"; dashed line: registered threshold {rounded(threshold):+g}"
    interval = decision.as_dict()["interval"]
    if isinstance(decision.interval, Interval):
        span = {"row": "mean", "low": interval["low"], "high": interval["high"]}
        layers.append(
            alt.Chart(alt.Data(values=[span]))
            .mark_rule(strokeWidth=3, color=ACCENT, opacity=0.55)
            .encode(x=alt.X("low:Q"), x2="high:Q", y=y)
        )
        ends = f"[{interval['low']:+.4f}, {interval['high']:+.4f}]"
        made = f"{decision.interval.origin} ({decision.interval.method})"
        words += f"; bar: {100 * interval['level']:g}% interval {ends}, {made}"
    layers += [dots, point.encode(x=x, y=y), labels]
    title = " minus ".join(arm.replace("_", " ") for arm in arms)
    title = f"{title[:1].upper()}{title[1:]}, by seed"
    return draw(alt.layer(*layers), title, words + ".", 46 * len(order))


@drawn_once
def members(title: str, unit: str, series: Series[Fraction]) -> Chart | None:
    """Draw the members of a series, a dot each; a ratio against one."""
    import altair as alt

    values = [
        {"member": key.replace("@", " "), "value": rounded(value), "label": f"{float(round(value, 3)):.3f}"}
        for key, value in series.items
        if not isinstance(value, Missing)
    ]
    if not values:
        return None
    order = [str(value["member"]) for value in values]
    y = alt.Y("member:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=220))
    x = alt.X("value:Q", title=unit, scale=alt.Scale(zero=True), axis=alt.Axis(format=".2f", tickCount=6))
    base = alt.Chart(alt.Data(values=values)).encode(x=x, y=y)
    layers = [
        base.mark_circle(size=100, color=ACCENT, opacity=1),
        base.mark_text(dy=-13).encode(text="label:N"),
    ]
    if unit == "ratio":
        layers = [_vertical(1, INK, [5, 4]), base.mark_rule(color=FAINT).encode(x2=alt.datum(1)), *layers]
    words = f"{title}: " + ", ".join(f"{value['member']} {value['label']}" for value in values) + "."
    return draw(alt.layer(*layers), title, words, 42 * len(order))


def _vertical(at: float, colour: str, dash: list[int]) -> Any:
    import altair as alt

    return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=colour, strokeDash=dash).encode(x="at:Q")
