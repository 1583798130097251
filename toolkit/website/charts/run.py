"""Chart of a run: true success over training steps, a line a regime."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from toolkit.website.charts.drawing import Chart, drawn, drawn_once, heading, specified
from toolkit.website.charts.theme import INK, OTHERS

HEIGHT = 220
TICKS = 6
TOLD = 3
APART = 0.045  # of the plotted range: names nearer than this would lie on each other

Point = tuple[str, int, int, int]
"""(set, step, successes, episodes)."""


@drawn_once
def success_by_step(points: tuple[Point, ...], run: str) -> Chart | None:
    """Draw a run's true success on each set that it played several times; sets played once are dots.

    Args:
        points: counts by set and step.
        run: what it is called.
    """
    if not points:
        return None
    lines = {name: [p for p in points if p[0] == name] for name in dict.fromkeys(p[0] for p in points)}
    values: list[dict[str, Any]] = [
        {"set": name, "step": step, "success": successes / episodes, "counts": f"{successes} of {episodes}"}
        for name, step, successes, episodes in points
    ]
    told = "; ".join(f"{name}: {_told(line)}" for name, line in lines.items())
    caption = f"True success of {run}. {told}. Rates of one run's own counts; no interval is drawn of them."
    title = _finding(lines)
    specification = json.loads(_form(tuple(lines), tuple(sorted({value["step"] for value in values}))))
    specification["title"] = heading(title)
    line, dots, names = specification["layer"]
    line["data"]["values"] = dots["data"]["values"] = values
    names["data"]["values"] = _names(lines)
    return drawn(specification, title, caption)


@lru_cache(maxsize=256)
def _form(sets: tuple[str, ...], steps: tuple[int, ...]) -> str:
    """Return the specification of a chart of these sets and steps, without its rows and its title.

    A study can have hundreds of runs, whose charts differ by these alone; Altair makes each form once.
    """
    import altair as alt

    x = alt.X("step:Q", title="step", axis=alt.Axis(values=_ticks(steps), grid=False))
    percent = alt.Axis(format=".0%", tickCount=4)
    y = alt.Y("success:Q", title="true success", axis=percent, scale=alt.Scale(zero=False))
    scale = alt.Scale(domain=list(sets), range=[OTHERS[at % len(OTHERS)] for at in range(len(sets))])

    def layer() -> Any:
        return alt.Chart(alt.Data(values=[])).encode(
            x=x, y=y, color=alt.Color("set:N", legend=None, scale=scale)
        )

    names = alt.Chart(alt.Data(values=[])).mark_text(align="left", dx=9, color=INK)
    layers = [
        layer().mark_line(strokeWidth=2.5),
        layer().mark_circle(size=55, opacity=1).encode(tooltip=["set:N", "step:Q", "counts:N"]),
        names.encode(x="step:Q", y="success:Q", text="set:N"),
    ]
    return json.dumps(specified(alt.layer(*layers), "", HEIGHT))


def _ticks(steps: tuple[int, ...]) -> list[int]:
    """Return at most six of the steps, the first and the last among them."""
    every = -(-(len(steps) - 1) // (TICKS - 1)) or 1
    return sorted({*steps[::every], steps[-1]})


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


def _names(lines: dict[str, list[Point]]) -> list[dict[str, Any]]:
    """Return where the lines' names stand: at their ends, moved apart where they would lie on each other."""
    rates = [successes / episodes for line in lines.values() for _, _, successes, episodes in line]
    apart = APART * max(max(rates) - min(rates), 0.02)
    placed: list[dict[str, Any]] = []
    for name, line in sorted(lines.items(), key=lambda item: item[1][-1][2] / item[1][-1][3]):
        _, step, successes, episodes = line[-1]
        at = successes / episodes
        if placed:
            at = max(at, placed[-1]["success"] + apart * 1.6)
        placed.append({"set": name, "step": step, "success": at})
    return placed
