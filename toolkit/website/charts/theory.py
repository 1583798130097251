"""Charts of the theory: exact values, so that nothing is sampled and no interval is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.website.charts.drawing import Chart, draw
from toolkit.website.charts.theme import ARM_COLOURS, INK, LEFT, RIGHT

EXACT = "Exact values: nothing is sampled, so no interval is drawn."
HEIGHT = 230
DESIGNS = ("independent", "paired")
SIZES = ("#56b4e9", "#0072b2", "#009e73", "#e69f00")  # colours of up to four group sizes


AT_END = {"align": "left", "dx": 6}
ON_TOP = {"align": "center", "dy": -10}
BESIDE = {"align": "left", "dx": 8, "dy": 8}


@dataclass(frozen=True)
class Line:
    """A line, and the point beside which its name stands."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    label: tuple[float, float]
    place: dict[str, Any]


def over_flips(
    what: str, unit: str, size: int, points: tuple[tuple[float, float, float], ...]
) -> Chart | None:
    """Draw a variance over flip rates, a line a design.

    Args:
        what: what varies.
        unit: what the axis says.
        size: rollouts in the group.
        points: flip rate, variance under the independent design, under the paired one.
    """
    verbs = {_compare(paired, independent) for _, independent, paired in points[1:]}
    if len(verbs) == 1:
        title = f"Pairing {verbs.pop()} the variance of the {what} at every flip rate"
    else:
        title = f"Pairing lowers or raises the variance of the {what}, by flip rate"
    last = points[-1]
    lines = [
        Line(name, ARM_COLOURS[name], tuple((p[0], p[i]) for p in points), (last[0], last[i]), AT_END)
        for i, name in enumerate(DESIGNS, 1)
    ]
    caption = (
        f"Even odds of success, {size} rollouts: {unit} by flip rate, a line a design; at "
        f"{last[0]:g} it is {last[1]:.4g} independent and {last[2]:.4g} paired. {EXACT}"
    )
    return draw(_lines(lines, "flip rate q", unit), title, caption, HEIGHT)


