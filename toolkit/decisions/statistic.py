"""A declared number: a formula over endpoints, such as a ratio of two variances or a slope over cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.expressions import Expression, Kind, kind_of, names_in
from toolkit.decisions.grammar import parse
from toolkit.decisions.keys import SPANS, Key, Value, keys
from toolkit.decisions.section import Section, identifier
from toolkit.errors import RuleError

if TYPE_CHECKING:
    from toolkit.documents.decisions import StatisticDocument

STATISTIC = keys(
    Key("title", Value.TEXT, "what it is, in words"),
    Key("formula", Value.TEXT, "how it is made of endpoints and statistics, in the language of tests"),
    Key("unit", Value.TEXT, "unit of its formula; `ratio` of a quotient of equal units"),
    Key("range", Value.RANGE, "values in `unit` between which a rule must be able to pass and to miss"),
    SPANS,
)


@dataclass(frozen=True)
class Statistic:
    """One number that is made of endpoints, exactly as they are measured; the keys of `STATISTIC` say how.

    Args:
        id: its name in tests.
        expression: the formula, parsed.
        low, high: its range. A quotient has no bounds of its own, and a value that lies outside is decided
            on all the same.
    """

    id: str
    title: str
    formula: str
    expression: Expression
    unit: str
    low: Fraction
    high: Fraction
    spans: tuple[str, ...] = ()

    def as_dict(self) -> StatisticDocument:
        """Return what it is made of as it is printed with `--json`."""
        return {"id": self.id, "title": self.title, "unit": self.unit, "formula": self.formula}


def read_statistic(name: str, content: object) -> Statistic:
    """Read one statistic."""
    section = Section(content, f"statistics.{identifier(name, 'statistics')}", STATISTIC)
    formula = section.text("formula")
    low, high = section.range("range")
    statistic = Statistic(
        id=name,
        title=section.text("title"),
        formula=formula,
        expression=parse(formula, section.where),
        unit=section.text("unit"),
        low=low,
        high=high,
        spans=section.texts("spans"),
    )
    section.done()
    return statistic


def check_statistics(statistics: Mapping[str, Statistic], endpoints: Mapping[str, Kind]) -> None:
    """Check that every formula gives a number and is made of endpoints and statistics, without a circle."""
    kinds = {**endpoints, **dict.fromkeys(statistics, Kind.NUMBER)}
    for statistic in statistics.values():
        where = f"statistics.{statistic.id}"
        kind = kind_of(statistic.expression, kinds, where)
        if kind is not Kind.NUMBER:
            raise RuleError("a statistic is one number", found=kind.value, where=where)
        below = made_of(names_in(statistic.expression), statistics)
        if statistic.id in below:
            raise RuleError("a statistic is made of itself", where=where)
        if not below & set(endpoints):
            raise RuleError("a statistic reads no endpoint", found=statistic.formula, where=where)


def made_of(names: Iterable[str], statistics: Mapping[str, Statistic]) -> set[str]:
    """Return some names, and those that the statistics among them are made of."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in statistics and name not in found:
            waiting += names_in(statistics[name].expression)
        found.add(name)
    return found
