"""Units: an endpoint has that of what it measures, its range fits it; formulas and tests never mix two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions import expressions
from toolkit.decisions.endpoints import Endpoint, IntervalSpec, Rate
from toolkit.decisions.equivalence import MARGINS, expanded
from toolkit.decisions.expressions import names_in
from toolkit.decisions.rules import Rule
from toolkit.decisions.statistic import Statistic
from toolkit.decisions.values import exact
from toolkit.errors import RuleError
from toolkit.registers.columns import Column, Table
from toolkit.registers.schema import TABLES

POINTS = "percentage points"
POINTS_SUFFIX = "_pp"
NO_DIMENSION = "ratio"
PROBABILITY = "probability"


@dataclass(frozen=True)
class Unit:
    """A product of powers of named units; one without any is a ratio."""

    powers: tuple[tuple[str, int], ...] = ()

    def times(self, other: Unit, sign: int = 1) -> Unit:
        """Return the unit of a product; of a quotient where the sign is negative."""
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, 0) + sign * power
        return Unit(tuple(sorted((name, power) for name, power in powers.items() if power)))

    def __str__(self) -> str:
        above = [_power(name, power) for name, power in self.powers if power > 0]
        below = [_power(name, -power) for name, power in self.powers if power < 0]
        if not self.powers:
            return NO_DIMENSION
        return "/".join(["·".join(above) or "1", *below])


def check_units(
    endpoints: Mapping[str, Endpoint],
    statistics: Mapping[str, Statistic],
    intervals: Mapping[str, IntervalSpec],
    rules: Iterable[Rule],
) -> None:
    """Check the units of a registration.

    1. Every endpoint has the unit of what it measures; percentage points, and they alone, are named `_pp`.
    2. Its range lies within what can be measured, and so does the value that it waits for.
    3. A statistic has the unit of its formula.
    4. No formula and no test adds, subtracts or compares values of different units.
    """
    for endpoint in endpoints.values():
        _check_unit(endpoint)  # 1
        _check_range(endpoint)  # 2
    units = {name: unit_of(endpoint) for name, endpoint in endpoints.items()}
    waiting = dict(statistics)
    while waiting:  # those first of which others are made
        ready = {name: s for name, s in waiting.items() if not waiting.keys() & set(names_in(s.expression))}
        units |= {name: _unit_of_statistic(statistic, units) for name, statistic in ready.items()}  # 3
        waiting = {name: s for name, s in waiting.items() if name not in ready}
    units |= {name: units[interval.endpoint] for name, interval in intervals.items()}
    for rule in rules:
        for criterion in rule.criteria:
            _Test(units, f"{rule.id}.{criterion.id}").unit(criterion.expression)  # 4


def unit_of(endpoint: Endpoint) -> Unit:
    """Return the unit of what an endpoint measures.

    A rate of a count over one that bounds it is a fraction, and so is a figure without unit from 0 to 1. A
    quotient of equal units is a ratio. A mean over steps has the unit of its points; what waits for a
    threshold is counted in steps.
    """
    if endpoint.over_steps == "steps_to_threshold":
        return _named("steps")
    first, *second = columns = _columns(endpoint)
    if not second:
        return _unit_of_column(first)
    if isinstance(endpoint.outcome, Rate) and second[0].name in _bounds(TABLES[endpoint.register], first):
        return _named("fraction")
    above, below = (_unit_of_column(column) for column in columns)
    return above.times(below, -1)


def _unit_of_statistic(statistic: Statistic, units: Mapping[str, Unit]) -> Unit:
    """Return the unit of a formula whose names have units; it has to be the declared one."""
    where = f"statistics.{statistic.id}"
    unit = _Test(units, where).unit(statistic.expression) or Unit()
    if statistic.unit != str(unit):
        raise RuleError(
            "a statistic has another unit than its formula",
            expected=str(unit),
            found=statistic.unit,
            where=where,
            remedy="declare the unit of the formula; a quotient of equal units is a ratio",
        )
    _check_points(statistic, where)
    return unit


def _check_unit(endpoint: Endpoint) -> None:
    where = f"endpoints.{endpoint.id}"
    measured = str(unit_of(endpoint))
    if endpoint.unit != measured:
        raise RuleError(
            "an endpoint has another unit than what it measures",
            expected=measured,
            found=endpoint.unit,
            where=where,
            remedy="declare the unit of its outcome; rates are fractions, never percentages",
        )
    _check_points(endpoint, where)


def _check_points(declared: Endpoint | Statistic, where: str) -> None:
    name, unit = declared.id, declared.unit
    if name.endswith(POINTS_SUFFIX) != (unit == POINTS):
        raise RuleError(
            f"percentage points, and they alone, are named with {POINTS_SUFFIX}",
            expected=POINTS if name.endswith(POINTS_SUFFIX) else f"a name with {POINTS_SUFFIX}",
            found=f"{name} in {unit}",
            where=where,
        )


def _check_range(endpoint: Endpoint) -> None:
    low, high = _level(endpoint)
    if endpoint.threshold is not None:
        points = _possible(endpoint)
        _check_within(points, (endpoint.threshold,), "waits for a value", f"endpoints.{endpoint.id}")
    if endpoint.by == "seed" and len(endpoint.arms) > 1:  # first minus second
        low, high = (None, None) if low is None or high is None else (low - high, high - low)
    _check_within((low, high), (endpoint.low, endpoint.high), "has a range", f"endpoints.{endpoint.id}")


def _check_within(
    possible: tuple[Fraction | None, Fraction | None], declared: tuple[Fraction, ...], what: str, where: str
) -> None:
    low, high = possible
    if any((low is not None and end < low) or (high is not None and end > high) for end in declared):
        raise RuleError(
            f"an endpoint {what} outside what it can measure",
            expected=f"within {_end(low, 'any')} to {_end(high, 'any')}",
            found=" to ".join(_end(end, "") for end in declared),
            where=where,
        )


def _level(endpoint: Endpoint) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends of what one run, checkpoint or row can have, as far as they are known."""
    if endpoint.over_steps == "steps_to_threshold":
        return Fraction(0), Fraction(endpoint.steps[-1])
    low, high = _possible(endpoint)
    if endpoint.over_steps == "auc_gain":  # an area less a point
        return (None, None) if low is None or high is None else (low - high, high - low)
    return low, high


