"""Figures over training steps: learning curves by arm, a run's success by set, and the trainer's figures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import cycle, groupby
from statistics import fmean

from toolkit.decisions.measure import CurvePoint
from toolkit.registers.arrow import Row
from toolkit.rules.values import fixed
from toolkit.site.charts.plots import Axis, Frame, Line, Spot, capital, lines, listed, plain, short
from toolkit.site.charts.svg import ACCENT, OTHERS, Chart, colours, drawn

CURVE_COLUMNS = ("arm", "series", "step", "rate", "successes", "episodes")
MEAN, REPLICATION = "mean", "replication"
LOOKS = {MEAN: "bold", REPLICATION: "dashed"}
TOLD = 3
FEW_SETS = 3
"""Sets up to which a drawing as wide as a phone shows all that there is."""
SET_COLUMNS = ("set", "step", "successes", "episodes")
SHAPES = ("circle", "square", "triangle", "diamond")  # after all colours, the next shape

Point = tuple[str, int, int, int]
"""(set, step, successes, episodes)."""
HIGH = 110
FEW_STEPS = 30
"""Steps up to which each has a dot: among more, the line says its ends and extremes, and the table all."""
MOST_NAMED = 8
Number = float | None


def learning_curves(
    points: tuple[CurvePoint, ...],
    what: str,
    measure: str,
    step: str = "step",
    within: tuple[Fraction, Fraction] | None = None,
) -> Chart | None:
    """Draw a rate over steps."""
    if not points:
        return None
    colour_of = colours(point.arm for point in points)
    held = []
    for (arm, series), of_series in groupby(
        sorted(points, key=_curve_order), key=lambda p: (p.arm, p.series)
    ):
        of = tuple(of_series)
        spots = tuple(_curve_spot(point) for point in of)
        is_named = series == MEAN or not any((p.arm, p.series) == (arm, MEAN) for p in points)
        name = f"{arm.replace('_', ' ')} {float(of[-1].success):.1%}" if is_named else ""
        says = "" if series == MEAN else "; ".join(spot.says for spot in (spots[0], spots[-1]))
        held.append(Line(name, spots, f"{colour_of[arm]} {LOOKS.get(series, 'thin')}", says))
    named = {line.look: line for line in held if line.name}  # an arm without a mean is named once
    held = [replace(line, name=line.name if named.get(line.look) is line else "") for line in held]
    frame = Frame(
        Axis(step),
        Axis(measure, "percent"),
        tuple(sorted({float(point.step) for point in points})),
        tuple(float(rate) for rate in within or ()),
        bounds=(0, 1),
    )
    return drawn(
        _curves_finding(points),
        _curves_caption(points),
        CURVE_COLUMNS,
        lines(held, frame),
        about=f"{what}: {measure}",
    )


def _curve_order(point: CurvePoint) -> tuple[bool, str, str, int]:
    """Return where a point comes: means last, so that they lie on top."""
    return point.series == MEAN, point.arm, point.series, point.step


def _curve_spot(point: CurvePoint) -> Spot:
    says = f"{point.arm.replace('_', ' ')}, {point.series}, step {point.step}: "
    says += f"{fixed(100 * point.success, 2)}%"
    if point.episodes is not None:
        says += f", {point.successes} of {point.episodes}"
    counts = ("", "") if point.episodes is None else (point.successes, point.episodes)
    row = (point.arm, point.series, point.step, point.success, *counts)
    return Spot(point.step, float(point.success), says, (row,))


def _curves_finding(points: Sequence[CurvePoint]) -> str:
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


def _curves_caption(points: Sequence[CurvePoint]) -> str:
    names = {point.series for point in points}
    text = f"Thin lines are {_seeds(points)} seeds" + (", bold lines their means" if MEAN in names else "")
    if REPLICATION in names:
        text += "; the dashed line is a replication that decides nothing"
    return f"{text}. Single steps have no interval: none is registered for them."


def _seeds(points: Sequence[CurvePoint]) -> str:
    held: dict[str, set[str]] = {point.arm: set() for point in points}
    for point in points:
        if point.series not in (MEAN, REPLICATION):
            held[point.arm].add(point.series)
    counts = sorted({len(series) for series in held.values()})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def success_by_step(points: tuple[Point, ...], run: str) -> Chart | None:
    """Draw a run's true success on each set that it played several times; sets played once are dots."""
    if not points:
        return None
    sets = {name: [p for p in points if p[0] == name] for name in dict.fromkeys(p[0] for p in points)}
    looks = zip(sets, cycle((look, shape) for shape in SHAPES for look in OTHERS), strict=False)
    held = [
        Line(
            f"{short(name, 30)} {_rate(sets[name][-1]):.0%}",
            tuple(_set_spot(point) for point in sets[name]),
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
    return drawn(_sets_finding(sets), caption, SET_COLUMNS, lines(held, frame), small=len(sets) <= FEW_SETS)


def _rate(point: Point) -> float:
    return point[2] / point[3]


def _set_spot(point: Point) -> Spot:
    name, step, successes, episodes = point
    says = f"{name}, step {step}: {successes} of {episodes}, {_rate(point):.1%}"
    return Spot(step, _rate(point), says, (point,))


def _sets_finding(lines: dict[str, list[Point]]) -> str:
    """Return in words how the longest lines went; single points where there is no line."""
    longest = sorted(lines.items(), key=lambda item: -len(item[1]))
    told = [item for item in longest if len(item[1]) == len(longest[0][1])][:TOLD]
    first, last = told[0][1][0][1], told[0][1][-1][1]
    when = f"Steps {first} to {last}" if first != last else f"Step {last}"
    return f"{when}: " + ", ".join(f"{name} {_went(line)}" for name, line in told)


def _went(line: list[Point]) -> str:
    start, *_, end = (f"{successes / episodes:.0%}" for _, _, successes, episodes in (line[0], *line))
    return end if len(line) == 1 else f"{start} to {end}"


WEIGHT = "importance_weight_"
SECONDS = "Seconds a step"


@dataclass(frozen=True)
class _Figure:
    what: str  # what it is
    values: tuple[Number, ...]  # it, step by step; None where it was not recorded, or is no finite number
    band: tuple[tuple[Number, Number], ...]  # ends of what is shaded, step by step
    shaded: str  # what is
    from_zero: bool  # whether the axis begins at zero


# What is drawn, its column, both columns of what is shaded, what that is, and whether its axis is from zero.
FIGURES = (
    ("Loss", "loss", None, "", False),
    ("Gradient norm", "grad_norm", None, "", True),
    ("Entropy, nats a token", "entropy", None, "", True),
    ("Share of tokens clipped", "clipped", None, "", True),
    (
        *("Importance weight, mean", f"{WEIGHT}mean", (f"{WEIGHT}min", f"{WEIGHT}max")),
        *("from the least to the greatest weight", False),
    ),
    (SECONDS, "seconds", ("begun", "generation"), "the seconds that rollouts took", True),
)


def training_steps(steps: Sequence[Row]) -> list[Chart]:
    """Draw the figures of a run's steps, upwards: each that has a number."""
    numbers = tuple(step["step"] for step in steps)
    charts = []
    for what, column, ends, shaded, from_zero in FIGURES:
        values = tuple(step.get(column) for step in steps)
        band = tuple((step.get(ends[0]), step.get(ends[1])) for step in steps) if ends else ()
        named = what + _playing(steps) if what == SECONDS else what
        if any(value is not None for value in values):
            charts.append(_panel_chart(_Figure(named, values, band, shaded, from_zero), numbers))
    return charts


def _panel_chart(panel: _Figure, steps: tuple[int, ...]) -> Chart:
    title, found = _panel_finding(panel, steps), _recorded(panel, steps)
    name = panel.what.partition(",")[0]
    spots = tuple(
        Spot(step, value, f"{name}, step {step}: {_number(value)}", ((step, value),)) for step, value in found
    )
    says = title if len(found) > FEW_STEPS else ""
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
    return drawn(title, _panel_caption(panel, steps), ("step", name), draw, small=True)


def _playing(steps: Sequence[Row]) -> str:
    """Return in words which share of the seconds rollouts took, of the steps that say both."""
    both = [
        (s["generation"], s["seconds"]) for s in steps if s.get("generation") is not None and s["seconds"]
    ]
    if not both:
        return ""
    return f", {sum(part for part, _ in both) / sum(whole for _, whole in both):.0%} in rollouts"


def _panel_finding(panel: _Figure, steps: Sequence[int]) -> str:
    found = _recorded(panel, steps)
    ends = dict.fromkeys((found[0], found[-1]))
    return f"{panel.what}: " + ", ".join(f"{_number(value)} at step {step}" for step, value in ends)


def _recorded(panel: _Figure, steps: Sequence[int]) -> list[tuple[int, float]]:
    return [(step, value) for step, value in zip(steps, panel.values, strict=True) if value is not None]


def _panel_caption(panel: _Figure, steps: Sequence[int]) -> str:
    found = _recorded(panel, steps)
    least, most = (extreme(found, key=lambda at: at[1]) for extreme in (min, max))
    what = panel.what.partition(",")[0]
    told = f"{what}, steps {steps[0]} to {steps[-1]}: least {_number(least[1])} at step {least[0]}, "
    told += f"greatest {_number(most[1])} at step {most[0]}, mean {_number(fmean(v for _, v in found))}."
    ends = [end for low, high in panel.band if low is not None and high is not None for end in (low, high)]
    if ends:
        told += f" Shaded: {panel.shaded}, {_number(min(ends))} to {_number(max(ends))}."
    lacking = [str(step) for step, value in zip(steps, panel.values, strict=True) if value is None]
    if lacking:
        named = ", ".join(lacking[:MOST_NAMED]) + (", …" if len(lacking) > MOST_NAMED else "")
        told += f" No number at {len(lacking)} step{'s' * (len(lacking) > 1)}: {named}."
    return told


def _number(value: float) -> str:
    return plain(value, ".3g")
