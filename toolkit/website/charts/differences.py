"""A rule's estimate by seed: its members, their mean, its interval, zero and the registered threshold."""

from dataclasses import dataclass
from fractions import Fraction

from toolkit.website.charts import marks
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.points import Dot, Lane, Reference, points
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import ACCENT, FAINT

MOST_ROWS = 8  # more seeds than these share one row
COLUMNS = ("member", "value", "low", "high")


@dataclass(frozen=True)
class Spread:
    """An estimate and the members that it is the mean of.

    Args:
        title: what is measured.
        unit: its unit.
        arms: the arms compared, first minus second; or the one measured.
        member: what the members are: `seed`, `run`.
        members: (name, value), those without a value left out.
        absent: how many members have no value.
        mean: their mean; None where a member is missing.
        bar: its interval.
        threshold: the registered threshold.
        bounds: the numbers that the rule's tests hold the interval against.
        says: what the interval shows, in the terms of these tests.
    """

    title: str
    unit: str
    arms: tuple[str, ...]
    member: str
    members: tuple[tuple[str, Fraction], ...]
    absent: int
    mean: Fraction | None
    bar: marks.Bar | None
    threshold: Fraction | None
    bounds: tuple[Fraction, ...] = ()
    says: str = ""


def seed_differences(spread: Spread) -> Chart | None:
    """Draw an estimate: a dot a member, the mean, its interval, zero and the registered threshold."""
    if not spread.members:
        return None
    dots = [
        Dot(float(value), None, None, f"{name}: {marks.signed(value)}", ((name, value, "", ""),), FAINT)
        for name, value in ((f"{spread.member} {name}", value) for name, value in spread.members)
    ]
    if len(dots) > MOST_ROWS:
        lanes = [Lane(f"{len(dots)} {spread.member}s", tuple(dots))]
    else:
        lanes = [
            Lane(f"{spread.member} {name}", (dot,), marks.signed(value))
            for (name, value), dot in zip(spread.members, dots, strict=True)
        ]
    if spread.mean is not None:
        lanes.append(Lane("mean", (_mean(spread, spread.mean),), marks.signed(spread.mean)))
    references = [Reference(0, "zero", "zero")]
    marked = marks.marked(spread.threshold, spread.bounds)
    references += [Reference(float(bound), "limit", marks.plain(bound, "+g")) for bound in marked]
    draw = points(lanes, references, Axis(_axis(spread), "signed"))
    return drawn(finding(spread), caption(spread), COLUMNS, draw, about=spread.title)


def _mean(spread: Spread, mean: Fraction) -> Dot:
    bar = spread.bar
    says = f"mean of {len(spread.members)} {spread.member}{'s' if len(spread.members) > 1 else ''}: "
    says += marks.signed(mean) + (f", {bar.words}" if bar else "")
    ends = (bar.low, bar.high) if bar else ("", "")
    low, high = (float(bar.low), float(bar.high)) if bar else (None, None)
    return Dot(float(mean), low, high, says, (("mean", mean, *ends),), ACCENT, "diamond")


def finding(spread: Spread) -> str:
    """Return what the members show, in words made from them."""
    values, whole = [value for _, value in spread.members], len(spread.members) + spread.absent
    each = f"{spread.member}{'s' if whole > 1 else ''}"
    if len(spread.arms) > 1:
        above = sum(value > 0 for value in values)
        equal = sum(value == 0 for value in values)
        first, second = (arm.replace("_", " ") for arm in spread.arms[:2])
        title = f"{first} above {second} in {above} of {whole} {each}"
        title += f", equal in {equal}" if equal else ""
    else:
        low, high = (f"{float(value):.4g}" for value in (min(values), max(values)))
        title = (
            f"{' '.join(spread.arms).replace('_', ' ') or spread.title}: {low} to {high} over {whole} {each}"
        )
    title += f", {spread.absent} missing" if spread.absent else ""
    if spread.mean is not None:
        title += f"; mean {marks.signed(spread.mean)}"
    if spread.bar and spread.says:
        title += f", {spread.bar.name} {spread.says}"
    return marks.capital(title)


def caption(spread: Spread) -> str:
    """Return what the marks do not say: how the interval was made, and what the lines stand for."""
    parts = [f"{spread.absent} without a value, so that there is no mean."] if spread.absent else []
    if spread.bar:
        parts.append(f"Bar: {spread.bar.words} of the mean, {spread.bar.made}.")
    else:
        parts.append("No interval was registered or can be had for it.")
    if spread.threshold is not None and spread.threshold not in spread.bounds:
        parts.append(f"Dashed line: registered threshold {marks.plain(spread.threshold, '+g')}.")
    if dashed := [marks.plain(bound) for bound in spread.bounds if bound]:
        parts.append(f"Dashed line{'s' if len(dashed) > 1 else ''}: {marks.listed(dashed)}.")
    return " ".join(parts)


def _axis(spread: Spread) -> str:
    if len(spread.arms) > 1:
        return f"{' minus '.join(arm.replace('_', ' ') for arm in spread.arms[:2])} ({spread.unit})"
    return spread.unit