def _possible(endpoint: Endpoint) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends of what an outcome can be at one step."""
    first, *second = _columns(endpoint)
    if not second:
        low, high = (None if end is None else exact(end) for end in (first.low, first.high))
        return low, high
    if isinstance(endpoint.outcome, Rate) and second[0].name in _bounds(TABLES[endpoint.register], first):
        return Fraction(0), Fraction(1)
    never_negative = all(column.low is not None and column.low >= 0 for column in (first, *second))
    return Fraction(0) if never_negative else None, None


def _columns(endpoint: Endpoint) -> list[Column]:
    table = TABLES[endpoint.register]
    return [column for name in endpoint.outcome.columns for column in (table.column(name),) if column]


def _bounds(table: Table, column: Column) -> Iterator[str]:
    """Yield every column that bounds a column of the same row from above, and what bounds those."""
    for name in column.at_most:
        yield name
        above = table.column(name)
        if above:
            yield from _bounds(table, above)


def _unit_of_column(column: Column) -> Unit:
    """Return a column's unit; one without is a fraction where it lies between 0 and 1, else a number."""
    if column.unit is None:
        return _named("fraction" if (column.low, column.high) == (0, 1) else "number")
    name = column.unit.removesuffix("²")
    return Unit(((name, 1 if name == column.unit else 2),))


class _Test:
    """The units within one test; None is that of numbers without a name, which take any."""

    def __init__(self, units: Mapping[str, Unit], where: str) -> None:
        self._units = units
        self._where = where

    def unit(self, expression: expressions.Expression) -> Unit | None:
        match expression:
            case expressions.Number():
                return None
            case expressions.Name(name) | expressions.Call("lower" | "upper", (expressions.Name(name),)):
                return self._units[name]
            case expressions.Call("p" | "adjusted"):
                return _named(PROBABILITY)
            case expressions.Call(operator, _) if operator in MARGINS:
                return self.unit(expanded(expression))
            case expressions.Binary(operator, left, right):
                return self._binary(operator, self.unit(left), self.unit(right))
            case expressions.Call(operator, arguments):
                return self._call(operator, () if operator == "passes" else arguments)

    def _binary(self, operator: str, left: Unit | None, right: Unit | None) -> Unit | None:
        if operator in ("*", "/") and (left or right) is not None:
            return (left or Unit()).times(right or Unit(), 1 if operator == "*" else -1)
        same = self._same(operator, (left, right))
        return None if operator in expressions.COMPARISONS else same

    def _call(self, operator: str, arguments: tuple[expressions.Expression, ...]) -> Unit | None:
        units = [self.unit(argument) for argument in arguments]
        if operator == "slope":
            y, x = (unit or Unit() for unit in units)
            return y.times(x, -1)
        if operator == "rank_correlation":
            return Unit()
        same = self._same(operator, units)
        if operator == "variance":
            return (same or Unit()).times(same or Unit())
        if operator == "count":
            return _named("members")
        gives = expressions.OPERATORS[operator].gives
        return None if gives in (expressions.Kind.TRUTH, expressions.Kind.TRUTHS) else same

    def _same(self, operator: str, units: Iterable[Unit | None]) -> Unit | None:
        first, *others = dict.fromkeys(unit for unit in units if unit is not None) or (None,)
        if others:
            raise RuleError(
                f"{operator!r} takes values of one unit",
                expected=str(first),
                found=str(others[0]),
                where=self._where,
                remedy="compare like with like; a quotient of equal units is a ratio",
            )
        return first


def _named(name: str) -> Unit:
    return Unit(((name, 1),))


def _power(name: str, power: int) -> str:
    return name if power == 1 else f"{name}²" if power == 2 else f"{name}^{power}"  # noqa: PLR2004 - a square


def _end(value: Fraction | None, unknown: str) -> str:
    return unknown if value is None else f"{float(value):.15g}"
