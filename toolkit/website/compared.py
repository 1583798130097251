"""What a rule's criteria compare with: read from their tests, so that charts draw what decides."""

import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from toolkit.decisions.expressions import COMPARISONS, Binary, Call, Expression, Name, Number
from toolkit.decisions.rules import Rule
from toolkit.decisions.values import Missing, Series
from toolkit.website.charts.members import EACH, LAST, REST, Comparison

MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "="}
HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}
READ_INTO = ("all", "any", "each", "majority", "count")


def comparisons(rule: Rule, endpoint: str, series: Series[Fraction]) -> tuple[Comparison, ...]:
    """Return what a rule's criteria compare the members of a series with, in every reading.

    Args:
        rule: the rule.
        endpoint: whose members.
        series: the members.
    """
    present = [(name, value) for name, value in series.items if not isinstance(value, Missing)]
    if not present or len(present) < len(series.items):
        return ()
    first, compared = present[0], []
    for part in _parts(rule):
        scope, sign, number = _members(part, endpoint)
        if not scope:
            continue
        bound = first[1] if number is None else number
        of = {EACH: present, REST: present[1:], LAST: present[-1:]}[scope]
        held = sum(HOLDS[sign](value, bound) for _, value in of)
        base = first[0] if number is None else None
        compared.append(Comparison(scope, sign, float(bound), base, held, len(of)))
    return tuple(dict.fromkeys(compared))


def _parts(rule: Rule) -> Iterator[Expression]:
    waiting: list[Expression] = [criterion.expression for criterion in rule.criteria]
    while waiting:
        part = waiting.pop(0)
        yield part
        if isinstance(part, Call) and part.operator in READ_INTO:
            waiting.extend(part.arguments)
        elif isinstance(part, Binary):
            waiting.extend((part.left, part.right))


def _members(part: Expression, endpoint: str) -> tuple[str, str, Fraction | None]:
    """Return which members are compared, how, and with what number; None for the first member."""
    series = Name(endpoint)
    of = {series: EACH, Call("rest", (series,)): REST, Call("last", (series,)): LAST}
    for left, sign, right in _sides(part):
        if left not in of:
            continue
        if (number := _number(right)) is not None:
            return of[left], sign, number
        if right == Call("first", (series,)):
            return of[left], sign, None
    return "", "", None


def _number(part: Expression) -> Fraction | None:
    """Return a number; a minus sign belongs to it."""
    match part:
        case Number(_, value):
            return value
        case Binary("-", Number("0", _), Number(_, value)):
            return -value
    return None


def _sides(part: Expression) -> Sequence[tuple[Expression, str, Expression]]:
    """Return both ways of reading a comparison; nothing of anything else."""
    if not isinstance(part, Binary) or part.operator not in COMPARISONS:
        return ()
    return (part.left, part.operator, part.right), (part.right, MIRRORED[part.operator], part.left)
