"""Figures over time: learning curves by arm, a run's success by set, its trainer's figures; a chronology."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from fractions import Fraction
from itertools import cycle, groupby
from statistics import fmean

from toolkit.decisions.measure import CurvePoint
from toolkit.registers.arrow import Row
from toolkit.rules.values import fixed
from toolkit.site.charts import svg
from toolkit.site.charts.plots import Axis, Frame, Line, Scale, Spot, capital, lines, listed, plain, short
from toolkit.site.charts.svg import ACCENT, OTHERS, WIDE, Chart, colours, drawn
from toolkit.structs import replace

MEAN, REPLICATION = "mean", "replication"
LOOKS = {MEAN: "bold", REPLICATION: "dashed"}
TOLD = 3
FEW_SETS = 3
"""Sets up to which a drawing as wide as a phone shows all that there is."""
SHAPES = ("circle", "square", "triangle", "diamond")  # after all colours, the next shape

Point = tuple[str, int, int, int]
"""(set, step, successes, episodes)."""
HIGH = 110
FEW_STEPS = 30
"""Steps up to which each has a dot: among more, the line says its ends and extremes, and the table all."""
MOST_NAMED = 8


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
        sorted(points, key=lambda p: (p.series == MEAN, p.arm, p.series, p.step)),  # means lie on top
        key=lambda p: (p.arm, p.series),
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
        ("arm", "series", "step", "rate", "successes", "episodes"),
        lines(held, frame),
        about=f"{what}: {measure}",
    )


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
    columns = ("set", "step", "successes", "episodes")
    return drawn(_sets_finding(sets), caption, columns, lines(held, frame), small=len(sets) <= FEW_SETS)


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


SECONDS = "Seconds a step"


@dataclass(frozen=True)
class _Figure:
    what: str  # what it is, with its unit after a comma
    column: str  # where steps have it
    from_zero: bool = True  # whether the axis begins at zero
    ends: tuple[str, str] = ("", "")  # columns with the ends of what is shaded
    shaded: str = ""  # what is


FIGURES = (
    _Figure("Loss", "loss", from_zero=False),
    _Figure("Gradient norm", "grad_norm"),
    _Figure("Entropy, nats a token", "entropy"),
    _Figure("Share of tokens clipped", "clipped"),
    _Figure(
        "Importance weight, mean",
        "importance_weight_mean",
        from_zero=False,
        ends=("importance_weight_min", "importance_weight_max"),
        shaded="from the least to the greatest weight",
    ),
    _Figure(SECONDS, "seconds", ends=("begun", "generation"), shaded="the seconds that rollouts took"),
)


def training_steps(steps: Sequence[Row]) -> list[Chart]:
    """Draw the figures of a run's steps, upwards: each that has a number."""
    return [chart for figure in FIGURES if (chart := _panel(figure, steps))]


def _panel(figure: _Figure, steps: Sequence[Row]) -> Chart | None:
    found = [(s["step"], s[figure.column]) for s in steps if s.get(figure.column) is not None]
    if not found:
        return None
    band = tuple(
        (float(step["step"]), low, high)
        for step in steps
        if (low := step.get(figure.ends[0])) is not None and (high := step.get(figure.ends[1])) is not None
    )
    first_and_last = dict.fromkeys((found[0], found[-1]))
    title = figure.what + (_playing(steps) if figure.what == SECONDS else "")
    title += ": " + ", ".join(f"{_number(value)} at step {step}" for step, value in first_and_last)
    name = figure.what.partition(",")[0]
    spots = tuple(
        Spot(step, value, f"{name}, step {step}: {_number(value)}", ((step, value),)) for step, value in found
    )
    zero = (0.0,) if any(value for _, value in found) else (0.0, 1.0)
    frame = Frame(
        Axis("step"),
        Axis(""),
        y_values=zero if figure.from_zero else (),
        band=band,
        bounds=(0.0 if figure.from_zero else float("-inf"), float("inf")),
        height=HIGH,
    )
    draw = lines([Line("", spots, ACCENT, title if len(found) > FEW_STEPS else "")], frame)
    least, most = (extreme(found, key=lambda at: at[1]) for extreme in (min, max))
    caption = f"{name}, steps {steps[0]['step']} to {steps[-1]['step']}: least {_number(least[1])} at step "
    caption += f"{least[0]}, greatest {_number(most[1])} at step {most[0]}, "
    caption += f"mean {_number(fmean(value for _, value in found))}."
    if band:
        ends = [end for _, *both in band for end in both]
        caption += f" Shaded: {figure.shaded}, {_number(min(ends))} to {_number(max(ends))}."
    if lacking := [str(step["step"]) for step in steps if step.get(figure.column) is None]:
        named = ", ".join(lacking[:MOST_NAMED]) + (", …" if len(lacking) > MOST_NAMED else "")
        caption += f" No number at {len(lacking)} step{'s' * (len(lacking) > 1)}: {named}."
    return drawn(title, caption, ("step", name), draw, small=True)


