"""Charts of the gradient probe: ratios along training, and both sides of the condition task by task."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from toolkit.website.charts import marks
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.points import Dot, Lane, Reference, measured, points
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.scatter import Panel, Spot, scatter
from toolkit.website.charts.theme import ACCENT, OTHERS

COLUMNS = ("trajectory", "step", "ratio", "low", "high")


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


def ratios(what: str, ratios: tuple[Ratio, ...], interval: str) -> Chart | None:
    """Draw a ratio along training against one, a row a checkpoint and a colour a trajectory.

    Args:
        what: which ratio.
        ratios: the ratios.
        interval: of what level the intervals are, where they come from, and what was resampled; or why there
            are none.
    """
    if not ratios:
        return None
    trajectories = dict.fromkeys(ratio.trajectory for ratio in ratios)
    colour_of = dict(zip(trajectories, cycle(OTHERS), strict=False))
    ordered = sorted(ratios, key=lambda ratio: (list(trajectories).index(ratio.trajectory), ratio.step))
    lanes = [
        Lane(
            f"{marks.short(r.trajectory)}@{r.step}",
            (_dot(r, colour_of[r.trajectory]),),
            marks.with_interval(r.value, r.low, r.high),
        )
        for r in ordered
    ]
    caption = f"{marks.capital(interval)}. Dashed line: 1, where pairing changes nothing."
    draw = points(lanes, [Reference(1, "even", "1")], Axis("ratio", is_ratio=True))
    return drawn(_finding(ratios), caption, COLUMNS, draw, about=what)


def _dot(of: Ratio, look: str) -> Dot:
    what = f"{of.trajectory} at step {of.step}: ratio"
    return measured(what, (of.trajectory, of.step), of.value, (of.low, of.high), look)


def condition_by_task(where: str, unit: str, sides: tuple[tuple[str, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition, a dot a task.

    Args:
        where: the checkpoint.
        unit: unit of both sides.
        sides: (task, L, R).
    """
    if not sides:
        return None
    spots = tuple(
        Spot(r, left, f"task {task}: L {_five(left)}, R {_five(r)} ({unit})", ((task, left, r),), ACCENT)
        for task, left, r in sides
    )
    below = sum(left < right for _, left, right in sides)
    equal_ones = sum(left == right for _, left, right in sides)
    title = f"L below R for {below} of {len(sides)} tasks"
    title += f", equal for {equal_ones}" if equal_ones else ""
    caption = (
        f"Both sides of the exact condition at {where}, a dot a task: L upwards, R to the right. Dashed "
        "line: both equal; below it pairing lowers the trace. Single tasks have no interval; that of the "
        "ratio over all tasks resamples tasks."
    )
    draw = scatter([Panel(Axis(f"R ({unit})"), "", spots)], Axis(f"L ({unit})"))
    about = f"{where}, clean rollouts, task by task"
    return drawn(title, caption, ("task", "L", "R"), draw, about=about)


def _five(value: float) -> str:
    """Return a number with five digits, in full."""
    return f"{float(f'{value:.5g}'):g}"


def _finding(points: Sequence[Ratio]) -> str:
    below = sum(point.value < 1 for point in points)
    values = [point.value for point in points]
    title = f"Below 1 at {below} of {len(points)} checkpoints, {min(values):.3f} to {max(values):.3f}"
    return title + marks.reaching_one([(point.low, point.high) for point in points])
