"""Checking a test before any row is read: every name declared, every operator given what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.decisions.expressions import (
    ARITHMETIC,
    OPERATORS,
    Binary,
    Call,
    Expression,
    Kind,
    Name,
    Number,
)
from toolkit.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SERIES = {Kind.NUMBER: Kind.NUMBERS, Kind.TRUTH: Kind.TRUTHS}


def check_test(expression: Expression, names: Mapping[str, Kind], where: str) -> None:
    """Check that a test gives true or false, from declared names.

    Raises:
        RuleError: an undeclared name, or an operator applied to what it does not take.
    """
    kind = kind_of(expression, names, where)
    if not any(names_in(expression)):
        raise RuleError("a test reads nothing: it holds, or does not, whatever the study finds", where=where)
    if kind is not Kind.TRUTH:
        raise RuleError("a test does not give true or false", found=kind.value, where=where)


def kind_of(expression: Expression, names: Mapping[str, Kind], where: str) -> Kind:
    """Return what an expression gives.

    Raises:
        RuleError: as `check_test`.
    """
    match expression:
        case Number():
            return Kind.NUMBER
        case Name(name):
            if name not in names:
                raise RuleError(
                    f"{name!r} is not declared",
                    expected="an endpoint, an interval or a rule of the registration",
                    found=name,
                    where=where,
                )
            return names[name]
        case Binary(operator, left, right):
            return _binary(operator, kind_of(left, names, where), kind_of(right, names, where), where)
        case Call(operator, arguments):
            return _call(operator, [kind_of(argument, names, where) for argument in arguments], where)


def names_in(expression: Expression) -> Iterator[str]:
    """Yield every name that an expression mentions, in order of appearance."""
    match expression:
        case Name(name):
            yield name
        case Binary(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from names_in(argument)
        case Number():
            return


def _binary(operator: str, left: Kind, right: Kind, where: str) -> Kind:
    for kind in (left, right):
        if kind not in (Kind.NUMBER, Kind.NUMBERS):
            raise RuleError(f"{operator!r} takes numbers", found=kind.value, where=where)
    one = Kind.NUMBER if operator in ARITHMETIC else Kind.TRUTH
    return _SERIES[one] if Kind.NUMBERS in (left, right) else one


def _call(name: str, kinds: list[Kind], where: str) -> Kind:
    operator = OPERATORS[name]
    takes = operator.takes * len(kinds) if operator.many else operator.takes
    if len(kinds) != len(takes):
        raise RuleError(
            f"{name!r} takes {len(takes)} arguments", found=f"{len(kinds)} arguments", where=where
        )
    series = operator.elementwise and kinds[0] is Kind.NUMBERS
    for position, (kind, wanted) in enumerate(zip(kinds, takes, strict=True)):
        if kind is not wanted and not (series and position == 0):
            raise RuleError(f"{name!r} takes {wanted.value}", found=kind.value, where=where)
    return _SERIES[operator.gives] if series else operator.gives
