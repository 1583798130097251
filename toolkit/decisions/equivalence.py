"""Equivalence and non-inferiority: an interval held against a margin, and the level of that test."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number
from toolkit.errors import RuleError

# At a level of 50% each one-sided test would be one at 25%, and below it hardly one at all.
LEAST_LEVEL = Fraction(1, 2)
EQUIVALENT, NON_INFERIOR = MARGINS = ("equivalent", "non_inferior")


def expanded(call: Call) -> Expression:
    """Return what a comparison with a margin stands for: ends of the interval held against numbers."""
    interval, margin = call.arguments
    low = Binary(">=", Call("lower", (interval,)), Binary("-", Number("0", Fraction(0)), margin))
    if call.operator == NON_INFERIOR:
        return low
    return Call("all", (low, Binary("<=", Call("upper", (interval,)), margin)))


def margins(expression: Expression) -> Iterator[Call]:
    """Yield every comparison with a margin that a test makes."""
    match expression:
        case Call(operator, arguments):
            if operator in MARGINS:
                yield expression
            for argument in arguments:
                yield from margins(argument)
        case Binary(_, left, right):
            yield from margins(left)
            yield from margins(right)


def procedures(expression: Expression, intervals: Mapping[str, IntervalSpec]) -> tuple[str, ...]:
    """Return what the comparisons with margins of a checked test amount to, in words."""
    return tuple(_procedure(*_parts(call, intervals)) for call in margins(expression))


def check_margins(expression: Expression, intervals: Mapping[str, IntervalSpec], where: str) -> None:
    """Check that margins are numbers above zero, and the levels of their intervals those of a test."""
    for call in margins(expression):
        margin = call.arguments[1]
        if not isinstance(margin, Number) or margin.value <= 0:
            raise RuleError(
                f"the margin of {call.operator!r} is no number above zero",
                expected=f"{call.operator}(INTERVAL, 0.03)",
                where=where,
            )
        _, _, spec = _parts(call, intervals)
        if spec.level <= LEAST_LEVEL:
            raise RuleError(
                f"{call.operator!r} of a {float(spec.level):.0%} interval is a test at no useful level",
                expected="an interval above 50%: one of 90% makes one-sided tests at 5%",
                found=f"{spec.id}, {float(spec.level):.0%}",
                where=where,
            )


def _parts(call: Call, intervals: Mapping[str, IntervalSpec]) -> tuple[str, Number, IntervalSpec]:
    match call:
        case Call(operator, (Name(name), Number() as margin)):
            return operator, margin, intervals[name]
    raise TypeError(call)


def _procedure(operator: str, margin: Number, spec: IntervalSpec) -> str:
    level = f"{float(100 * (1 - spec.level) / 2):.4g}%"
    interval = f"the {float(100 * spec.level):.4g}% interval {spec.id}"
    if operator == EQUIVALENT:
        return (
            f"equivalence at ±{margin.text}: two one-sided tests (TOST) at {level} each, since both ends of "
            f"{interval} are held against the margin"
        )
    return (
        f"non-inferiority at -{margin.text}: a one-sided test at {level}, since the lower end of {interval} "
        "is held against the margin"
    )
