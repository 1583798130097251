"""Figures with their intervals: what rules estimate, members of a series, luck shares, predictions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from toolkit.rules.terms import Picture
from toolkit.rules.values import Missing, Value, fixed
from toolkit.site.charts import svg
from toolkit.site.charts.plots import (
    Axis,
    Bar,
    Dot,
    Lane,
    Panel,
    Reference,
    Scale,
    Spot,
    capital,
    drawn_dot,
    lane_of,
    listed,
    plain,
    points,
    scatter,
    short,
    signed,
    spanned,
    tick_texts,
)
from toolkit.site.charts.svg import ACCENT, FAINT, Chart, colours, drawn, in_turn

CELL_WIDTH, CELL_HEIGHT = 190, 30
CELL_HEAD = 18
"""Of drawings inside a table, and of their axis in its head."""
MOST_ROWS = 8  # more seeds than these share one row


@dataclass(frozen=True)
class Estimate:
    """What a rule estimates: its members, their mean with its interval, and what that is held against."""

    rule: str  # rule, title, verdict: the rule
    title: str
    verdict: str
    what: str = ""  # what is measured
    unit: str = ""  # its unit; empty where nothing is
    mean: Fraction | None = None  # None where there is none, as where a member is missing
    bar: Bar | None = None  # its registered interval; None where there is none
    threshold: Fraction | None = None  # the value beside zero that the interval is compared with
    bounds: tuple[Fraction, ...] = ()  # the numbers that the rule's tests hold the interval against
    says: str = ""  # what the interval shows, in the terms of these tests
    arms: tuple[str, ...] = ()  # the arms compared, first minus second; or the one measured
    member: str = ""  # what the members are: `seed`, `run`
    members: tuple[tuple[str, Fraction], ...] = ()  # (name, value), those without a value left out
    absent: int = 0  # how many members have no value

    @property
    def marks(self) -> tuple[Fraction, ...]:
        """Where the threshold and the bounds are marked; zero has a line of its own."""
        return tuple(dict.fromkeys(value for value in (self.threshold, *self.bounds) if value))


Whole = tuple[Estimate, Dot, Bar]
"""A row with an estimate, as it is drawn, and an interval."""


def forest(rows: Sequence[Estimate], study: str) -> Chart | None:
    """Draw the estimates of a study's rules with their intervals; None where no rule has one."""
    shown = _shown(rows)
    if not shown:
        return None
    unit = shown[0][0].unit
    lanes = [
        Lane(row.rule, (dot,), row.verdict.replace("_", " "), tuple(map(float, row.marks)))
        for row, dot, _ in shown
    ]
    return drawn(
        _forest_finding(shown),
        _forest_caption(rows, shown, unit),
        ("rule", "verdict", "estimate", "low", "high"),
        points(lanes, [Reference(0, "zero", "zero")], Axis(f"estimate ({unit})", "signed")),
        about=f"Study {study}: every registered interval, and the verdict of its rule",
    )


def _shown(rows: Sequence[Estimate]) -> list[Whole]:
    """Return the rows with an estimate and an interval in the unit that most of them have."""
    whole = []
    for row in rows:
        if row.mean is not None and row.bar is not None:
            verdict, shows = row.verdict.replace("_", " "), f", {row.says}" if row.says else ""
            says = f"{row.rule}, {row.title}: {signed(row.mean)}, {row.bar.words}{shows}; {verdict}"
            dot = Dot((row.rule, verdict), row.mean, row.bar.low, row.bar.high, says, ACCENT, "diamond")
            whole.append((row, dot, row.bar))
    units = Counter(row.unit for row, *_ in whole).most_common(1)
    return [one for one in whole if one[0].unit == units[0][0]]


def _forest_finding(shown: Sequence[Whole]) -> str:
    across = sum(bar.holds_zero for *_, bar in shown)
    rules = f"{len(shown)} rule{'s' if len(shown) > 1 else ''}"
    if across == len(shown):
        title = f"The interval of {'each of ' if len(shown) > 1 else ''}{rules} includes zero"
    else:
        title = f"The intervals of {across or 'none'} of {rules} include zero"
    bounded = [row for row, *_ in shown if row.bounds]
    if len(bounded) == 1:
        title += f"; that of {bounded[0].rule} is {bounded[0].says}"
    elif bounded:
        kept = sum(not row.says.startswith("not ") for row in bounded)
        title += f"; {kept or 'none'} of {len(bounded)} keep{'s' * (kept == 1)} registered bounds"
    return title


