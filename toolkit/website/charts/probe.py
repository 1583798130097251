"""Charts of the gradient probe: ratios along training, and both sides of the condition task by task."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from toolkit.website.charts import marks
from toolkit.website.charts.drawing import HALF, WIDTH, Chart, draw
from toolkit.website.charts.theme import ACCENT, INK, OTHERS

HEIGHT = 260
LINE_OF_TEXT = 14  # pixels
SQUARE = 320
SAID = 12  # points that a caption lists one by one


@dataclass(frozen=True)
class Ratio:
    """A ratio at a checkpoint.

    Args:
        trajectory, step: the checkpoint.
        value: the ratio.
        low, high: ends of its interval; None where it has none.
    """

    trajectory: str
    step: int
    value: float
    low: float | None
    high: float | None

    @property
    def words(self) -> str:
        """The ratio and its interval."""
        return f"{self.trajectory}@{self.step} {marks.with_interval(self.value, self.low, self.high)}"


def ratios(what: str, points: tuple[Ratio, ...], interval: str, *, half: bool = False) -> Chart | None:
    """Draw a ratio along training against one, a colour a trajectory.

    Args:
        what: which ratio.
        points: the ratios.
        interval: of what level the intervals are, where they come from, and what was resampled; or why there
            are none.
        half: it stands beside another drawing, and has half the room.
    """
    import altair as alt

    if not points:
        return None
    width = HALF if half else WIDTH
    trajectories = list(dict.fromkeys(point.trajectory for point in points))
    colour_of = dict(zip(trajectories, cycle(OTHERS), strict=False))
    steps = sorted({point.step for point in points})
    places = marks.beside([steps.index(point.step) for point in points])
    values = [
        {
            "trajectory": p.trajectory,
            "at": at,
            "value": p.value,
            "low": p.low,
            "high": p.high,
            "label": p.words,
        }
        for p, at in zip(points, places, strict=True)
    ]
    top = max([1.0, *(p.value for p in points), *(p.high for p in points if p.high is not None)]) * 1.04
    scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("value:Q", title="ratio", scale=scale, axis=alt.Axis(format=".1f", tickCount=6))
    equal = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color=INK, strokeDash=[5, 4]).encode(y="one:Q")
    dots, colour = marks.about_steps(values, steps, y, "trajectory", colour_of)
    layers = [equal, *dots]
    layers += _names(points, steps, top, scale, colour, width=width)
    caption = _caption(what, points, interval)
    return draw(alt.layer(*layers), _finding(points), caption, HEIGHT, subtitle=what, width=width)


def condition_by_task(where: str, unit: str, sides: tuple[tuple[str, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition, a dot a task.

    Args:
        where: the checkpoint.
        unit: unit of both sides.
        sides: (task, L, R).
    """
    import altair as alt

    if not sides:
        return None
    values = [{"task": task, "left": left, "right": right} for task, left, right in sides]
    reach = max(max(left, right) for _, left, right in sides) or 1.0
    scale = alt.Scale(domain=[0, reach * 1.04], nice=False)
    equal = alt.Chart(alt.Data(values=[{"at": 0, "to": 0}, {"at": reach, "to": reach}]))
    axis = alt.Axis(format=".2~g", tickCount=6)
    dots = alt.Chart(alt.Data(values=values)).mark_circle(size=55, color=ACCENT, opacity=0.6)
    layers = [
        equal.mark_line(color=INK, strokeDash=[5, 4], strokeWidth=1).encode(
            x=alt.X("at:Q", scale=scale), y=alt.Y("to:Q", scale=scale)
        ),
        dots.encode(
            x=alt.X("right:Q", title=f"R ({unit})", scale=scale, axis=axis),
            y=alt.Y("left:Q", title=f"L ({unit})", scale=scale, axis=axis),
            tooltip=["task:N", "left:Q", "right:Q"],
        ),
    ]
    below = sum(left < right for _, left, right in sides)
    equal_ones = sum(left == right for _, left, right in sides)
    title = f"L below R for {below} of {len(sides)} tasks"
    title += f", equal for {equal_ones}" if equal_ones else ""
    caption = (
        f"Both sides of the exact condition at {where}, a dot a task: L upwards, R to the right. Dashed "
        f"line: both equal; below it pairing lowers the trace. {title}. Single tasks have no interval; that "
        "of the ratio over all tasks resamples tasks."
    )
    return draw(alt.layer(*layers), title, caption, SQUARE, subtitle=f"{where}, clean rollouts, task by task")


def _names(
    points: Sequence[Ratio], steps: Sequence[int], top: float, scale: Any, colour: Any, *, width: int
) -> list[Any]:
    """Return the name of every trajectory where it ends: beside the drawing, or above its last point."""
    import altair as alt

    last = {point.trajectory: point for point in sorted(points, key=lambda p: p.step)}
    ended = [point for point in last.values() if point.step == steps[-1]]
    places = marks.apart([point.value for point in ended], top * LINE_OF_TEXT / HEIGHT)
    ends = [
        {"trajectory": point.trajectory, "name": marks.short(point.trajectory), "place": height}
        for point, height in zip(ended, places, strict=True)
    ]
    above = [
        {
            "trajectory": p.trajectory,
            "name": marks.short(p.trajectory),
            "at": steps.index(p.step),
            "place": p.value if p.high is None else p.high,
        }
        for p in last.values()
        if p not in ended
    ]
    y = alt.Y("place:Q", scale=scale)
    right = alt.Chart(alt.Data(values=ends)).mark_text(align="left", dx=8, fontWeight="bold")
    over = alt.Chart(alt.Data(values=above)).mark_text(dy=-10, fontWeight="bold")
    layers = [right.encode(x=alt.value(width), y=y, text="name:N", color=colour)]
    return [*layers, over.encode(x="at:Q", y=y, text="name:N", color=colour)] if above else layers


def _caption(what: str, points: Sequence[Ratio], interval: str) -> str:
    if len(points) <= SAID:
        each = "; ".join(point.words for point in points)
    else:
        of: dict[str, list[Ratio]] = {}
        for point in points:
            of.setdefault(point.trajectory, []).append(point)
        each = "; ".join(
            f"{name}, {len(held)} checkpoint{'s' if len(held) > 1 else ''}, "
            f"{min(p.value for p in held):.3f} to {max(p.value for p in held):.3f}"
            for name, held in of.items()
        )
        each += " (each in the table)"
    return f"{what}. {each}. {marks.capital(interval)}. Dashed line: 1, where pairing changes nothing."


def _finding(points: Sequence[Ratio]) -> str:
    below = sum(point.value < 1 for point in points)
    values = [point.value for point in points]
    title = f"Below 1 at {below} of {len(points)} checkpoints, {min(values):.3f} to {max(values):.3f}"
    return title + marks.reaching_one([(point.low, point.high) for point in points])