def _playing(steps: Sequence[Row]) -> str:
    """Return in words which share of the seconds rollouts took, of the steps that say both."""
    both = [
        (s["generation"], s["seconds"]) for s in steps if s.get("generation") is not None and s["seconds"]
    ]
    if not both:
        return ""
    return f", {sum(part for part, _ in both) / sum(whole for _, whole in both):.0%} in rollouts"


def _number(value: float) -> str:
    return plain(value, ".3g")


LANE = 38
GAP = 12
TICK = 110
DAY = 86400
EVEN = (3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY)
"""Seconds from tick to tick, of which the first that leaves room is taken."""

Mark = tuple[str, str, str, str, str]
"""(lane, label, from, until, what); times in ISO 8601, `until` empty for a moment."""


def timeline(marks: tuple[Mark, ...], frozen: str, title: str, caption: str) -> Chart | None:
    """Draw everything dated on one axis of time: a lane a kind, a dot a moment, a bar a span."""
    if not marks:
        return None
    lanes = list(dict.fromkeys(lane for lane, *_ in marks))

    def draw(width: float) -> tuple[float, list[str]]:
        is_wide = width >= WIDE
        left = max(svg.width_of(lane) for lane in lanes) + 14 if is_wide else 8
        moments = [_seconds(frozen), *(_seconds(at) for mark in marks for at in mark[2:4] if at)]
        start, end = min(moments), max(moments)
        x = Scale(start, max(end, start + 1), left, width - 12)
        lane_height = LANE if is_wide else LANE + 16
        top, bottom = 24.0, 24.0 + lane_height * len(lanes)
        parts = _ticks(x, top, bottom)
        at = x.at(_seconds(frozen))
        parts.append(svg.line(at, top - 6, at, bottom, "limit"))
        anchor = "end" if at > width - 60 else None
        parts.append(svg.text("frozen by", at + (-4 if anchor else 4), 14, "soft", anchor))
        for number, lane in enumerate(lanes):
            y = top + lane_height * (number + 1) - 10
            place = (left - 14, y + 4, None, "end") if is_wide else (0, y - 26, "soft", None)
            parts.append(svg.text(lane, *place))
            of = [mark for mark in marks if mark[0] == lane]
            parts += [_mark(mark, x, y) for mark in of]
            parts += _labels(of, x, y - 10, width)
        return bottom + 26, parts

    return drawn(title, caption, ("lane", "label", "from", "until", "what"), draw)


def _mark(mark: Mark, x: Scale, y: float) -> str:
    _, _, at, until, what = mark
    shapes = [svg.dot(x.at(_seconds(at)), y)]
    if until:
        shapes.insert(0, svg.line(x.at(_seconds(at)), y, x.at(_seconds(until)), y, "bar"))
    says = f"{_utc(at)}{f' to {_utc(until)}' if until else ''}: {what}"
    return svg.mark(says, [mark], *shapes, look=ACCENT)


def _ticks(x: Scale, top: float, bottom: float) -> list[str]:
    most = max(1.0, (x.end - x.start) / TICK)
    step = next((seconds for seconds in EVEN if (x.high - x.low) / seconds <= most), EVEN[-1])
    form = "%b %d" if step >= DAY else "%b %d %H:%M"
    moments = [number * step for number in range(-int(-x.low // step), int(x.high // step) + 1)]
    named = [(f"{datetime.fromtimestamp(at, UTC):{form}}", x.at(at), bottom + 16) for at in moments]
    return [svg.grid((at, top, at, bottom) for _, at, _ in named), svg.texts(named, "tick", "middle")]


def _utc(text: str) -> str:
    """Return a moment in UTC; midnight, which stands for a day, as the day."""
    at = datetime.fromisoformat(text).astimezone(UTC)
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M:%S}"


def _labels(marks: Sequence[Mark], x: Scale, y: float, width: float) -> list[str]:
    """Return the names above the marks of a lane; names that would run into each other stand as one."""
    placed: list[tuple[float, float, str]] = []  # from, to, words
    for at, label in ((x.at(_seconds(at)), label) for _, label, at, _, _ in marks if label):
        start, end, words = _room(at, label, width)
        while placed and start < placed[-1][1] + GAP:
            before, until, held = placed.pop()
            start, end, words = _room((before + until) / 2, f"{held}, {words}", width)
        placed.append((start, end, words))
    return [
        svg.text(svg.cut(words, width), (start + end) / 2, y, "soft", "middle")
        for start, end, words in placed
    ]


def _room(at: float, words: str, width: float) -> tuple[float, float, str]:
    """Return where words about a place begin and end, moved so that they stay in the drawing."""
    half = min(svg.width_of(words), width - 4) / 2
    middle = min(max(at, half + 2), width - half - 2)
    return middle - half, middle + half, words


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
