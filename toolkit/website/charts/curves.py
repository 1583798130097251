"""Learning curves: a thin line a seed, a bold one an arm's mean, named where it ends."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from toolkit.decisions.measure import CurvePoint
from toolkit.decisions.values import rounded
from toolkit.website.charts.drawing import HALF, WIDTH, Chart, draw
from toolkit.website.charts.marks import apart, capital, listed
from toolkit.website.charts.theme import colours

HEIGHT = 270
LINE_OF_TEXT = 15  # pixels
CROWD = 6  # more lines than these an arm are drawn fainter
MEAN, REPLICATION = "mean", "replication"


def learning_curves(
    points: tuple[CurvePoint, ...],
    what: str,
    measure: str,
    step: str = "step",
    within: tuple[Fraction, Fraction] | None = None,
) -> Chart | None:
    """Draw a rate over steps.

    Args:
        points: points of the curves; a replication is drawn dashed.
        what: what the curves are of.
        measure: the rate, as its register calls it.
        step: what the steps are.
        within: the smallest and largest rate of every chart that stands beside this one; None where it stands
            alone, and has the whole width.
    """
    import altair as alt

    if not points:
        return None
    values = [
        {
            "arm": p.arm,
            "series": p.series,
            "line": f"{p.arm} {p.series}",
            "step": p.step,
            "rate": rounded(p.success),
        }
        for p in points
    ]
    colour_of = colours(point.arm for point in points)
    steps = sorted({point.step for point in points})
    rates = [float(rate) for rate in (*(point.success for point in points), *(within or ()))]
    room = (max(rates) - min(rates) or 0.1) / 20
    scale = alt.Scale(domain=[max(0.0, min(rates) - room), min(1.0, max(rates) + room)], nice=False)
    x = alt.X("step:Q", title=step, axis=alt.Axis(values=steps, grid=False))
    y = alt.Y("rate:Q", title=measure, axis=alt.Axis(format=".0%", tickCount=6), scale=scale)
    colour = alt.Color("arm:N", scale=_scale(colour_of), legend=None)

    def drawn(chosen: Callable[[str], bool], **mark: Any) -> Any:
        data = alt.Data(values=[value for value in values if chosen(str(value["series"]))])
        tooltip = ["line:N", "step:Q", alt.Tooltip("rate:Q", format=".4f")]
        return (
            alt.Chart(data)
            .mark_line(**mark)
            .encode(x=x, y=y, color=colour, detail="series:N", tooltip=tooltip)
        )

    seeds = {p.series for p in points} - {MEAN, REPLICATION}
    faint = 0.4 if len(seeds) <= CROWD else 0.22
    layers = [
        drawn(lambda s: s not in (MEAN, REPLICATION), strokeWidth=1, opacity=faint),
        drawn(lambda s: s == MEAN, strokeWidth=3, point=alt.OverlayMarkDef(size=40)),
    ]
    if any(p.series == REPLICATION for p in points):
        layers.append(drawn(lambda s: s == REPLICATION, strokeWidth=1.5, strokeDash=[3, 3]))
    ends = _ends(points, (scale.domain[1] - scale.domain[0]) * LINE_OF_TEXT / HEIGHT)
    names = alt.Chart(alt.Data(values=ends)).mark_text(align="left", dx=9, fontWeight="bold", fontSize=12)
    # The labels stand where they do not overlap; their lines end close by and have their colour.
    layers.append(names.encode(x="step:Q", y=alt.Y("place:Q", scale=scale), text="label:N", color=colour))
    return draw(
        alt.layer(*layers),
        finding(points),
        caption(points, what, measure),
        HEIGHT,
        subtitle=f"{what}: {measure}",
        width=HALF if within else WIDTH,
    )


def finding(points: Sequence[CurvePoint]) -> str:
    """Return what the means show, in words made from them."""
    means = {(p.arm, p.step): p.success for p in points if p.series == MEAN}
    arms = [arm for arm in colours(p.arm for p in points) if any(arm == a for a, _ in means)]
    names = [arm.replace("_", " ") for arm in arms]
    if len(arms) == 2:  # noqa: PLR2004 - two can be compared step by step
        shared = [step for arm, step in means if arm == arms[0] and (arms[1], step) in means]
        above = sum(means[arms[0], step] > means[arms[1], step] for step in shared)
        equal = sum(means[arms[0], step] == means[arms[1], step] for step in shared)
        ties = f", equal at {equal}" if equal else ""
        return capital(f"{names[0]} above {names[1]} at {above} of {len(shared)} steps{ties}, on average")
    if arms:
        last = max(step for _, step in means)
        ends = [f"{name} {float(means[arm, last]):.1%}" for arm, name in zip(arms, names, strict=True)]
        return capital(f"{listed(ends)} at step {last}, on average")
    lacking = listed(sorted({p.arm.replace("_", " ") for p in points}))
    return capital(f"{lacking}: no mean, for runs are missing")


def caption(points: Sequence[CurvePoint], what: str, measure: str) -> str:
    """Return the drawing in words."""
    arms = [arm.replace("_", " ") for arm in colours(point.arm for point in points)]
    steps = sorted({point.step for point in points})
    text = f"{what}: {measure}, steps {steps[0]} to {steps[-1]}, {listed(arms)}. "
    names = {point.series for point in points}
    text += f"Thin lines are {_seeds(points)} seeds" + (", bold lines their means" if MEAN in names else "")
    if REPLICATION in names:
        text += "; the dashed line is a replication that decides nothing"
    means = {(p.arm, p.step): float(p.success) for p in points if p.series == MEAN}
    text += ". " + " ".join(
        f"Mean of {arm.replace('_', ' ')}: "
        + ", ".join(f"{means[arm, step]:.1%} at {step}" for step in steps if (arm, step) in means)
        + "."
        for arm in dict.fromkeys(arm for arm, _ in means)
    )
    return f"{text.strip()} Single steps have no interval: none is registered for them."


def _seeds(points: Sequence[CurvePoint]) -> str:
    """Return how many seeds an arm has, in words."""
    held: dict[str, set[str]] = {point.arm: set() for point in points}
    for point in points:
        if point.series not in (MEAN, REPLICATION):
            held[point.arm].add(point.series)
    counts = sorted({len(series) for series in held.values()})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _ends(points: Sequence[CurvePoint], gap: float) -> list[dict[str, Any]]:
    """Return the name of every arm where its mean ends, or its first line where it has no mean."""
    last_of = {}
    for arm in colours(point.arm for point in points):
        of_arm = [p for p in points if p.arm == arm]
        chosen = [p for p in of_arm if p.series == MEAN] or of_arm
        last = max(chosen, key=lambda p: p.step)
        last_of[arm] = last
    places = apart([float(point.success) for point in last_of.values()], gap)
    return [
        {
            "arm": arm,
            "step": point.step,
            "place": height,
            "label": f"{arm.replace('_', ' ')} {float(point.success):.1%}",
        }
        for (arm, point), height in zip(last_of.items(), places, strict=True)
    ]


def _scale(colour_of: dict[str, str]) -> Any:
    import altair as alt

    return alt.Scale(domain=list(colour_of), range=list(colour_of.values()))
