"""Measured figures with intervals: members of a series, the probe's ratios, luck shares, predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from toolkit.rules.values import fixed
from toolkit.site.charts import svg
from toolkit.site.charts.plots import (
    Axis,
    Bar,
    Panel,
    Reference,
    Spot,
    Value,
    capital,
    lane_of,
    listed,
    plain,
    points,
    scatter,
    short,
)
from toolkit.site.charts.svg import ACCENT, Chart, colours, drawn, in_turn

RATIO = "ratio"
EACH, REST, LAST = "each", "rest", "last"
SIDES = {">": "above", "<": "below", ">=": "at or above", "<=": "at or below", "=": "equal to"}
RATIO_COLUMNS = ("trajectory", "step", "ratio", "low", "high")
CELL = 32  # pixels
SCHEDULE_WIDTH, SUMS_WIDTH = 96, 60
LUCK_COLUMNS = ("run", "arm", "step", "luck share", "low", "high")


@dataclass(frozen=True)
class Measured:
    """What is measured."""

    title: str  # in words
    member: str  # what its members are: `checkpoint`, `run`
    unit: str  # their unit; a `ratio` is drawn against one
    figure: str  # what their register calls it


@dataclass(frozen=True)
class Comparison:
    """What a criterion compares members with."""

    scope: str  # which members: `each`, the `rest` after the first, the `last`
    sign: str  # how
    bound: float  # with what value
    base: str | None  # the first member's name, where it is with the first member; else None
    held: int  # of how many it is true
    of: int  # how many are compared


def members(
    what: Measured, dots: tuple[Value, ...], interval: str, compared: tuple[Comparison, ...] = ()
) -> Chart | None:
    """Draw the members of a series."""
    if not dots:
        return None
    lanes = [lane_of(d.of[0], d.dot(f"{what.member} {d.of[0]}:", ACCENT)) for d in dots]
    references = [Reference(1, "even", "1")] if what.unit == RATIO else []
    references += [Reference(bound, "limit", plain(bound)) for bound in _bounds(what, compared)]
    bases = {c.bound: c.base for c in compared if c.base is not None}
    references += [
        Reference(bound, "first", f"{short(name or '')} {bound:.3f}") for bound, name in bases.items()
    ]
    caption = f"{capital(interval)}."
    if what.unit == RATIO:
        caption += " Dashed line: 1, where both sides are equal."
    for bound in _bounds(what, compared):
        caption += f" Dashed line in colour: {plain(bound)}, with which the rule compares."
    for bound, name in bases.items():
        caption += f" Dotted line: {name}, the first, {bound:.3f}, with which the rule compares later ones."
    axis = Axis(what.unit, is_ratio=what.unit == RATIO)
    return drawn(
        _members_finding(what, dots, compared),
        caption,
        (what.member, "value", "low", "high"),
        points(lanes, references, axis),
        about=short(what.title, 160),
    )


def _members_finding(what: Measured, dots: Sequence[Value], compared: Sequence[Comparison] = ()) -> str:
    values, many = [dot.value for dot in dots], f"{what.member}s" if len(dots) > 1 else what.member
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    where = low if low == high else f"{low} to {high}"
    if what.unit != RATIO:
        figure = short(what.figure)
        if not compared:
            return capital(f"{figure} {where} over {len(dots)} {many}")
        every = "all " if len(dots) > 1 and all(c.held == len(dots) for c in compared) else ""
        title = _all_compared([c for c in compared if c.scope != EACH], what.member)
        numbers = [_number_compared(c) for c in compared if c.scope == EACH]
        whole = capital(f"{figure} {where} in {every}{len(dots)} {many}")
        return ", ".join((whole, *numbers)) + (f"; {title}" if title else "")
    if compared:
        title = capital(_all_compared(compared, what.member))
        title += f", {where}" if len(dots) > 1 and all(c.base is None for c in compared) else ""
    elif (below := sum(value < 1 for value in values)) in (0, len(dots)):
        side = "below" if below else "not below"
        title = f"{'All ' if len(dots) > 1 else ''}{len(dots)} {many} {side} 1"
        title += f", {min(values):.3f} to {max(values):.3f}" if len(dots) > 1 else ""
    else:
        title = f"{below} of {len(dots)} {many} below 1"
    return title + _reaching_one(dots)


def _reaching_one(values: Sequence[Value]) -> str:
    """Return how many intervals reach one, to end a title; nothing where there are none."""
    whole = [(v.low, v.high) for v in values if v.low is not None and v.high is not None]
    across = sum(low <= 1 <= high for low, high in whole)
    return f"; {across or 'no'} interval{'s reach' if across > 1 else ' reaches'} 1" if whole else ""


def _bounds(what: Measured, compared: Sequence[Comparison]) -> list[float]:
    """Return the numbers that are compared with and have no line yet."""
    has_one = [1.0] if what.unit == RATIO else []
    bounds = dict.fromkeys(c.bound for c in compared if c.base is None)
    return [bound for bound in bounds if bound not in has_one]


def _number_compared(comparison: Comparison) -> str:
    """Return of how many members it is true that they lie on their side of a number."""
    side = f"{SIDES[comparison.sign]} {plain(comparison.bound)}"
    return side if comparison.held == comparison.of else f"{comparison.held or 'none'} of them {side}"


def _all_compared(compared: Sequence[Comparison], member: str) -> str:
    """Return of which members comparisons are true; the first member is told once."""
    told: list[str] = []
    bases: set[str | None] = set()
    for comparison in compared:
        told.append(_compared(comparison, member, new=comparison.base not in bases))
        bases.add(comparison.base)
    return "; ".join(told)


def _compared(comparison: Comparison, member: str, *, new: bool) -> str:
    first = f"the first ({comparison.base}, {comparison.bound:.3f})" if new else "it"
    side = f"{SIDES[comparison.sign]} {plain(comparison.bound) if comparison.base is None else first}"
    if comparison.scope == LAST:
        return f"the last {member} {'is ' if comparison.held else 'is not '}{side}"
    later = "later " if comparison.scope == REST else ""
    many = f"{later}{member}{'s' if comparison.of > 1 else ''}"
    if comparison.held == comparison.of:
        return f"{'all ' if comparison.of > 1 else ''}{comparison.of} {many} {side}"
    return f"{comparison.held or 'none'} of {comparison.of} {many} {side}"


def ratios(what: str, ratios: tuple[Value, ...], interval: str) -> Chart | None:
    """Draw ratios of (trajectory, step) against one, a row a checkpoint and a colour a trajectory."""
    if not ratios:
        return None
    colour_of = in_turn(ratio.of[0] for ratio in ratios)
    places = list(colour_of)
    lanes = []
    for ratio in sorted(ratios, key=lambda ratio: (places.index(ratio.of[0]), ratio.of[1])):
        name, step = ratio.of
        lanes.append(
            lane_of(f"{short(name)}@{step}", ratio.dot(f"{name} at step {step}: ratio", colour_of[name]))
        )
    caption = f"{capital(interval)}. Dashed line: 1, where pairing changes nothing."
    draw = points(lanes, [Reference(1, "even", "1")], Axis("ratio", is_ratio=True))
    return drawn(_ratios_finding(ratios), caption, RATIO_COLUMNS, draw, about=what)


def condition_by_task(where: str, unit: str, sides: tuple[tuple[str, float, float], ...]) -> Chart | None:
    """Draw both sides of the exact condition, a dot a task."""
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
    return f"{float(f'{value:.5g}'):g}"


def _ratios_finding(points: Sequence[Value]) -> str:
    below = sum(point.value < 1 for point in points)
    values = [point.value for point in points]
    title = f"Below 1 at {below} of {len(points)} checkpoints, {min(values):.3f} to {max(values):.3f}"
    return title + _reaching_one(points)


def luck_shares(what: str, shares: tuple[Value, ...], interval: str) -> Chart | None:
    """Draw luck shares of (run, arm, step) by step and arm, a dot a run."""
    if not shares:
        return None
    colour_of = colours(share.of[1] for share in shares)
    lanes = []
    for step, (arm, look) in product(sorted({share.of[2] for share in shares}), colour_of.items()):
        lane = sorted((s for s in shares if s.of[1:] == (arm, step)), key=lambda s: s.of[0])
        if lane:
            name = f"step {step}, {arm.replace('_', ' ')}"
            dots = [share.dot(f"luck share of {share.of[0]} at step {step}:", look) for share in lane]
            lanes.append(lane_of(name, *dots, note=f"{len(lane)} runs" if len(lane) > 1 else ""))
    caption = f"A dot a run; {interval}. Above 0 even without luck: what lies below zero is cut off."
    draw = points(lanes, (), Axis("luck share λ"))
    return drawn(_luck_finding(shares), caption, LUCK_COLUMNS, draw, about=f"{what}: luck share λ by step")


def reward_table(
    where: str, share: str, rewards: tuple[tuple[bool, ...], ...], schedules: tuple[int, ...]
) -> Chart | None:
    """Draw a table of rewards: a row a schedule, a square a rollout."""
    if not rewards or not rewards[0]:
        return None
    sums = [f"{sum(row)} of {len(row)}" for row in rewards]
    all_or_none = sum(len(set(row)) == 1 for row in rewards)
    title = f"{all_or_none} of {len(rewards)} schedules decide every rollout alike"
    caption = "Squares marked 1 are rewards, those marked 0 none."

    def draw(width: float) -> tuple[float, list[str]]:
        cell = min(CELL, (width - SCHEDULE_WIDTH - SUMS_WIDTH) / len(rewards[0]))
        parts = [svg.text("rollout", SCHEDULE_WIDTH, 12, "soft")]
        for at, (number, row, told) in enumerate(zip(schedules, rewards, sums, strict=True)):
            y = 20 + at * cell
            parts.append(svg.text(f"schedule {number}", SCHEDULE_WIDTH - 10, y + cell / 2 + 4, None, "end"))
            parts += [
                _square(number, k, reward, (SCHEDULE_WIDTH + k * cell, y), cell)
                for k, reward in enumerate(row)
            ]
            parts.append(svg.text(told, SCHEDULE_WIDTH + len(row) * cell + 10, y + cell / 2 + 4, "soft"))
        return 24 + len(rewards) * cell, parts

    return drawn(title, caption, ("schedule", "rollout", "reward"), draw, about=f"{where}. {share}")


def _square(schedule: int, rollout: int, reward: bool, corner: tuple[float, float], cell: float) -> str:  # noqa: FBT001
    x, y = corner
    says = f"schedule {schedule}, rollout {rollout + 1}: {'success' if reward else 'failure'}"
    square = svg.tag("rect", x=x + 1, y=y + 1, width=cell - 2, height=cell - 2, class_="cell")
    digit = svg.text(str(int(reward)), x + cell / 2, y + cell / 2 + 4, "digit")
    row = (schedule, rollout + 1, int(reward))
    return svg.mark(says, [row], square, digit, look="won" if reward else "lost")


def _luck_finding(shares: tuple[Value, ...]) -> str:
    steps = sorted({share.of[2] for share in shares})
    first, last = ([s.value for s in shares if s.of[2] == step] for step in (steps[0], steps[-1]))
    if len(steps) == 1:
        return f"Luck share {_range(first)} in {len(first)} run{'s' * (len(first) > 1)} at step {steps[0]}"
    earlier, later = f"{_range(first)} at step {steps[0]}", f"{_range(last)} at step {steps[-1]}"
    if min(last) > max(first):
        return f"Luck share higher in the end: {earlier}, {later}"
    if max(last) < min(first):
        return f"Luck share lower in the end: {earlier}, {later}"
    return f"Luck shares overlap: {earlier}, {later}"


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Point:
    """A place where something was predicted and seen."""

    name: str  # what it is, in words
    kind: str  # what it is coloured by
    predicted: tuple[Fraction, ...]  # a prediction a panel
    seen: Fraction  # what was seen
    bar: Bar | None  # its interval; None where it has none


@dataclass(frozen=True)
class Predictor:
    """What predicts: its name, and how well, in words; empty where nothing says it."""

    name: str
    how_well: str


@dataclass(frozen=True)
class Scene:
    """Points, and the words about them."""

    title: str  # what it shows
    across: tuple[Predictor, ...]  # what predicts, a panel each
    up: str  # what was seen
    points: tuple[Point, ...]  # numbered in this order
    lacking: tuple[str, ...] = ()  # names of places where nothing was seen


def predicted_and_seen(scene: Scene, study: str) -> Chart | None:
    """Draw what was predicted against what was seen; None where nothing was."""
    if not scene.points:
        return None
    colour_of = in_turn(point.kind for point in scene.points)
    panels = [
        Panel(
            Axis(predictor.name, is_ratio=True),
            predictor.how_well,
            tuple(
                Spot(
                    float(point.predicted[at]),
                    float(point.seen),
                    f"{number} {_point_sentence(scene, point)}",
                    ((number, point.name, *point.predicted, point.seen, *_ends(point)),),
                    colour_of[point.kind],
                    point.bar,
                    str(number),
                )
                for number, point in enumerate(scene.points, 1)
            ),
            has_one=True,
        )
        for at, predictor in enumerate(scene.across)
    ]
    draw = scatter(panels, Axis(scene.up, is_ratio=True), list(colour_of.items()))
    columns = ("number", "place", *(predictor.name for predictor in scene.across), "seen", "low", "high")
    return drawn(scene.title, _scene_caption(scene), columns, draw, about=f"Study {study}: {scene.up}")


def _ends(point: Point) -> tuple[object, ...]:
    return (point.bar.low, point.bar.high) if point.bar else ("", "")


def _point_sentence(scene: Scene, point: Point) -> str:
    pairs = zip(scene.across, point.predicted, strict=True)
    words = ", ".join(f"{predictor.name} {fixed(x, 3)}" for predictor, x in pairs)
    bar = f", {point.bar.name} [{fixed(point.bar.low, 3)}, {fixed(point.bar.high, 3)}]" if point.bar else ""
    return f"{point.name}: {words}; seen {fixed(point.seen, 3)}{bar}"


def _scene_caption(scene: Scene) -> str:
    sentences = [capital(predictor.how_well) for predictor in scene.across if predictor.how_well]
    made = next((point.bar.made for point in scene.points if point.bar), "")
    sentences += [f"Bars: intervals, {made}"] if made else []
    sentences += ["Dashed: seen as predicted", "Solid line: no difference between the designs"]
    sentences += [f"Not drawn, as nothing was seen: {listed(scene.lacking)}"] if scene.lacking else []
    return ". ".join(sentences) + "."
