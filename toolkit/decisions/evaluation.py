"""Evaluating an expression: exact numbers, Kleene truth, nothing missing ever counted as zero."""

import operator as operators
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

from toolkit.decisions import values as v
from toolkit.decisions.equivalence import MARGINS, NON_INFERIOR, expanded
from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number, names_in
from toolkit.decisions.summaries import OF_PAIRS, SUMMARIES
from toolkit.decisions.values import Missing, Scalar, Series, Truth, Value
from toolkit.errors import RuleError

Resolve = Callable[[str, str], Value]
"""(role, name) → value; the role is `value`, `lower`, `upper`, `p`, `adjusted` or `passes`."""

# Far beyond any endpoint, and still a double.
LARGEST = 10**100

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operators.ge,
    "<=": operators.le,
    ">": operators.gt,
    "<": operators.lt,
    "=": operators.eq,
}
CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
}
_NAMED = ("lower", "upper", "p", "adjusted", "passes")


def evaluate(expression: Expression, resolve: Resolve) -> Value:
    """Return the value of an expression whose kinds were checked."""
    match expression:
        case Number(_, value):
            return value
        case Name(name):
            return resolve("value", name)
        case Binary(operator, left, right):
            return _binary(operator, evaluate(left, resolve), evaluate(right, resolve))
        case Call(operator, (Name(name),)) if operator in _NAMED:
            return resolve(operator, name)
        case Call(operator, _) if operator in MARGINS:
            return evaluate(expanded(expression), resolve)
        case Call(operator, arguments):
            return _call(operator, [evaluate(argument, resolve) for argument in arguments])


def subject(expression: Expression) -> Expression | None:
    """Return the part of a test whose number a reader wants to see, or None for a test of tests."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return subject(inside)
        case Call(operator, _) if operator == NON_INFERIOR:
            return subject(expanded(expression))
        case Call("within" | "between", (inside, *_)) | Call("decreasing", (inside,)):
            return inside
        case Binary(operator, left, _) if operator in COMPARE:
            return left
        case _:
            return None


def compared_with(expression: Expression) -> Expression | None:
    """Return what the subject of a test is compared with, where that is no number as written."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return compared_with(inside)
        case Binary(operator, _, right) if operator in COMPARE:
            return right if any(names_in(right)) else None
        case _:
            return None


def _call(operator: str, values: list[Value]) -> Value:
    if operator in SUMMARIES:
        return _reduce(operator, cast("Series[Fraction]", values[0]))
    if operator in OF_PAIRS:
        return _of_pairs(operator, *cast("list[Series[Fraction]]", values))
    return _APPLY[operator](values)


def _reduce(operator: str, series: Series[Fraction]) -> Scalar:
    members = series.present()
    if isinstance(members, Missing):
        return members
    return _bounded_number(SUMMARIES[operator](members)) if members else _empty(operator)


def _of_pairs(operator: str, first: Series[Fraction], second: Series[Fraction]) -> Scalar:
    _check_members(operator, first, second)
    members = v.whole((first.present(), second.present()))
    if isinstance(members, Missing):
        return members
    return _bounded_number(OF_PAIRS[operator](*members)) if first.items else _empty(operator)


def _list(values: list[Value]) -> Value:
    """Return numbers as a series whose members are their places, from 1."""
    numbers = cast("list[Scalar]", values)
    return Series("place", tuple((str(place), number) for place, number in enumerate(numbers, 1)))


def _quantify(
    operator: str, quantifier: Callable[[Sequence[Truth]], Truth]
) -> Callable[[list[Value]], Value]:
    def apply(values: list[Value]) -> Value:
        truths = cast("Series[bool]", values[0]).values
        return quantifier(truths) if truths else _empty(operator)

    return apply


def _count(values: list[Value]) -> Value:
    present = cast("Series[bool]", values[0]).present()
    if isinstance(present, Missing):
        return present
    return Fraction(sum(present)) if present else _empty("count")


def _rest(values: list[Value]) -> Value:
    series = cast("Series[Fraction]", values[0])
    return Series(series.unit, series.items[1:])


def _bounded(inside: Callable[[Fraction, Fraction, Fraction], bool]) -> Callable[[list[Value]], Value]:
    def apply(values: list[Value]) -> Value:
        value, *rest = values
        bounds = v.whole(cast("list[Scalar]", rest))
        if not isinstance(bounds, Missing):
            return _each_number(lambda x: inside(x, *bounds), value)
        return (
            Series(value.unit, tuple((k, bounds) for k, _ in value.items))
            if isinstance(value, Series)
            else bounds
        )

    return apply


def _decreasing(values: list[Value]) -> Value:
    members = cast("Series[Fraction]", values[0]).values
    falls = [cast("Truth", _pair("<", after, before)) for before, after in pairwise(members)]
    return v.kleene_all(falls) if falls else _empty("decreasing")


def _each_number(function: Callable[[Fraction], Fraction | bool], value: Value) -> Value:
    if isinstance(value, Series):
        return cast("Value", cast("Series[Fraction]", value).map(function))
    return value if isinstance(value, Missing) else function(cast("Fraction", value))


_APPLY: dict[str, Callable[[list[Value]], Value]] = {
    "all": lambda values: v.kleene_all(cast("list[Truth]", values)),
    "any": lambda values: v.kleene_any(cast("list[Truth]", values)),
    "not": lambda values: v.kleene_not(cast("Truth", values[0])),
    "each": _quantify("each", v.kleene_all),
    "majority": _quantify("majority", v.kleene_majority),
    "count": _count,
    "within": _bounded(lambda x, centre, margin: abs(x - centre) <= margin),
    "between": _bounded(lambda x, low, high: low <= x <= high),
    "decreasing": _decreasing,
    "rest": _rest,
    "list": _list,
    "abs": lambda values: _each_number(abs, values[0]),
}


def _binary(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left, Series) and isinstance(right, Series):
        _check_members(operator, left, right)
        pairs = zip(left.items, right.items, strict=True)
        items = tuple((key, _pair(operator, a, b)) for (key, a), (_, b) in pairs)
        return cast("Value", Series(left.unit, items))
    if isinstance(left, Series):
        return cast("Value", Series(left.unit, tuple((k, _pair(operator, a, right)) for k, a in left.items)))
    if isinstance(right, Series):
        return cast("Value", Series(right.unit, tuple((k, _pair(operator, left, b)) for k, b in right.items)))
    return _pair(operator, left, right)


def _pair(operator: str, left: object, right: object) -> Fraction | bool | Missing:
    numbers = v.whole(cast("tuple[Scalar, Scalar]", (left, right)))
    if isinstance(numbers, Missing) or operator in COMPARE:
        return numbers if isinstance(numbers, Missing) else bool(COMPARE[operator](*numbers))
    if operator == "/" and numbers[1] == 0:
        return Missing(not_run=False, reasons=("a quotient over zero",))
    return _bounded_number(Fraction(CALCULATE[operator](*numbers)))


def _bounded_number(value: Scalar) -> Scalar:
    if isinstance(value, Missing) or abs(value) < LARGEST:
        return value
    return Missing(not_run=False, reasons=("a number beyond all bounds",))


def _check_members(operator: str, left: Series[Any], right: Series[Any]) -> None:
    if [key for key, _ in left.items] != [key for key, _ in right.items]:
        raise RuleError("two series with different members are combined", where=operator)


def _empty(operator: str) -> Missing:
    return Missing(not_run=False, reasons=(f"{operator} of an empty series",))