def _forest_caption(rows: Sequence[Estimate], shown: Sequence[Whole], unit: str) -> str:
    caption = "Diamonds: estimates. Bars: their intervals"
    for made, count in Counter(bar.made for *_, bar in shown).most_common():
        of_these = ", ".join(row.rule for row, _, bar in shown if bar.made == made)
        caption += f", {made}" + ("" if count == len(shown) else f" ({of_these})")
    caption += "."
    if any(row.marks for row, *_ in shown):
        caption += (
            " Short upright ticks: registered thresholds, and bounds that a rule asks its interval to keep."
        )
    if others := [row.rule for row in rows if row.mean is not None and row.bar and row.unit != unit]:
        caption += f" In another unit, and not drawn: {listed(others)}."
    if lacking := [row.rule for row in rows if row.mean is None or row.bar is None]:
        caption += f" Without an interval, and not drawn: {listed(lacking)}."
    return caption


@dataclass(frozen=True)
class Cells:
    """A table's forest plot."""

    unit: str  # of the estimates that are drawn
    head: str  # the axis, for the head of its column; empty where nothing is drawn
    # Rule → its drawing; rules without an interval, or in another unit than most, have none
    by_rule: dict[str, str]


def cells(rows: Sequence[Estimate]) -> Cells:
    """Return the drawings of a table's rows."""
    shown = _shown(rows)
    if not shown:
        return Cells("", "", {})
    values = [0.0]
    for row, dot, bar in shown:
        values += map(float, (dot.value, bar.low, bar.high, *row.marks))
    scale = spanned(values, 6, CELL_WIDTH - 6, Axis(""))
    ticks = scale.ticks(42)
    named = [
        (words, min(max(scale.at(tick), 14), CELL_WIDTH - 14), 12)
        for tick, words in zip(ticks, tick_texts(ticks, "signed"), strict=True)
    ]
    head = svg.picture([svg.texts(named, "tick", "middle")], "drawing cell", CELL_WIDTH, CELL_HEAD)
    return Cells(shown[0][0].unit, head, {row.rule: _cell(row, dot, scale) for row, dot, _ in shown})


def _cell(row: Estimate, dot: Dot, scale: Scale) -> str:
    parts = [svg.line(scale.at(0), 0, scale.at(0), CELL_HEIGHT, "zero")]
    for bound in row.marks:
        at = scale.at(float(bound))
        anchor = "end" if at > CELL_WIDTH - 34 else None
        parts.append(svg.line(at, 3, at, CELL_HEIGHT - 3, "limit tick"))
        parts.append(svg.text(plain(bound), at + (-3 if anchor else 3), 9, "bound", anchor))
    parts.append(drawn_dot(dot, scale, CELL_HEIGHT / 2))
    return svg.picture(parts, "drawing cell", CELL_WIDTH, CELL_HEIGHT)


def seed_differences(estimate: Estimate) -> Chart | None:
    """Draw an estimate: a dot a member, the mean, its interval, zero and the registered threshold."""
    if not estimate.members:
        return None
    named = [(f"{estimate.member} {name}", value) for name, value in estimate.members]
    dots = [Dot((name,), value, says=f"{name}: {signed(value)}", look=FAINT) for name, value in named]
    if len(dots) > MOST_ROWS:
        lanes = [Lane(f"{len(dots)} {estimate.member}s", tuple(dots))]
    else:
        lanes = [Lane(name, (dot,), signed(value)) for (name, value), dot in zip(named, dots, strict=True)]
    if estimate.mean is not None:
        bar, many = estimate.bar, "s" if len(dots) > 1 else ""
        says = f"mean of {len(dots)} {estimate.member}{many}: {signed(estimate.mean)}"
        says += f", {bar.words}" if bar else ""
        low, high = (bar.low, bar.high) if bar else (None, None)
        mean = Dot(("mean",), estimate.mean, low, high, says, ACCENT, "diamond")
        lanes.append(Lane("mean", (mean,), signed(estimate.mean)))
    references = [Reference(0, "zero", "zero")]
    references += [Reference(float(mark), "limit", plain(mark, "+g")) for mark in estimate.marks]
    axis = estimate.unit
    if len(estimate.arms) > 1:
        axis = f"{' minus '.join(arm.replace('_', ' ') for arm in estimate.arms[:2])} ({axis})"
    return drawn(
        finding(estimate),
        _seeds_caption(estimate),
        ("member", "value", "low", "high"),
        points(lanes, references, Axis(axis, "signed")),
        about=estimate.what,
    )


def finding(estimate: Estimate) -> str:
    """Return what the members show, in words made from them."""
    values, whole = [value for _, value in estimate.members], len(estimate.members) + estimate.absent
    each = f"{estimate.member}{'s' if whole > 1 else ''}"
    if len(estimate.arms) > 1:
        above = sum(value > 0 for value in values)
        equal = sum(value == 0 for value in values)
        first, second = (arm.replace("_", " ") for arm in estimate.arms[:2])
        title = f"{first} above {second} in {above} of {whole} {each}"
        title += f", equal in {equal}" if equal else ""
    else:
        low, high = (f"{float(value):.4g}" for value in (min(values), max(values)))
        measured = " ".join(estimate.arms).replace("_", " ") or estimate.what
        title = f"{measured}: {low} to {high} over {whole} {each}"
    title += f", {estimate.absent} missing" if estimate.absent else ""
    if estimate.mean is not None:
        title += f"; mean {signed(estimate.mean)}"
    if estimate.bar and estimate.says:
        title += f", {estimate.bar.name} {estimate.says}"
    return capital(title)