def condition_by_success(size: int, points: tuple[tuple[float, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition of the bandit over its success probability.

    Args:
        size: rollouts in the group.
        points: success probability, left side, right side.
    """
    below = [chance for chance, left, right in points if left < right]
    if not below:
        title = "In the bandit pairing never lowers the gradient's variance"
    elif len(below) == len(points):
        title = "In the bandit pairing always lowers the gradient's variance"
    else:
        title = f"In the bandit pairing lowers the gradient's variance only below {max(below):g} success"
    lines = _sides(points)
    caption = (
        f"Both sides of the exact condition for {size} rollouts of the bandit, by success probability: where "
        "L, the mean squared length of the clean gradient, is below R, the score spread of the successes, "
        f"pairing lowers the variance. {EXACT}"
    )
    return draw(_lines(lines, "success probability p", "score²"), title, caption, HEIGHT)


def orthogonal_sides(size: int, points: tuple[tuple[int, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition where scores are orthogonal, by successes in the group.

    Args:
        size: rollouts in the group.
        points: successes, left side, right side, in squared score lengths.
    """
    first = next((k for k, left, right in points if left < right), None)
    title = (
        "With orthogonal scores pairing never helps"
        if first is None
        else f"With orthogonal scores pairing helps from {first} successes on"
    )
    lines = _sides(points)
    caption = (
        f"Both sides of the exact condition for a group of {size} whose scores are orthogonal and of length "
        f"one, by true successes in the group. {EXACT}"
    )
    chart = _lines(lines, "true successes k", "score²", dots=True)
    return draw(chart, title, caption, HEIGHT)


def spurious_rates(
    shown: float, curves: tuple[tuple[int, tuple[tuple[float, float], ...]], ...]
) -> Chart | None:
    """Draw how often flips alone make an all-correct group's rewards vary, a line a group size.

    Args:
        shown: the flip rate that the words name.
        curves: group size, and its (flip rate, probability) points.
    """
    import altair as alt

    named = {size: dict(points)[shown] for size, points in curves}
    words = ", ".join(f"{rate:.0%} of groups of {size}" for size, rate in named.items())
    colours = SIZES[: len(curves)]
    lines = [
        Line(f"G = {size}", colour, points, (shown, named[size]), BESIDE)
        for (size, points), colour in zip(curves, colours, strict=True)
    ]
    paired = alt.Chart(alt.Data(values=[{"at": 0}])).mark_rule(color=INK, strokeDash=[5, 4]).encode(y="at:Q")
    label = (
        alt.Chart(alt.Data(values=[{"x": curves[0][1][-1][0], "y": 0, "label": "paired: never"}]))
        .mark_text(align="right", dy=-8, color=INK)
        .encode(x="x:Q", y="y:Q", text="label:N")
    )
    chart = alt.layer(_lines(lines, "flip rate q", "probability", form=".0%"), paired, label)
    middle = named[sorted(named)[len(named) // 2 - 1]]
    size = next(size for size, rate in named.items() if rate == middle)
    title = (
        f"At a flip rate of {shown:g}, {middle:.0%} of all-correct groups of {size} look as if they differed"
    )
    caption = (
        "Probability that independent flips make the rewards of a group vary although every rollout "
        f"succeeded, by flip rate, a line a group size: at {shown:g}, {words}. Under the paired design it is "
        f"zero (dashed). {EXACT}"
    )
    return draw(chart, title, caption, HEIGHT)


def drift_ratios(
    shown: float, curves: tuple[tuple[float, tuple[tuple[float, float], ...]], ...]
) -> Chart | None:
    """Draw the bandit's drift under Adam, paired over independent, by groups in a step, a line a flip rate.

    Args:
        shown: the flip rate that the title names.
        curves: flip rate, and its (groups in a step, ratio) points.
    """
    points = dict(curves)[shown]
    (few, first), (many, last) = points[0], points[-1]
    title = (
        f"Pairing slows Adam in the bandit by {1 - first:.1%} with {few:g} group a step, by {1 - last:.1%} "
        f"with {many:g}"
    )
    lines = [
        Line(f"q = {rate:g}", colour, line, line[len(line) // 3], BESIDE)
        for (rate, line), colour in zip(curves, SIZES[1 : 1 + len(curves)], strict=True)
    ]
    caption = (
        "Drift of the bandit under Adam, paired over independent, by groups in a step, a line a flip rate: "
        f"at {shown:g}, {first:.4f} with {few:g} and {last:.4f} with {many:g}. A plain gradient step has "
        f"ratio 1. {EXACT}"
    )
    axes = ("groups in a step B", "drift, paired / independent")
    return draw(_lines(lines, *axes, dots=True, from_zero=False), title, caption, HEIGHT)


def _sides(points: Sequence[tuple[float, float, float]]) -> list[Line]:
    """Return the lines of both sides of the condition, named at their highest points."""
    lines = []
    for i, (name, colour) in enumerate(
        (("L, size of the clean gradient", LEFT), ("R, score spread", RIGHT)), 1
    ):
        line = tuple((float(p[0]), p[i]) for p in points)
        top = max(line, key=lambda point: point[1])
        lines.append(Line(name, colour, line, top, AT_END if top == line[-1] else ON_TOP))
    return lines


def _compare(paired: float, independent: float) -> str:
    return "lowers" if paired < independent else "raises" if paired > independent else "leaves"


def _lines(
    lines: Sequence[Line],
    x_title: str,
    y_title: str,
    *,
    dots: bool = False,
    form: str = "~g",
    from_zero: bool = True,
) -> Any:
    """Return lines, each with its name where it says."""
    import altair as alt

    values = [{"line": line.name, "x": x, "y": y} for line in lines for x, y in line.points]
    scale = alt.Scale(domain=[line.name for line in lines], range=[line.colour for line in lines])
    colour = alt.Color("line:N", scale=scale, legend=None)
    x = alt.X("x:Q", title=x_title, axis=alt.Axis(grid=False, tickCount=8), scale=alt.Scale(nice=False))
    y = alt.Y("y:Q", title=y_title, axis=alt.Axis(tickCount=5, format=form), scale=alt.Scale(zero=from_zero))
    point: Any = alt.OverlayMarkDef(size=50) if dots else alt.Undefined
    layers = [
        alt.Chart(alt.Data(values=values))
        .mark_line(strokeWidth=2.5, point=point)
        .encode(x=x, y=y, color=colour)
    ]
    for line in lines:
        end = {"x": line.label[0], "y": line.label[1]}
        layers.append(
            alt.Chart(alt.Data(values=[end]))
            .mark_text(fontWeight="bold", color=line.colour, text=line.name, **line.place)
            .encode(x="x:Q", y="y:Q")
        )
    return alt.layer(*layers)
