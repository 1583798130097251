"""What a test is made of, and the operators it may use: a closed set."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


class Kind(Enum):
    """What an expression gives."""

    NUMBER = "a number"
    NUMBERS = "a series of numbers"
    TRUTH = "true or false"
    TRUTHS = "a series of true or false"
    INTERVAL = "an interval"
    RULE = "a rule"


@dataclass(frozen=True)
class Number:
    """A decimal number, exactly as written."""

    text: str
    value: Fraction


@dataclass(frozen=True)
class Name:
    """An endpoint, an interval or a rule."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator applied to arguments."""

    operator: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Binary:
    """Arithmetic or comparison."""

    operator: str
    left: Expression
    right: Expression


Expression = Number | Name | Call | Binary

COMPARISONS = (">=", "<=", ">", "<", "=")
ARITHMETIC = ("+", "-", "*", "/")

_NUMBER, _NUMBERS, _TRUTH, _TRUTHS = Kind.NUMBER, Kind.NUMBERS, Kind.TRUTH, Kind.TRUTHS


@dataclass(frozen=True)
class Operator:
    """An operator: the kinds it takes, the kind it gives, and what it means.

    Args:
        takes: kinds of the arguments; with `many`, the kind of each of one or more.
        gives: kind of the result; a number operator keeps a series a series where `elementwise`.
        meaning: one line for `toolkit explain --language`.
        many: any number of arguments, at least one.
        elementwise: also accepts a series in its first argument and then gives a series.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    meaning: str
    many: bool = False
    elementwise: bool = False


OPERATORS: dict[str, Operator] = {
    "all": Operator((_TRUTH,), _TRUTH, "every argument holds", many=True),
    "any": Operator((_TRUTH,), _TRUTH, "at least one argument holds", many=True),
    "not": Operator((_TRUTH,), _TRUTH, "the argument does not hold"),
    "passes": Operator((Kind.RULE,), _TRUTH, "the verdict of another rule is pass or met"),
    "each": Operator((_TRUTHS,), _TRUTH, "it holds for every member of the series"),
    "majority": Operator((_TRUTHS,), _TRUTH, "it holds for more than half of the series"),
    "count": Operator((_TRUTHS,), _NUMBER, "for how many members of the series it holds"),
    "within": Operator(
        (_NUMBER, _NUMBER, _NUMBER),
        _TRUTH,
        "within(x, centre, margin): |x - centre| <= margin",
        elementwise=True,
    ),
    "between": Operator(
        (_NUMBER, _NUMBER, _NUMBER), _TRUTH, "between(x, low, high): low <= x <= high", elementwise=True
    ),
    "decreasing": Operator((_NUMBERS,), _TRUTH, "every member of the series is below the one before it"),
    "mean": Operator((_NUMBERS,), _NUMBER, "arithmetic mean of the series"),
    "min": Operator((_NUMBERS,), _NUMBER, "smallest member of the series"),
    "max": Operator((_NUMBERS,), _NUMBER, "largest member of the series"),
    "first": Operator((_NUMBERS,), _NUMBER, "first member of the series"),
    "last": Operator((_NUMBERS,), _NUMBER, "last member of the series"),
    "rest": Operator((_NUMBERS,), _NUMBERS, "the series without its first member"),
    "abs": Operator((_NUMBER,), _NUMBER, "absolute value", elementwise=True),
    "lower": Operator((Kind.INTERVAL,), _NUMBER, "lower end of a registered interval"),
    "upper": Operator((Kind.INTERVAL,), _NUMBER, "upper end of a registered interval"),
}