def _seeds_caption(estimate: Estimate) -> str:
    parts = [f"{estimate.absent} without a value, so that there is no mean."] if estimate.absent else []
    if estimate.bar:
        parts.append(f"Bar: {estimate.bar.words} of the mean, {estimate.bar.made}.")
    else:
        parts.append("No interval was registered or can be had for it.")
    if estimate.threshold is not None and estimate.threshold not in estimate.bounds:
        parts.append(f"Dashed line: registered threshold {plain(estimate.threshold, '+g')}.")
    if dashed := [plain(bound) for bound in estimate.bounds if bound]:
        parts.append(f"Dashed line{'s' if len(dashed) > 1 else ''}: {listed(dashed)}.")
    return " ".join(parts)


RATIO = "ratio"
EACH, REST, LAST = "each", "rest", "last"
SIDES = {">": "above", "<": "below", ">=": "at or above", "<=": "at or below", "=": "equal to"}
CELL = 32  # pixels
SCHEDULE_WIDTH, SUMS_WIDTH = 96, 60


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
    what: Measured, dots: tuple[Dot, ...], interval: str, compared: tuple[Comparison, ...] = ()
) -> Chart | None:
    """Draw the members of a series."""
    if not dots:
        return None
    lanes = [lane_of(d.of[0], d.said(f"{what.member} {d.of[0]}:", ACCENT)) for d in dots]
    caption, references, is_ratio = f"{capital(interval)}.", [], what.unit == RATIO
    if is_ratio:
        references.append(Reference(1, "even", "1"))
        caption += " Dashed line: 1, where both sides are equal."
    for bound in dict.fromkeys(c.bound for c in compared if c.base is None):
        if bound != 1 or not is_ratio:
            references.append(Reference(bound, "limit", plain(bound)))
            caption += f" Dashed line in colour: {plain(bound)}, with which the rule compares."
    for bound, name in {c.bound: c.base for c in compared if c.base is not None}.items():
        references.append(Reference(bound, "first", f"{short(name)} {bound:.3f}"))
        caption += f" Dotted line: {name}, the first, {bound:.3f}, with which the rule compares later ones."
    return drawn(
        _members_finding(what, dots, compared),
        caption,
        (what.member, "value", "low", "high"),
        points(lanes, references, Axis(what.unit, is_ratio=is_ratio)),
        about=short(what.title, 160),
    )


def _members_finding(what: Measured, dots: Sequence[Dot], compared: Sequence[Comparison]) -> str:
    values, many = [float(dot.value) for dot in dots], f"{what.member}s" if len(dots) > 1 else what.member
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


def _reaching_one(values: Sequence[Dot]) -> str:
    """Return how many intervals reach one, to end a title; nothing where there are none."""
    whole = [(v.low, v.high) for v in values if v.low is not None and v.high is not None]
    across = sum(low <= 1 <= high for low, high in whole)
    return f"; {across or 'no'} interval{'s reach' if across > 1 else ' reaches'} 1" if whole else ""


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


def ratios(what: str, ratios: tuple[Dot, ...], interval: str) -> Chart | None:
    """Draw ratios of (trajectory, step) against one, a row a checkpoint and a colour a trajectory."""
    if not ratios:
        return None
    colour_of = in_turn(ratio.of[0] for ratio in ratios)
    places, lanes = list(colour_of), []
    for ratio in sorted(ratios, key=lambda ratio: (places.index(ratio.of[0]), ratio.of[1])):
        name, step = ratio.of
        dot = ratio.said(f"{name} at step {step}: ratio", colour_of[name])
        lanes.append(lane_of(f"{short(name)}@{step}", dot))
    values = [float(ratio.value) for ratio in ratios]
    title = f"Below 1 at {sum(value < 1 for value in values)} of {len(values)} checkpoints"
    title += f", {min(values):.3f} to {max(values):.3f}{_reaching_one(ratios)}"
    caption = f"{capital(interval)}. Dashed line: 1, where pairing changes nothing."
    draw = points(lanes, [Reference(1, "even", "1")], Axis("ratio", is_ratio=True))
    return drawn(title, caption, ("trajectory", "step", "ratio", "low", "high"), draw, about=what)


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


