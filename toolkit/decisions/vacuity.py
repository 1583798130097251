"""Whether a rule can be won and lost: over its endpoints' ranges, an outcome that never comes is no test.

Decided exactly, for all real values at once, by a satisfiability solver. Its "there are such values" is
believed only after those were evaluated as a study's values are; its "there are none" is a proof.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.evaluation import evaluate
from toolkit.decisions.formulas import Example, Formulas, undecided
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.rules import Criterion
from toolkit.decisions.values import Series, Truth, Value, kleene_all
from toolkit.errors import RuleError


@dataclass(frozen=True)
class Outcomes:
    """That both outcomes of a rule can happen, each shown by an example.

    Args:
        rule, reading: the rule, and its reading where it has several.
        passes: values at which everything that the reading asks for holds.
        misses: values at which something of it does not; a prediction in parts may then be met in part.
    """

    rule: str
    reading: str
    passes: Example
    misses: Example


def check_not_vacuous(book: RuleBook, only: Collection[str] | None = None) -> None:
    """Check that every rule can pass and can miss, in every reading, and that every criterion decides."""
    wanted = set(book.rules) if only is None else {book.rule(name).id for name in only}
    for rule in (rule for rule in book.rules.values() if rule.id in wanted):
        for reading in rule.readings or ("",):
            outcomes(book, rule.id, reading)
        for criterion in rule.criteria:
            name = f"criterion {criterion.id} of rule {rule.id}"
            for holds, never in ((True, "can never hold"), (False, "can never fail")):
                _example(book, [criterion], f"{name} {never}", f"rules.{rule.id}", holds=holds)


def outcomes(book: RuleBook, rule_id: str, reading: str = "") -> Outcomes:
    """Return values at which a rule passes, and values at which it misses."""
    rule = book.rule(rule_id)
    chosen = reading or rule.binding
    name = f"rule {rule.id}, read as {chosen!r}," if chosen else f"rule {rule.id}"
    passes, misses = (
        _example(book, rule.read_as(chosen), f"{name} {never}", f"rules.{rule.id}", holds=holds)
        for holds, never in ((True, "can never pass"), (False, "can never miss"))
    )
    return Outcomes(rule.id, chosen, passes, misses)


def _example(
    book: RuleBook, criteria: Sequence[Criterion], problem: str, where: str, *, holds: bool
) -> Example:
    """Return values at which all criteria hold, or at which one is lost; the problem, if there are none."""
    formulas = Formulas(book, where)
    together = formulas.all([formulas.of(criterion.expression) for criterion in criteria])
    example = formulas.example(together.holds if holds else together.fails)
    if example is None:
        raise RuleError(
            problem,
            expected="values within the declared ranges at which it does, and others at which it does not",
            found=f"none: {' and '.join(c.test for c in criteria)}, over {formulas.ranges()}",
            where=where,
            remedy="correct the number that the test compares with (a fraction is not in percentage points) "
            "or the range; or leave the test out: what cannot turn out otherwise tests nothing",
        )
    if _evaluated(book, criteria, example) is not holds:
        raise undecided(where, "the solver's values are not exact fractions")
    return example


def _evaluated(book: RuleBook, criteria: Sequence[Criterion], example: Example) -> Truth:
    """Return what criteria come to at given values, evaluated as a study's are."""

    def resolve(role: str, name: str) -> Value:
        if role == "value":
            return example.endpoints[name]
        if role == "passes":
            rule = book.rules[name]
            return _evaluated(book, rule.read_as(rule.binding), example)
        if role in ("p", "adjusted"):
            return example.tests[name][role == "adjusted"]
        return example.intervals[name][role == "upper"]

    truths = [evaluate(criterion.expression, resolve) for criterion in criteria]
    return kleene_all([truth for truth in truths if not isinstance(truth, Fraction | Series)])
