"""Chart of a run: true success over training steps, a line a set; sets played once are points."""

from itertools import cycle

from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.lines import Frame, Line, Spot, lines
from toolkit.website.charts.marks import short
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import OTHERS

TOLD = 3
FEW = 3
"""Sets up to which a drawing as wide as a phone shows all that there is."""
COLUMNS = ("set", "step", "successes", "episodes")
SHAPES = ("circle", "square", "triangle", "diamond")  # after all colours, the next shape

Point = tuple[str, int, int, int]
"""(set, step, successes, episodes)."""


def success_by_step(points: tuple[Point, ...], run: str) -> Chart | None:
    """Draw a run's true success on each set that it played several times; sets played once are dots.

    Args:
        points: counts by set and step.
        run: what it is called.
    """
    if not points:
        return None
    sets = {name: [p for p in points if p[0] == name] for name in dict.fromkeys(p[0] for p in points)}
    looks = zip(sets, cycle((look, shape) for shape in SHAPES for look in OTHERS), strict=False)
    held = [
        Line(
            f"{short(name, 30)} {_rate(sets[name][-1]):.0%}",
            tuple(_spot(point) for point in sets[name]),
            look,
            shape=shape,
        )
        for name, (look, shape) in looks
    ]
    steps = tuple(sorted({float(point[1]) for point in points}))
    frame = Frame(Axis("step"), Axis("true success", "percent"), steps, bounds=(0, 1))
    once = sum(len(line) == 1 for line in sets.values())
    alone = "Sets played once are single points. " if 0 < once < len(sets) else ""
    caption = f"True success of {run}. {alone}One run's own counts: no interval is drawn."
    return drawn(_finding(sets), caption, COLUMNS, lines(held, frame), small=len(sets) <= FEW)


def _rate(point: Point) -> float:
    return point[2] / point[3]


def _spot(point: Point) -> Spot:
    name, step, successes, episodes = point
    says = f"{name}, step {step}: {successes} of {episodes}, {_rate(point):.1%}"
    return Spot(step, _rate(point), says, (point,))


def _finding(lines: dict[str, list[Point]]) -> str:
    """Return in words how the longest lines went; single points where there is no line."""
    longest = sorted(lines.items(), key=lambda item: -len(item[1]))
    told = [item for item in longest if len(item[1]) == len(longest[0][1])][:TOLD]
    first, last = told[0][1][0][1], told[0][1][-1][1]
    when = f"Steps {first} to {last}" if first != last else f"Step {last}"
    return f"{when}: " + ", ".join(f"{name} {_went(line)}" for name, line in told)


def _went(line: list[Point]) -> str:
    start, *_, end = (f"{successes / episodes:.0%}" for _, _, successes, episodes in (line[0], *line))
    return end if len(line) == 1 else f"{start} to {end}"
