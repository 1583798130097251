"""Charts of what runs cost: durations as they were measured, and what follows for other numbers of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.website.charts.drawing import Chart, draw, drawn_once
from toolkit.website.charts.theme import ACCENT, LIMIT, OTHERS

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW = 44
EACH = "A dot is a run: nothing is averaged, so no interval is drawn."
COLOURS = (ACCENT, LIMIT, *OTHERS[2:])


class Span(NamedTuple):
    """Hours on a number of GPUs: at least, in the mean where it is known, at most."""

    policy: str
    gpus: int
    low: float
    mean: float | None
    high: float


@drawn_once
def measured_hours(groups: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]) -> Chart | None:
    """Draw how long measured runs took, a row an accelerator.

    Args:
        groups: name of the accelerator, and its runs with their hours.
    """
    import altair as alt

    shown = [(name, runs) for name, runs in groups if runs]
    if not shown:
        return None
    values = [
        {"on": name, "hours": hours, "label": f"{run}: {hours:.1f} hours"}
        for name, runs in shown
        for run, hours in runs
    ]
    names = [name for name, _ in shown]
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    x = alt.X("hours:Q", title="hours a run", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=8))
    y = alt.Y("on:N", title=None, sort=names, axis=alt.Axis(labelLimit=0))
    dots = alt.Chart(alt.Data(values=values)).mark_circle(size=70, opacity=0.75)
    chart = dots.encode(x=x, y=y, color=alt.Color("on:N", scale=scale, legend=None), tooltip=["label:N"])
    said = "; ".join(f"{len(runs)} on an {name}, {_ends([h for _, h in runs])} hours" for name, runs in shown)
    title = f"A run took {_ends([hours for _, hours in shown[0][1]])} hours on an {names[0]}"
    caption = f"Hours from the launch of a run to its end, evaluation included: {said}. {EACH}"
    return draw(chart, title, caption, ROW * len(names))


@drawn_once
def hours_by_gpus(spans: tuple[Span, ...], runs: int) -> Chart | None:
    """Draw how long all runs take by the number of GPUs, a line a policy and number.

    Args:
        spans: what follows from the measured runs.
        runs: how many runs there are.
    """
    import altair as alt

    if not spans:
        return None
    values = [
        {"at": _at(span), "policy": span.policy, "low": span.low, "high": span.high, "label": _words(span)}
        for span in spans
    ]
    rows, policies = [_at(span) for span in spans], list(dict.fromkeys(span.policy for span in spans))
    scale = alt.Scale(domain=policies, range=list(COLOURS[: len(policies)]))
    colour = alt.Color("policy:N", scale=scale, legend=None)
    x = alt.X(
        "low:Q",
        title="hours, logarithmic",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(tickCount=6),
    )
    y = alt.Y("at:N", title=None, sort=rows, axis=alt.Axis(labelLimit=0))
    lines = alt.Chart(alt.Data(values=values)).mark_rule(strokeWidth=7, opacity=0.5)
    layers = [lines.encode(x=x, x2="high:Q", y=y, color=colour, tooltip=["label:N"])]
    means = [{"at": _at(span), "policy": span.policy, "low": span.mean} for span in spans if span.mean]
    if means:
        dots = alt.Chart(alt.Data(values=means)).mark_circle(size=80, opacity=1)
        layers.append(dots.encode(x=x, y=y, color=colour))
    caption = (
        f"Hours until the last of {runs} runs ends, by policy and number of GPUs: "
        + "; ".join(map(_words, spans))
        + ". A line reaches from the least to the most that follows, a dot is at the mean: no interval of a "
        "sample, but the range of the measured runs, and for a policy that was not measured that between two "
        "assumptions."
    )
    least = min(spans, key=lambda span: span.low)
    title = f"More GPUs help until every run has its own: {_hours(least)} hours at {least.gpus} GPUs"
    return draw(alt.layer(*layers), title, caption, ROW * len(rows) // 2 + ROW)


def _at(span: Span) -> str:
    return f"{span.policy}, {span.gpus} GPU" + ("" if span.gpus == 1 else "s")


def _words(span: Span) -> str:
    return f"{_at(span)}: {_hours(span)} hours"


def _hours(span: Span) -> str:
    return f"{span.low:,.0f} to {span.high:,.0f}"


def _ends(hours: Sequence[float]) -> str:
    return f"{min(hours):.1f} to {max(hours):.1f}"
