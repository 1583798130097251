"""Chart of a run: true success over training steps, a line a set, and a column of sets played once."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from toolkit.website.charts.drawing import WIDTH, Chart, drawn, heading, specified
from toolkit.website.charts.marks import held, short
from toolkit.website.charts.theme import OTHERS

HEIGHT = 240
LINE_OF_TEXT = 15  # pixels
TICKS = 6
TOLD = 3
# Pixels from left to right: the lines, their names, the column of sets played once, and its names.
EDGE = 12
LINES = 395
LEADER = 22  # from a point to its name
COLUMN = 600
SHAPES = ("circle", "square", "triangle-up", "diamond")  # after all colours, the next shape

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
    lines = {name: [p for p in points if p[0] == name] for name in dict.fromkeys(p[0] for p in points)}
    once = tuple(name for name, line in lines.items() if len(line) == 1)
    steps = tuple(sorted({p[1] for name, line in lines.items() if name not in once for p in line}))
    rates = [successes / episodes for _, _, successes, episodes in points]
    room = (max(rates) - min(rates) or 0.1) / 20
    domain = [max(0.0, min(rates) - room), min(1.0, max(rates) + room)]
    values: list[dict[str, Any]] = [
        {
            "set": name,
            "at": _column(steps) if name in once else _at(step, steps),
            "step": step,
            "success": successes / episodes,
            "counts": f"{successes} of {episodes}",
        }
        for name, step, successes, episodes in points
    ]
    names = [
        *_names([name for name in lines if name not in once], values, domain),
        *_names(once, values, domain),
    ]
    title = _finding(lines)
    when = tuple(sorted({lines[name][0][1] for name in once}))
    specification = json.loads(_form(tuple(lines), steps, when))
    specification["title"] = heading(title)
    for layer, held_here in zip(specification["layer"], (names, values, values, names), strict=True):
        layer["data"]["values"] = held_here
        layer["encoding"]["y"].setdefault("scale", {}).update(domain=domain, nice=False)
    return drawn(specification, title, _caption(lines, run, once))


@lru_cache(maxsize=256)
def _form(sets: tuple[str, ...], steps: tuple[int, ...], once: tuple[int, ...]) -> str:
    """Return the specification of a chart of these sets and steps, without its rows and its title.

    A study can have hundreds of runs, whose charts differ by these alone; Altair makes each form once.
    """
    import altair as alt

    ticks = {_at(step, steps): str(step) for step in _ticks(steps)}
    if once:
        ticks[_column(steps)] = f"once, at step {once[0]}" if len(once) == 1 else "once"
    labels = alt.Axis(
        values=list(ticks), labelExpr=f"{json.dumps(ticks)}[datum.value]", grid=False, labelOverlap=False
    )
    x = alt.X("at:Q", title="step", axis=labels, scale=alt.Scale(domain=[0, WIDTH], nice=False))
    percent = alt.Axis(format=".0%", tickCount=4)
    y = alt.Y("success:Q", title="true success", axis=percent)
    scale = alt.Scale(domain=list(sets), range=[OTHERS[at % len(OTHERS)] for at in range(len(sets))])
    shapes = [SHAPES[at // len(OTHERS) % len(SHAPES)] for at in range(len(sets))]
    colour = alt.Color("set:N", legend=None, scale=scale)
    shape = alt.Shape("set:N", legend=None, scale=alt.Scale(domain=list(sets), range=shapes))

    def layer() -> Any:
        return alt.Chart(alt.Data(values=[]))

    layers = [
        # From every name to the point that it names: names that would lie on each other are moved apart.
        layer()
        .mark_rule(strokeWidth=1, opacity=0.7)
        .encode(x=x, y=y, x2="leader:Q", y2="place:Q", color=colour),
        layer().mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour),
        layer()
        .mark_point(size=55, filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=["set:N", "step:Q", "counts:N"]),
        layer()
        .mark_text(align="left", baseline="middle", fontWeight="bold")
        .encode(x="name:Q", y=alt.Y("place:Q"), text="label:N", color=colour),
    ]
    return json.dumps(specified(alt.layer(*layers), "", HEIGHT))


def _column(steps: tuple[int, ...]) -> int:
    """Return where sets played once stand: right of the lines and their names; alone, at the left."""
    return COLUMN if steps else LINES // 4


def _at(step: int, steps: tuple[int, ...]) -> int:
    """Return where a step stands, in pixels."""
    first, last = steps[0], steps[-1]
    return EDGE if first == last else EDGE + round((LINES - EDGE) * (step - first) / (last - first))


def _ticks(steps: tuple[int, ...]) -> list[int]:
    """Return at most six of the steps, the first and the last among them."""
    if not steps:
        return []
    every = -(-(len(steps) - 1) // (TICKS - 1)) or 1
    return sorted({*steps[::every], steps[-1]})


def _names(sets: Sequence[str], values: list[dict[str, Any]], domain: list[float]) -> list[dict[str, Any]]:
    """Return where sets' names stand: beside their last points, moved apart, each led to by a thin line."""
    last = [[value for value in values if value["set"] == name][-1] for name in sets]
    low, high = domain
    gap = (high - low) * LINE_OF_TEXT / HEIGHT
    places = held([value["success"] for value in last], gap, low + gap / 2, high)
    right = max((value["at"] for value in last), default=0)
    return [
        {
            "set": value["set"],
            "label": f"{short(value['set'])} {value['success']:.0%}",
            "at": value["at"],
            "success": value["success"],
            "leader": right + LEADER,
            "name": right + LEADER + 3,
            "place": height,
        }
        for value, height in zip(last, places, strict=True)
    ]


def _caption(lines: dict[str, list[Point]], run: str, once: tuple[str, ...]) -> str:
    told = "; ".join(f"{name}: {_told(line)}" for name, line in lines.items())
    caption = (
        f"True success of {run}. {told}. Names have the colours of their points, to which thin lines lead. "
    )
    if once and len(once) < len(lines):
        caption += "Sets played once stand in a column of their own, on the right. "
    return f"{caption}Rates of one run's own counts; no interval is drawn of them."


def _told(line: list[Point]) -> str:
    _, first, successes, episodes = line[0]
    if len(line) == 1:
        return f"{successes} of {episodes} at step {first}"
    _, last, later, of = line[-1]
    return f"{successes} of {episodes} at step {first}, {later} of {of} at step {last}"


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
