"""Evaluating an expression: exact numbers, Kleene truth, nothing missing ever counted as zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import cast

from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number
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
_QUANTIFY: dict[str, Callable[[Sequence[Truth]], Truth]] = {
    "each": kleene_all,
    "majority": kleene_majority,
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


def _call(operator: str, values: list[Value]) -> Value:
    first = values[0]
    match operator:
        case "all":
            return kleene_all(cast("list[Truth]", values))
        case "any":
            return kleene_any(cast("list[Truth]", values))
        case "not":
            return kleene_not(cast("Truth", first))
        case "each" | "majority":
            truths = cast("Series[bool]", first).values
            return _QUANTIFY[operator](truths) if truths else _empty(operator)
        case "count":
            present = cast("Series[bool]", first).present()
            return present if isinstance(present, Missing) else Fraction(sum(present))
        case "within" | "between":
            return _inside(operator, first, cast("Scalar", values[1]), cast("Scalar", values[2]))
        case "abs":
            return _unary(abs, first)
        case "decreasing":
            return _decreasing(cast("Series[Fraction]", first))
        case "rest":
            series = cast("Series[Fraction]", first)
            return Series(series.unit, series.items[1:])
        case _:
            members = cast("Series[Fraction]", first).present()
            if isinstance(members, Missing) or not members:
                return members if isinstance(members, Missing) else _empty(operator)
            return _REDUCE[operator](members)


def _inside(operator: str, value: Value, second: Scalar, third: Scalar) -> Value:
    absent = [bound for bound in (second, third) if isinstance(bound, Missing)]
    if absent:
        return together(absent)
    if operator == "within":
        centre, margin = cast("Fraction", second), cast("Fraction", third)
        return _unary(lambda x: abs(x - centre) <= margin, value)
    low, high = cast("Fraction", second), cast("Fraction", third)
    return _unary(lambda x: low <= x <= high, value)


def _decreasing(series: Series[Fraction]) -> Truth:
    falls = [
        cast("Truth", _pair("<", after, before))
        for before, after in zip(series.values, series.values[1:], strict=False)
    ]
    return kleene_all(falls) if falls else _empty("decreasing")


def _unary(function: Callable[[Fraction], Fraction | bool], value: Value) -> Value:
    if isinstance(value, Series):
        return cast("Value", cast("Series[Fraction]", value).map(function))
    return value if isinstance(value, Missing) else function(cast("Fraction", value))


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
    return _CALCULATE[operator](a, b)


def _empty(operator: str) -> Missing:
    return Missing(not_run=False, reasons=(f"{operator} of an empty series",))
