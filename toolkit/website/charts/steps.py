"""Charts of a language model's training steps: a small one for every figure, all over the same steps."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any

from toolkit.website.charts.drawing import Chart, drawn, heading, specified
from toolkit.website.charts.marks import plain
from toolkit.website.charts.theme import ACCENT

WIDE, HIGH = 250, 110
LABELS = 40  # pixels left of each plot, so that all begin at one place
FEW = 30
"""Steps up to which each has a dot: among more, only one that no line reaches."""
DIGITS = ".6g"
"""Of a number that is drawn: more than a drawing can show, and fewer bytes than a double."""
MOST_NAMED = 8
Number = float | None


@dataclass(frozen=True)
class Step:
    """The trainer's figures of a step; None stands for one that was not recorded, or is no finite number.

    Args:
        step: its number.
        loss, grad_norm, entropy, clipped: as in `steps`.
        weights: mean, least and greatest importance weight.
        seconds: how long it took.
        generation: how much of that went to playing rollouts.
    """

    step: int
    loss: Number
    grad_norm: Number
    entropy: Number
    clipped: Number
    weights: tuple[Number, Number, Number]
    seconds: Number
    generation: Number


@dataclass(frozen=True)
class _Panel:
    """A figure of every step.

    Args:
        what: what it is.
        values: it, step by step.
        band: ends of what is shaded, step by step.
        shaded: what is.
        from_zero: whether the axis begins at zero.
    """

    what: str
    values: tuple[Number, ...]
    band: tuple[tuple[Number, Number], ...] = ()
    shaded: str = ""
    from_zero: bool = True


def training_steps(steps: tuple[Step, ...]) -> list[Chart]:
    """Draw the figures of a run's steps, upwards: each that has a number."""
    of = {name: tuple(getattr(step, name) for step in steps) for name in ("loss", "grad_norm", "entropy")}
    weights, seconds = [step.weights for step in steps], tuple(step.seconds for step in steps)
    playing = tuple((None if s.generation is None else 0.0, s.generation) for s in steps)
    panels = (
        _Panel("Loss", of["loss"], from_zero=False),
        _Panel("Gradient norm", of["grad_norm"]),
        _Panel("Entropy, nats a token", of["entropy"]),
        _Panel("Share of tokens clipped", tuple(step.clipped for step in steps)),
        _Panel(
            "Importance weight, mean",
            tuple(mean for mean, _, _ in weights),
            tuple((low, high) for _, low, high in weights),
            "from the least to the greatest weight",
            from_zero=False,
        ),
        _Panel(f"Seconds a step{_playing(steps)}", seconds, playing, "the seconds that rollouts took"),
    )
    numbers = tuple(step.step for step in steps)
    return [_drawn(panel, numbers) for panel in panels if any(v is not None for v in panel.values)]


def _drawn(panel: _Panel, steps: tuple[int, ...]) -> Chart:
    ends = panel.band or ((None, None),) * len(steps)
    values: list[dict[str, Any]] = [
        {"step": step, "value": _short(value), **_shaded(*band)}
        for step, value, band in zip(steps, panel.values, ends, strict=True)
    ]
    title = _finding(panel, steps)
    specification = json.loads(
        _form(steps[0], steps[-1], from_zero=panel.from_zero, is_zero=not any(panel.values))
    )
    specification["title"] = heading(title, width=WIDE)
    for layer, shown in zip(specification["layer"], (values, values, _dots(values)), strict=True):
        layer["data"]["values"] = shown
    return drawn(specification, title, _caption(panel, steps))


@lru_cache
def _form(first: int, last: int, *, from_zero: bool, is_zero: bool) -> str:
    """Return the specification of a chart over these steps, without its rows and its title.

    Runs of a study differ by these alone; Altair makes each form once. Where all is zero, the axis goes to 1.
    """
    import altair as alt

    axis = alt.Axis(grid=False, tickCount=5, format="d", tickMinStep=1)
    x = alt.X("step:Q", title="step", axis=axis, scale=alt.Scale(domain=[first, last], nice=False))
    scale = alt.Scale(domain=[0, 1]) if from_zero and is_zero else alt.Scale(zero=from_zero)
    y = alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4, minExtent=LABELS), scale=scale)

    def layer() -> Any:
        return alt.Chart(alt.Data(values=[]))

    layers = [
        layer().mark_area(color=ACCENT, opacity=0.25).encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        layer().mark_line(color=ACCENT, strokeWidth=1.5).encode(x=x, y=y),
        layer().mark_circle(color=ACCENT, size=20, opacity=1).encode(x=x, y=y, tooltip=["step:Q", "value:Q"]),
    ]
    return json.dumps(specified(alt.layer(*layers), "", HIGH, width=WIDE))


def _dots(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps that have a dot: all of a few; else those that no line reaches."""
    there = [entry["value"] is not None for entry in values]
    alone = [
        is_there and not any(there[max(0, at - 1) : at] + there[at + 1 : at + 2])
        for at, is_there in enumerate(there)
    ]
    chosen = there if len(values) <= FEW else alone
    return [
        {"step": entry["step"], "value": entry["value"]}
        for entry, is_chosen in zip(values, chosen, strict=True)
        if is_chosen
    ]


def _shaded(low: Number, high: Number) -> dict[str, Number]:
    return {} if low is None or high is None else {"low": _short(low), "high": _short(high)}


def _short(value: Number) -> Number:
    return None if value is None else float(format(value, DIGITS))


def _playing(steps: Sequence[Step]) -> str:
    """Return in words which share of the seconds rollouts took, of the steps that say both."""
    both = [(s.generation, s.seconds) for s in steps if s.generation is not None and s.seconds]
    if not both:
        return ""
    return f", {sum(part for part, _ in both) / sum(whole for _, whole in both):.0%} in rollouts"


def _finding(panel: _Panel, steps: Sequence[int]) -> str:
    found = _found(panel, steps)
    ends = dict.fromkeys((found[0], found[-1]))
    return f"{panel.what}: " + ", ".join(f"{_number(value)} at step {step}" for step, value in ends)


def _found(panel: _Panel, steps: Sequence[int]) -> list[tuple[int, float]]:
    return [(step, value) for step, value in zip(steps, panel.values, strict=True) if value is not None]


def _caption(panel: _Panel, steps: Sequence[int]) -> str:
    found = _found(panel, steps)
    least, most = (extreme(found, key=lambda at: at[1]) for extreme in (min, max))
    what = panel.what.partition(",")[0]
    told = f"{what}, steps {steps[0]} to {steps[-1]}: least {_number(least[1])} at step {least[0]}, "
    told += f"greatest {_number(most[1])} at step {most[0]}, mean {_number(fmean(v for _, v in found))}."
    ends = [end for low, high in panel.band for end in (low, high) if low is not None and end is not None]
    if ends:
        told += f" Shaded: {panel.shaded}, {_number(min(ends))} to {_number(max(ends))}."
    lacking = [str(step) for step, value in zip(steps, panel.values, strict=True) if value is None]
    if lacking:
        named = ", ".join(lacking[:MOST_NAMED]) + (", …" if len(lacking) > MOST_NAMED else "")
        told += f" No number at {len(lacking)} step{'s' * (len(lacking) > 1)}: {named}."
    return told


def _number(value: float) -> str:
    return plain(value, ".3g")
