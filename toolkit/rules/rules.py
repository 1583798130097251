"""Rules, their criteria, statistics, equivalence margins and tests, as a rules file has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from toolkit.errors import RuleError
from toolkit.prereg.record import AmendmentHead
from toolkit.rules.endpoints import Endpoint, IntervalSpec
from toolkit.rules.expressions import (
    Binary,
    Call,
    Expression,
    Kind,
    Name,
    Number,
    kind_of,
    names_in,
    walk,
)
from toolkit.rules.sections import Formula, Identifier, Range, Spans, Table, Text, Texts, identifier
from toolkit.structs import Document, about, one_of, replace

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
    return (part for part in walk(expression) if isinstance(part, Call) and part.operator in MARGINS)


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


SIGN_FLIP, WILCOXON, MCNEMAR = METHODS = ("sign flip", "wilcoxon", "mcnemar")
SEEDS, TASKS = OVER = ("seeds", "tasks")
ALTERNATIVES = ("two-sided", "greater", "less")
# What the signed-rank test does with differences of zero.
ZEROS_SAY = {
    "dropped": "zeros left out before ranking",
    "ranked": "zeros ranked along, their ranks then left out",
}
HOLM, BENJAMINI_HOCHBERG = ADJUSTMENTS = ("holm", "benjamini-hochberg")
ADJUSTED_BY = {
    HOLM: "Holm's step-down, which bounds the chance of any false rejection",
    BENJAMINI_HOCHBERG: "Benjamini and Hochberg's step-up, which bounds the expected share of false ones",
}
BINARY = ("successes", "observed_successes")  # what an episode has or has not
ARMS = FEWEST = 2  # a contrast; a single seed or task has one sign


class Significance(Table, frozen=True, kw_only=True):
    """A registered test that the differences of an endpoint lie about zero, exact."""

    method: Annotated[str, one_of(METHODS, "how it is made; each is exact")]
    endpoint: Annotated[Text, about("an endpoint by seed")]
    over: Annotated[str, one_of(OVER, "what the differences are of, and whose signs are by chance alike")] = (
        TASKS
    )
    alternative: Annotated[str, one_of(ALTERNATIVES, "where the mean is said to lie")]
    zeros: Annotated[str, one_of(ZEROS_SAY, "what becomes of differences of zero")] = ""
    spans: Spans = ()

    only: ClassVar = {"over": ("method", (SIGN_FLIP, WILCOXON)), "zeros": ("method", (WILCOXON,))}

    @property
    def made(self) -> str:
        """How it is made, in words."""
        if self.method == MCNEMAR:
            how = "McNemar's test, exact binomial on the discordant tasks"
        elif self.method == WILCOXON:
            how = f"Wilcoxon's signed-rank test over {self.over}, exact, midranks, {ZEROS_SAY[self.zeros]}"
        else:
            how = f"sign-flip test over {self.over}, exact over all signs"
        return f"{how}, {self.alternative}"

    def smallest(self, endpoint: Endpoint) -> Fraction:
        """Return the smallest p that it can give on an endpoint: that of differences with one sign."""
        units = len(endpoint.seeds) if self.over == SEEDS else endpoint.tasks
        return Fraction(2 if self.alternative == ALTERNATIVES[0] else 1, 2**units)


class Family(Table, frozen=True, kw_only=True):
    """Tests that are adjusted for each other, by name."""

    tests: Annotated[Texts, about("its tests, each once")]
    method: Annotated[str, one_of(ADJUSTED_BY, "how they are adjusted for each other")]
    spans: Spans = ()

    @property
    def made(self) -> str:
        """How its tests are adjusted, in words."""
        return f"adjusted among the {len(self.tests)} tests of {self.id} by {ADJUSTED_BY[self.method]}"


def check_tests(
    tests: Mapping[str, Significance], families: Mapping[str, Family], endpoints: Mapping[str, Endpoint]
) -> None:
    """Check that every test is of an endpoint that it can test, and in one family at most."""
    for test in tests.values():
        where = f"tests.{test.id}"
        if test.endpoint not in endpoints:
            raise RuleError(
                f"{test.endpoint!r} is not declared", expected="an endpoint", found=test.endpoint, where=where
            )
        problem = _problem(test, endpoints[test.endpoint])
        if problem:
            raise RuleError(problem, found=f"{test.made}, of {test.endpoint}", where=where)
    first: dict[str, str] = {}
    for family in families.values():
        where = f"families.{family.id}"
        if not family.tests or len(set(family.tests)) != len(family.tests):
            problem, found = "a family names its tests, each once", ", ".join(family.tests) or "none"
            raise RuleError(problem, found=found, where=where)
        for name in family.tests:
            if name not in tests:
                raise RuleError(
                    f"{name!r} is not declared",
                    expected=", ".join(tests) or "a test",
                    found=name,
                    where=where,
                )
            if name in first:
                raise RuleError(
                    "a test is in one family at most", found=f"{name}, in {first[name]}", where=where
                )
            first[name] = family.id


def check_adjusted(expression: Expression, families: Mapping[str, Family], where: str) -> None:
    """Check that an adjusted p-value is that of a test in a family."""
    in_families = {name for family in families.values() for name in family.tests}
    for part in walk(expression):
        match part:
            case Call("adjusted", (Name(name),)) if name not in in_families:
                raise RuleError(
                    f"{name!r} is in no family, and its p-value not adjusted",
                    expected=f"p({name}), or a family with {name}",
                    where=where,
                )


def _problem(test: Significance, endpoint: Endpoint) -> str:
    """Return why a test cannot be made of an endpoint, or nothing."""
    seeds, tasks = len(endpoint.seeds), endpoint.tasks
    units = seeds if test.over == SEEDS else tasks
    paired = (len(endpoint.arms), seeds, len(endpoint.steps), endpoint.schedules) == (ARMS, 1, 1, 1)
    problems = (
        (endpoint.by != "seed", "a test is of an endpoint by seed"),
        (
            test.method == MCNEMAR and not paired,
            "McNemar's test is of two arms, one seed, one step and one schedule",
        ),
        (
            test.method == MCNEMAR and endpoint.outcome.columns[0] not in BINARY,
            "McNemar's test is of successes",
        ),
        (not endpoint.low < 0 < endpoint.high, "a test is of what can lie on both sides of zero"),
        (test.over == TASKS and not tasks, "a test over tasks is of an evaluation set of registered size"),
        (units < FEWEST, f"a test over {test.over} takes two of them: the sign of one says nothing"),
    )
    return next((problem for wrong, problem in problems if wrong), "")


class Statistic(Table, frozen=True, kw_only=True):
    """One number that is made of endpoints, exactly as they are measured.

    A quotient has no bounds of its own: a value outside its range is decided on all the same.
    """

    title: Annotated[Text, about("what it is, in words")]
    formula: Annotated[Formula, about("how it is made of endpoints and statistics, in the language of tests")]
    unit: Annotated[Text, about("unit of its formula; `ratio` of a quotient of equal units")]
    range: Annotated[Range, about("values in `unit` between which a rule must be able to pass and to miss")]
    spans: Spans = ()

    @property
    def expression(self) -> Expression:
        """The formula, parsed."""
        return self.formula.expression

    @property
    def low(self) -> Fraction:
        """The lower end of its range."""
        return self.range[0]

    @property
    def high(self) -> Fraction:
        """The upper end of its range."""
        return self.range[1]


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


KINDS = ("hypothesis", "prediction", "gate")
RELATIONS = ("replaces", "restates", "adds")
# What a rule that is restated keeps.
_SAID = ("kind", "text", "confidence", "joint", "numbers")


class Criterion(Document, frozen=True):
    """One criterion of a rule; without a reading it belongs to all of them."""

    id: Annotated[Identifier, about("its name")]
    text: Annotated[Text, about("what has to hold, in words")]
    test: Annotated[Formula, about("the same in the language of tests")]
    reading: Annotated[Text | None, about("the reading of the rule that it belongs to; else all")] = None

    @property
    def expression(self) -> Expression:
        """The test, parsed."""
        return self.test.expression


class Rule(Table, frozen=True, kw_only=True):
    """One registered rule."""

    kind: Annotated[str, one_of(KINDS, "what it is")]
    parts: Annotated[
        str, one_of(("separate", "joint"), "whether it can be met in part (separate), or as a whole alone")
    ] = "separate"
    title: Annotated[Text, about("what it is about, in a few words")]
    text: Annotated[Text, about("what it says, in words")]
    criteria: Annotated[tuple[Criterion, ...], about("what has to hold: all of it, at least one")]
    estimate: Annotated[Text, about("the endpoint or statistic shown beside the verdict")] = ""
    interval: Annotated[Text, about("the interval of `estimate` that is shown with it")] = ""
    threshold: Annotated[
        Fraction | None,
        about(
            "what the interval is compared with beside zero, in the unit of `estimate`; a number of a test"
        ),
    ] = None
    secondary: Annotated[Texts, about("endpoints shown beside it that decide nothing")] = ()
    binding: Annotated[Text, about("the reading that decides, where there are several")] = ""
    readings: Annotated[dict[str, str], about("what each reading means")] = {}
    confidence: Annotated[Text, about("of a prediction, in words")] = ""
    superseded: Annotated[Text, about("why a prediction no longer applies; it is evaluated still")] = ""
    open: Annotated[Text, about("what a gate says when it passes")] = ""
    shut: Annotated[Text, about("what a gate says when it does not")] = ""
    spans: Spans = ()

    only: ClassVar = {"parts": ("kind", ("prediction",))}
    optional = ("parts",)

    @property
    def joint(self) -> bool:
        """Whether it is met or missed as a whole; a prediction that is not can be met in part."""
        return self.kind != "prediction" or self.parts == "joint"

    def says_the_same(self, other: Rule) -> bool:
        """Whether another rule has the same text and compares with the same numbers."""
        return all(getattr(self, name) == getattr(other, name) for name in _SAID)

    def read_as(self, reading: str) -> list[Criterion]:
        """Return the criteria that belong to a reading."""
        return [criterion for criterion in self.criteria if criterion.reading in (None, reading or None)]

    @property
    def numbers(self) -> frozenset[Fraction]:
        """The numbers that its tests compare with."""
        return frozenset(n for criterion in self.criteria for n in _numbers(criterion.expression))


@dataclass(frozen=True)
class Change:
    """What amendments did to a rule."""

    amendment: str  # id of the last one that names it
    relation: str  # what that one does: `replaces`, `restates` (and reads what it changed) or `adds`
    first: Rule  # the rule as it was first written: as frozen, or as added
    added_by: str = ""  # id of the amendment that added it; empty where it was frozen

    @property
    def frozen(self) -> Rule | None:
        """The rule as frozen; None where an amendment added it."""
        return None if self.added_by else self.first


def check_rule(rule: Rule) -> None:
    """Check that the parts of a rule fit each other."""
    ids = [criterion.id for criterion in rule.criteria]
    outcomes, odd = bool(rule.open and rule.shut), rule.threshold not in (None, *rule.numbers)
    used = {criterion.reading for criterion in rule.criteria if criterion.reading}
    problems = (
        (not ids, "has no criteria"),
        (len(set(ids)) != len(ids), "names a criterion twice"),
        (used != set(rule.readings), "uses other readings than it declares"),
        (bool(rule.readings) != bool(rule.binding), "does not say which reading binds"),
        (bool(rule.binding) and rule.binding not in rule.readings, "is bound to an undeclared reading"),
        ((rule.kind == "gate") != outcomes, "names two outcomes exactly if it is a gate"),
        (bool(rule.superseded) and rule.kind != "prediction", "can only be superseded if it is a prediction"),
        (odd, "has a threshold that no test has"),
        (bool(rule.interval) and not rule.estimate, "has an interval without an estimate"),
    )
    for wrong, problem in problems:
        if wrong:
            raise RuleError(f"rule {rule.id} {problem}", where=f"rules.{rule.id}")


def _numbers(expression: Expression) -> Iterator[Fraction]:
    """Yield every number that a test compares with; a minus sign belongs to its number."""
    match expression:
        case Number(_, value):
            yield value
        case Binary("-", Number("0", _), Number(_, value)):
            yield -value
        case Binary(_, left, right):
            yield from _numbers(left)
            yield from _numbers(right)
        case Call(operator, (_, _)) if operator in MARGINS:
            yield from _numbers(expanded(expression))
        case Call(_, arguments):
            for argument in arguments:
                yield from _numbers(argument)


def change_rules(
    rules: dict[str, Rule], changes: dict[str, Change], head: AmendmentHead, new: Mapping[str, Rule]
) -> None:
    """Apply one amendment to the rules."""
    where = f"amendment {identifier(head.id, 'amendment')}"
    pairs = [(rule, relation) for relation in RELATIONS for rule in getattr(head, relation)]
    relations = dict(pairs)
    if len(relations) != len(pairs) or set(new) != set(relations):
        raise RuleError(
            "an amendment's rules are not those that it replaces, restates or adds, each named once",
            expected=", ".join(rule for rule, _ in pairs) or "no rule",
            found=", ".join(new) or "no rule",
            where=where,
        )
    for name, rule in new.items():
        _check_relation(relations[name], rule, rules.get(name), where)
        if relations[name] == "adds":
            changes[name] = Change(head.id, "adds", rule, head.id)
        else:
            before = changes.get(name) or Change("", "", rules[name])
            changes[name] = replace(before, amendment=head.id, relation=relations[name])
        rules[name] = rule


def _check_relation(relation: str, rule: Rule, before: Rule | None, where: str) -> None:
    """Check that a rule is to the one before it what the amendment says."""
    problem, expected = "", None
    if relation == "adds" and before is not None:
        problem, expected = f"adds {rule.id}, which there is already", "a new name, or `replaces`"
    elif relation == "adds" and rule.superseded:
        problem = f"adds {rule.id} and says that it is superseded"
    elif relation != "adds" and before is None:
        problem = f"{relation} {rule.id}, which there is not yet"
        expected = "a rule that is frozen or was added by an earlier amendment, or `adds`"
    elif relation == "restates" and before is not None and not rule.says_the_same(before):
        problem = f"restates {rule.id} and changes its text or one of its numbers"
        expected = "the same text and numbers, or `replaces`"
    if problem:
        raise RuleError(f"an amendment {problem}", expected=expected, where=where)
