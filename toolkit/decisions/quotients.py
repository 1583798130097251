"""Quotients over what may be zero: their size says little, and a reader is told so."""

from collections.abc import Iterator
from fractions import Fraction

from toolkit.decisions.expressions import Binary, Call, Expression, Name
from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Missing, Scalar, Series, mean_of

_MEMBERS = 2


def means_divided_by(expression: Expression) -> Iterator[str]:
    """Yield the endpoints whose mean a test divides by."""
    match expression:
        case Binary(operator, left, right):
            yield from means_divided_by(left)
            yield from means_divided_by(right)
            if operator == "/":
                yield from _means(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from means_divided_by(argument)


def _means(divisor: Expression) -> Iterator[str]:
    """Yield the endpoint that a divisor is the mean of; of another expression no interval is known."""
    match divisor:
        case Call("mean" | "abs", (Name(name),)) | Name(name):
            yield name
        case Call("abs", (inside,)):
            yield from _means(inside)


def caution(name: str, value: Scalar | Series[Fraction], interval: Interval | Missing | None) -> str:
    """Say that a mean that is divided by is not told from zero; nothing where it is, or is not known.

    Near zero means: zero lies in the interval of the mean. That is the registered interval, where the mean
    has one; else Student's over its members, at the level of those that are registered.
    """
    mean = mean_of(value)
    if isinstance(mean, Missing):
        return ""
    if isinstance(interval, Interval):
        low, high, level = float(interval.low), float(interval.high), float(interval.level)
        origin = "its registered interval"
    else:
        members = value.present() if isinstance(value, Series) else ()
        if isinstance(members, Missing) or len(members) < _MEMBERS:
            return ""
        from toolkit.estimators.secondary import USUAL_LEVEL, t_interval

        level = USUAL_LEVEL
        low, high = t_interval([float(member) for member in members], level)
        origin = f"Student's interval over {len(members)} members"
    if not low <= 0 <= high:
        return ""
    return (
        f"the quotient's denominator, the mean of {name}, is not told from zero: {float(mean):+.4f}, "
        f"{level:.0%} [{low:+.4f}, {high:+.4f}] ({origin}); the size and the sign of the quotient say little"
    )
