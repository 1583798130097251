"""Learning curves: a thin line a seed, a bold one an arm's mean, named where it ends."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby

from toolkit.decisions.measure import CurvePoint
from toolkit.decisions.values import fixed
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.lines import Frame, Line, Spot, lines
from toolkit.website.charts.marks import capital, listed
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import colours

COLUMNS = ("arm", "series", "step", "rate", "successes", "episodes")
MEAN, REPLICATION = "mean", "replication"
LOOKS = {MEAN: "bold", REPLICATION: "dashed"}


def learning_curves(
    points: tuple[CurvePoint, ...],
    what: str,
    measure: str,
    step: str = "step",
    within: tuple[Fraction, Fraction] | None = None,
) -> Chart | None:
    """Draw a rate over steps.

    Args:
        points: points of the curves; a replication is drawn dashed.
        what: what the curves are of.
        measure: the rate, as its register calls it.
        step: what the steps are.
        within: the smallest and largest rate of every chart that stands beside this one.
    """
    if not points:
        return None
    colour_of = colours(point.arm for point in points)
    held = []
    for (arm, series), of_series in groupby(sorted(points, key=_order), key=lambda p: (p.arm, p.series)):
        of = tuple(of_series)
        spots = tuple(_spot(point) for point in of)
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
    return drawn(finding(points), caption(points), COLUMNS, lines(held, frame), about=f"{what}: {measure}")


def _order(point: CurvePoint) -> tuple[bool, str, str, int]:
    """Return where a point comes: means last, so that they lie on top."""
    return point.series == MEAN, point.arm, point.series, point.step


def _spot(point: CurvePoint) -> Spot:
    says = f"{point.arm.replace('_', ' ')}, {point.series}, step {point.step}: "
    says += f"{fixed(100 * point.success, 2)}%"
    if point.episodes is not None:
        says += f", {point.successes} of {point.episodes}"
    counts = ("", "") if point.episodes is None else (point.successes, point.episodes)
    row = (point.arm, point.series, point.step, point.success, *counts)
    return Spot(point.step, float(point.success), says, (row,))


def finding(points: Sequence[CurvePoint]) -> str:
    """Return what the means show, in words made from them."""
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


def caption(points: Sequence[CurvePoint]) -> str:
    """Return what the lines stand for."""
    names = {point.series for point in points}
    text = f"Thin lines are {_seeds(points)} seeds" + (", bold lines their means" if MEAN in names else "")
    if REPLICATION in names:
        text += "; the dashed line is a replication that decides nothing"
    return f"{text}. Single steps have no interval: none is registered for them."


def _seeds(points: Sequence[CurvePoint]) -> str:
    """Return how many seeds an arm has, in words."""
    held: dict[str, set[str]] = {point.arm: set() for point in points}
    for point in points:
        if point.series not in (MEAN, REPLICATION):
            held[point.arm].add(point.series)
    counts = sorted({len(series) for series in held.values()})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
