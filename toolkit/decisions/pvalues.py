"""Registered tests of significance, made exactly from the values of seeds or of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from toolkit.decisions.endpoints import Endpoint
from toolkit.decisions.interval import unavailable
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.significance import HOLM, MCNEMAR, SEEDS, SIGN_FLIP, Family, Significance
from toolkit.decisions.values import Missing, Scalar, Series, exact_text, whole

if TYPE_CHECKING:
    from toolkit.documents.decisions import SignificanceDocument
    from toolkit.estimators.exact_tests import ExactTest

ValueOf = Callable[[str], Scalar | Series[Fraction]]
Table = Sequence[Sequence[int | float]]
TableOf = Callable[[Endpoint], Table | Missing]
"""An endpoint's differences by seed and task, over a common denominator; whole where episodes are counted."""
# What is added up, as scores, is rounded to this, so that equal differences are equal.
GRID = 10**9


@dataclass(frozen=True)
class PValue:
    """A registered test, made.

    Args:
        test: what was registered.
        p: its p-value, or what is missing for it.
        units, differing: how many differences there are, and how many of them are not zero; 0 without p.
        family: what it is adjusted in; None where it is in no family.
        adjusted: the adjusted p-value, or what is missing; None without a family.
    """

    test: Significance
    p: Scalar
    units: int = 0
    differing: int = 0
    family: Family | None = None
    adjusted: Scalar | None = None

    @property
    def words(self) -> str:
        """What it gives, and how it is made, in words."""
        if isinstance(self.p, Missing):
            return f"no p-value ({self.test.made}): {'; '.join(self.p.reasons)}"
        counted = f"{self.units} {self.test.over}, {self.differing} with a difference"
        said = f"p = {float(self.p):.4g} ({self.test.made}; {counted})"
        if self.family is None or self.adjusted is None:
            return said
        value = self.adjusted
        number = "none" if isinstance(value, Missing) else f"{float(value):.4g}"
        return f"{said}; {number} {self.family.made}"

    def as_dict(self) -> SignificanceDocument:
        """Return the test as it is printed with `--json`."""
        test = self.test
        exact, decimal, missing = _printed(self.p)
        document: SignificanceDocument = {
            "name": test.id,
            "endpoint": test.endpoint,
            "method": test.method,
            "over": test.over,
            "alternative": test.alternative,
            "made": test.made,
            "n": self.units,
            "differing": self.differing,
            "p": exact,
            "p_decimal": decimal,
        }
        if missing is not None:
            document["p_missing"] = missing
        if self.family is not None and self.adjusted is not None:
            document["family"] = self.family.id
            document["adjusted_by"] = self.family.made
            exact, decimal, missing = _printed(self.adjusted)
            document["adjusted"] = exact
            document["adjusted_decimal"] = decimal
            if missing is not None:
                document["adjusted_missing"] = missing
        return document


def p_value(name: str, book: RuleBook, value: ValueOf, table: TableOf) -> PValue:
    """Make a registered test; adjusted where it is in a family."""
    made = {other: _made(book.tests[other], book, value, table) for other in book.adjusted_with(name)}
    test, family, own = book.tests[name], book.family_of(name), made[name]
    adjusted = None if family is None else _adjusted(family, made)[name]
    if isinstance(own, Missing):
        return PValue(test, own, family=family, adjusted=adjusted)
    return PValue(test, own.p_value, own.units, own.differing, family, adjusted)


def _made(test: Significance, book: RuleBook, value: ValueOf, table: TableOf) -> ExactTest | Missing:
    from toolkit.estimators import mcnemar_test, sign_flip_test, wilcoxon_test

    endpoint = book.endpoints[test.endpoint]
    differences = _of_seeds(value(test.endpoint)) if test.over == SEEDS else _of_tasks(table(endpoint))
    if isinstance(differences, Missing):
        return differences
    try:
        if test.method == MCNEMAR:
            return mcnemar_test(differences, test.alternative)
        if test.method == SIGN_FLIP:
            return sign_flip_test(differences, test.alternative)
        return wilcoxon_test(differences, test.alternative, test.zeros)
    except ValueError as error:
        return unavailable(f"{test.id} of {test.endpoint}: {error}")


def _of_seeds(value: Scalar | Series[Fraction]) -> list[int] | Missing:
    """Return the differences of seeds over their common denominator."""
    numbers = whole(value.values if isinstance(value, Series) else (value,))
    if isinstance(numbers, Missing):
        return numbers
    scale = lcm(*(number.denominator for number in numbers))
    return [int(number * scale) for number in numbers]


def _of_tasks(table: Table | Missing) -> list[int] | Missing:
    """Return the difference of each task, all seeds together, as whole numbers."""
    if isinstance(table, Missing):
        return table
    sums = [sum(map(Fraction, of)) for of in zip(*table, strict=True)]
    counted = all(isinstance(number, int) for of in table for number in of)
    return [int(total) if counted else round(total * GRID) for total in sums]


def _adjusted(family: Family, made: Mapping[str, ExactTest | Missing]) -> dict[str, Scalar]:
    """Return the adjusted p-values of a family; with one of its p-values missing it has none."""
    from toolkit.estimators import benjamini_hochberg, holm

    gaps = {name: one for name, one in made.items() if isinstance(one, Missing)}
    if gaps:
        reasons = (f"family {family.id} lacks p({n}): {'; '.join(gap.reasons)}" for n, gap in gaps.items())
        return dict.fromkeys(made, Missing(all(gap.not_run for gap in gaps.values()), tuple(reasons)))
    adjust = holm if family.method == HOLM else benjamini_hochberg
    given = [one.p_value for one in made.values() if not isinstance(one, Missing)]
    return dict(zip(made, adjust(given), strict=True))


def _printed(value: Scalar) -> tuple[str | None, float | None, list[str] | None]:
    """Return a value exactly, as a decimal, and what is missing for it."""
    if isinstance(value, Missing):
        return None, None, list(value.reasons)
    return exact_text(value), float(value), None
