"""Charts of a language model's training steps: a small one for every figure, all over the same steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.lines import Frame, Line, Spot, lines
from toolkit.website.charts.marks import plain
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import ACCENT

HIGH = 110
FEW = 30
"""Steps up to which each has a dot: among more, the line says its ends and extremes, and the table all."""
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
    weights, seconds = [step.weights for step in steps], tuple(step.seconds for step in steps)
    playing = tuple((None if s.generation is None else 0.0, s.generation) for s in steps)
    panels = (
        _Panel("Loss", tuple(step.loss for step in steps), from_zero=False),
        _Panel("Gradient norm", tuple(step.grad_norm for step in steps)),
        _Panel("Entropy, nats a token", tuple(step.entropy for step in steps)),
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
    title, found = _finding(panel, steps), _found(panel, steps)
    name = panel.what.partition(",")[0]
    spots = tuple(
        Spot(step, value, f"{name}, step {step}: {_number(value)}", ((step, value),)) for step, value in found
    )
    says = title if len(found) > FEW else ""
    band = tuple(
        (float(step), low, high)
        for step, (low, high) in zip(steps, panel.band, strict=False)
        if low is not None and high is not None
    )
    frame = Frame(
        Axis("step"),
        Axis(""),
        y_values=((0.0,) if any(panel.values) else (0.0, 1.0)) if panel.from_zero else (),
        band=band,
        bounds=(0.0 if panel.from_zero else float("-inf"), float("inf")),
        height=HIGH,
    )
    draw = lines([Line("", spots, ACCENT, says)], frame)
    return drawn(title, _caption(panel, steps), ("step", name), draw, small=True)


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