def luck_shares(what: str, shares: tuple[Dot, ...], interval: str) -> Chart | None:
    """Draw luck shares of (run, arm, step) by step and arm, a dot a run."""
    if not shares:
        return None
    colour_of = colours(share.of[1] for share in shares)
    lanes = []
    for step, (arm, look) in product(sorted({share.of[2] for share in shares}), colour_of.items()):
        lane = sorted((s for s in shares if s.of[1:] == (arm, step)), key=lambda s: s.of[0])
        if lane:
            name = f"step {step}, {arm.replace('_', ' ')}"
            dots = [share.said(f"luck share of {share.of[0]} at step {step}:", look) for share in lane]
            lanes.append(lane_of(name, *dots, note=f"{len(lane)} runs" if len(lane) > 1 else ""))
    caption = f"A dot a run; {interval}. Above 0 even without luck: what lies below zero is cut off."
    draw = points(lanes, (), Axis("luck share λ"))
    columns = ("run", "arm", "step", "luck share", "low", "high")
    return drawn(_luck_finding(shares), caption, columns, draw, about=f"{what}: luck share λ by step")


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
            for k, reward in enumerate(row):
                x, kind = SCHEDULE_WIDTH + k * cell, "success" if reward else "failure"
                square = svg.tag("rect", x=x + 1, y=y + 1, width=cell - 2, height=cell - 2, class_="cell")
                digit = svg.text(str(int(reward)), x + cell / 2, y + cell / 2 + 4, "digit")
                says = f"schedule {number}, rollout {k + 1}: {kind}"
                held = [(number, k + 1, int(reward))]
                parts.append(svg.mark(says, held, square, digit, look="won" if reward else "lost"))
            parts.append(svg.text(told, SCHEDULE_WIDTH + len(row) * cell + 10, y + cell / 2 + 4, "soft"))
        return 24 + len(rewards) * cell, parts

    return drawn(title, caption, ("schedule", "rollout", "reward"), draw, about=f"{where}. {share}")


def _luck_finding(shares: tuple[Dot, ...]) -> str:
    steps = sorted({share.of[2] for share in shares})
    first, last = ([float(s.value) for s in shares if s.of[2] == step] for step in (steps[0], steps[-1]))
    if len(steps) == 1:
        return f"Luck share {_range(first)} in {len(first)} run{'s' * (len(first) > 1)} at step {steps[0]}"
    earlier, later = f"{_range(first)} at step {steps[0]}", f"{_range(last)} at step {steps[-1]}"
    if min(last) > max(first):
        return f"Luck share higher in the end: {earlier}, {later}"
    if max(last) < min(first):
        return f"Luck share lower in the end: {earlier}, {later}"
    return f"Luck shares overlap: {earlier}, {later}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def predicted_and_seen(
    picture: Picture,
    seen: Mapping[str, Value],
    bars: Mapping[str, Bar | None],
    how_well: Sequence[str],
    study: str,
) -> Chart | None:
    """Draw what was predicted against what was seen, by statistic; None where nothing was.

    How well each of the picture's predictors does is said in words; empty where nothing says it.
    """
    there = [
        (p, value, bars.get(p.interval))
        for p in picture.points
        if isinstance(value := seen[p.statistic], Fraction)
    ]
    if not there:
        return None
    colour_of = in_turn(point.kind for point, *_ in there)
    names = [predictor.name for predictor in picture.across]
    spots: list[list[Spot]] = [[] for _ in names]
    for number, (point, value, bar) in enumerate(there, 1):
        words = ", ".join(f"{name} {fixed(x, 3)}" for name, x in zip(names, point.predicted, strict=True))
        says = f"{number} {point.name}: {words}; seen {fixed(value, 3)}"
        says += f", {bar.name} [{fixed(bar.low, 3)}, {fixed(bar.high, 3)}]" if bar else ""
        row = (number, point.name, *point.predicted, value, *((bar.low, bar.high) if bar else ("", "")))
        for panel, x in zip(spots, point.predicted, strict=True):
            panel.append(Spot(float(x), float(value), says, (row,), colour_of[point.kind], bar, str(number)))
    panels = [
        Panel(Axis(name, is_ratio=True), well, tuple(held), has_one=True)
        for name, well, held in zip(names, how_well, spots, strict=True)
    ]
    made = next((f"Bars: intervals, {bar.made}" for *_, bar in there if bar), "")
    lacking = [p.name for p in picture.points if isinstance(seen[p.statistic], Missing)]
    sentences = [
        *map(capital, how_well),
        made,
        "Dashed: seen as predicted",
        "Solid line: no difference between the designs",
        f"Not drawn, as nothing was seen: {listed(lacking)}" if lacking else "",
    ]
    return drawn(
        picture.title,
        ". ".join(filter(None, sentences)) + ".",
        ("number", "place", *names, "seen", "low", "high"),
        scatter(panels, Axis(picture.up, is_ratio=True), list(colour_of.items())),
        about=f"Study {study}: {picture.up}",
    )
