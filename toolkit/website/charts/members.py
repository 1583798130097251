"""The members of a series, a dot each, with their intervals, and what they are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.website.charts import marks
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.points import Lane, Reference, measured, points
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.theme import ACCENT

RATIO = "ratio"
EACH, REST, LAST = "each", "rest", "last"
SIDES = {">": "above", "<": "below", ">=": "at or above", "<=": "at or below", "=": "equal to"}


@dataclass(frozen=True)
class Member:
    """A member.

    Args:
        name: which.
        value: its value.
        low, high: ends of its interval; None where it has none.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Measured:
    """What is measured.

    Args:
        title: in words.
        member: what its members are: `checkpoint`, `run`.
        unit: their unit; a `ratio` is drawn against one.
        figure: what their register calls it.
    """

    title: str
    member: str
    unit: str
    figure: str


@dataclass(frozen=True)
class Comparison:
    """What a criterion compares members with.

    Args:
        scope: which members: `each`, the `rest` after the first, the `last`.
        sign: how.
        bound: with what value.
        base: the first member's name, where it is with the first member; else None.
        held: of how many it is true.
        of: how many are compared.
    """

    scope: str
    sign: str
    bound: float
    base: str | None
    held: int
    of: int


def members(
    what: Measured, dots: tuple[Member, ...], interval: str, compared: tuple[Comparison, ...] = ()
) -> Chart | None:
    """Draw the members of a series.

    Args:
        what: what is measured.
        dots: the members.
        interval: of what level the intervals are, where they come from, and what was resampled; or why there
            are none.
        compared: what a rule compares them with.
    """
    if not dots:
        return None
    lanes = [
        Lane(
            d.name,
            (measured(f"{what.member} {d.name}:", (d.name,), d.value, (d.low, d.high), ACCENT),),
            marks.with_interval(d.value, d.low, d.high),
        )
        for d in dots
    ]
    references = [Reference(1, "even", "1")] if what.unit == RATIO else []
    references += [Reference(bound, "limit", marks.plain(bound)) for bound in _bounds(what, compared)]
    bases = {c.bound: c.base for c in compared if c.base is not None}
    references += [
        Reference(bound, "first", f"{marks.short(name or '')} {bound:.3f}") for bound, name in bases.items()
    ]
    caption = f"{marks.capital(interval)}."
    if what.unit == RATIO:
        caption += " Dashed line: 1, where both sides are equal."
    for bound in _bounds(what, compared):
        caption += f" Dashed line in colour: {marks.plain(bound)}, with which the rule compares."
    for bound, name in bases.items():
        caption += f" Dotted line: {name}, the first, {bound:.3f}, with which the rule compares later ones."
    axis = Axis(what.unit, is_ratio=what.unit == RATIO)
    return drawn(
        finding(what, dots, compared),
        caption,
        (what.member, "value", "low", "high"),
        points(lanes, references, axis),
        about=marks.short(what.title, 160),
    )


def finding(what: Measured, dots: Sequence[Member], compared: Sequence[Comparison] = ()) -> str:
    """Return what the members show beside what they are compared with, in words made from them."""
    values, many = [dot.value for dot in dots], f"{what.member}s" if len(dots) > 1 else what.member
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    where = low if low == high else f"{low} to {high}"
    if what.unit != RATIO:
        figure = marks.short(what.figure)
        if not compared:
            return marks.capital(f"{figure} {where} over {len(dots)} {many}")
        every = "all " if len(dots) > 1 and all(c.held == len(dots) for c in compared) else ""
        title = _all_compared([c for c in compared if c.scope != EACH], what.member)
        numbers = [_number(c) for c in compared if c.scope == EACH]
        whole = marks.capital(f"{figure} {where} in {every}{len(dots)} {many}")
        return ", ".join((whole, *numbers)) + (f"; {title}" if title else "")
    if compared:
        title = marks.capital(_all_compared(compared, what.member))
        title += f", {where}" if len(dots) > 1 and all(c.base is None for c in compared) else ""
    elif (below := sum(value < 1 for value in values)) in (0, len(dots)):
        side = "below" if below else "not below"
        title = f"{'All ' if len(dots) > 1 else ''}{len(dots)} {many} {side} 1"
        title += f", {min(values):.3f} to {max(values):.3f}" if len(dots) > 1 else ""
    else:
        title = f"{below} of {len(dots)} {many} below 1"
    return title + marks.reaching_one([(dot.low, dot.high) for dot in dots])


def _bounds(what: Measured, compared: Sequence[Comparison]) -> list[float]:
    """Return the numbers that are compared with and have no line yet."""
    has_one = [1.0] if what.unit == RATIO else []
    bounds = dict.fromkeys(c.bound for c in compared if c.base is None)
    return [bound for bound in bounds if bound not in has_one]


def _number(comparison: Comparison) -> str:
    """Return of how many members it is true that they lie on their side of a number."""
    side = f"{SIDES[comparison.sign]} {marks.plain(comparison.bound)}"
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
    """Return of which members a comparison is true."""
    first = f"the first ({comparison.base}, {comparison.bound:.3f})" if new else "it"
    side = f"{SIDES[comparison.sign]} {marks.plain(comparison.bound) if comparison.base is None else first}"
    if comparison.scope == LAST:
        return f"the last {member} {'is ' if comparison.held else 'is not '}{side}"
    later = "later " if comparison.scope == REST else ""
    many = f"{later}{member}{'s' if comparison.of > 1 else ''}"
    if comparison.held == comparison.of:
        return f"{'all ' if comparison.of > 1 else ''}{comparison.of} {many} {side}"
    return f"{comparison.held or 'none'} of {comparison.of} {many} {side}"
