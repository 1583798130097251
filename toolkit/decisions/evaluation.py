"""Evaluating an expression: exact numbers, Kleene truth, nothing missing ever counted as zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import cast

from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number, names_in
from toolkit.decisions.values import (
    Missing,
    Scalar,
    Series,
    Truth,
    Value,
    kleene_all,
    kleene_any,
    kleene_majority,
    kleene_not,
    together,
)
from toolkit.errors import RuleError

Resolve = Callable[[str, str], Value]
"""(role, name) → value; the role is `value`, `lower`, `upper` or `passes`."""

# Far beyond any endpoint, and still a double.
LARGEST = 10**100

_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
}
_CALCULATE: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
_REDUCE: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "mean": lambda values: sum(values, Fraction(0)) / len(values),
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}
_NAMED = ("lower", "upper", "passes")


def evaluate(expression: Expression, resolve: Resolve) -> Value:
    """Return the value of an expression whose kinds were checked.

    Args:
        expression: a checked expression.
        resolve: gives the value of a name in its role.

    Raises:
        RuleError: two series with different members are combined.
    """
    match expression:
        case Number(_, value):
            return value
        case Name(name):
            return resolve("value", name)
        case Binary(operator, left, right):
            return _binary(operator, evaluate(left, resolve), evaluate(right, resolve))
        case Call(operator, (Name(name),)) if operator in _NAMED:
            return resolve(operator, name)
        case Call(operator, arguments):
            return _call(operator, [evaluate(argument, resolve) for argument in arguments])


def subject(expression: Expression) -> Expression | None:
    """Return the part of a test whose number a reader wants to see, or None for a test of tests."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return subject(inside)
        case Call("within" | "between", (inside, *_)) | Call("decreasing", (inside,)):
            return inside
        case Binary(operator, left, _) if operator in _COMPARE:
            return left
        case _:
            return None


def compared_with(expression: Expression) -> Expression | None:
    """Return what the subject of a test is compared with, where that is no number as written."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return compared_with(inside)
        case Binary(operator, _, right) if operator in _COMPARE:
            return right if any(names_in(right)) else None
        case _:
            return None


def _call(operator: str, values: list[Value]) -> Value:
    if operator in _REDUCE:
        return _reduce(operator, cast("Series[Fraction]", values[0]))
    return _APPLY[operator](values)


def _reduce(operator: str, series: Series[Fraction]) -> Scalar:
    members = series.present()
    if isinstance(members, Missing):
        return members
    return _REDUCE[operator](members) if members else _empty(operator)


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
        value, second, third = values
        absent = [bound for bound in (second, third) if isinstance(bound, Missing)]
        if absent:
            unknown = together(absent)
            return (
                Series(value.unit, tuple((k, unknown) for k, _ in value.items))
                if isinstance(value, Series)
                else unknown
            )
        a, b = cast("Fraction", second), cast("Fraction", third)
        return _each_number(lambda x: inside(x, a, b), value)

    return apply


def _decreasing(values: list[Value]) -> Value:
    members = cast("Series[Fraction]", values[0]).values
    falls = [cast("Truth", _pair("<", after, before)) for before, after in pairwise(members)]
    return kleene_all(falls) if falls else _empty("decreasing")


def _each_number(function: Callable[[Fraction], Fraction | bool], value: Value) -> Value:
    if isinstance(value, Series):
        return cast("Value", cast("Series[Fraction]", value).map(function))
    return value if isinstance(value, Missing) else function(cast("Fraction", value))


_APPLY: dict[str, Callable[[list[Value]], Value]] = {
    "all": lambda values: kleene_all(cast("list[Truth]", values)),
    "any": lambda values: kleene_any(cast("list[Truth]", values)),
    "not": lambda values: kleene_not(cast("Truth", values[0])),
    "each": _quantify("each", kleene_all),
    "majority": _quantify("majority", kleene_majority),
    "count": _count,
    "within": _bounded(lambda x, centre, margin: abs(x - centre) <= margin),
    "between": _bounded(lambda x, low, high: low <= x <= high),
    "decreasing": _decreasing,
    "rest": _rest,
    "abs": lambda values: _each_number(abs, values[0]),
}


def _binary(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left, Series) and isinstance(right, Series):
        if [key for key, _ in left.items] != [key for key, _ in right.items]:
            raise RuleError("two series with different members are combined", where=operator)
        pairs = zip(left.items, right.items, strict=True)
        items = tuple((key, _pair(operator, a, b)) for (key, a), (_, b) in pairs)
        return cast("Value", Series(left.unit, items))
    if isinstance(left, Series):
        return cast("Value", Series(left.unit, tuple((k, _pair(operator, v, right)) for k, v in left.items)))
    if isinstance(right, Series):
        return cast("Value", Series(right.unit, tuple((k, _pair(operator, left, v)) for k, v in right.items)))
    return _pair(operator, left, right)


def _pair(operator: str, left: object, right: object) -> Fraction | bool | Missing:
    absent = [value for value in (left, right) if isinstance(value, Missing)]
    if absent:
        return together(absent)
    a, b = cast("Fraction", left), cast("Fraction", right)
    if operator in _COMPARE:
        return _COMPARE[operator](a, b)
    if operator == "/" and b == 0:
        return Missing(not_run=False, reasons=("a quotient over zero",))
    value = _CALCULATE[operator](a, b)
    return value if abs(value) < LARGEST else Missing(not_run=False, reasons=("a number beyond all bounds",))


def _empty(operator: str) -> Missing:
    return Missing(not_run=False, reasons=(f"{operator} of an empty series",))
