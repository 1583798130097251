"""A rulebook: the rules of a registration with its amendments, checked as a whole, units included."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, get_args

from msgspec import field

from toolkit.errors import RuleError, UsageError, did_you_mean
from toolkit.prereg.record import AmendmentHead
from toolkit.prereg.registration import Registration
from toolkit.prereg.spans import SPANS as OF_SPANS
from toolkit.prereg.spans import Span, named_spans
from toolkit.registers.columns import ROLES, Column, MissingData
from toolkit.registers.columns import Table as Register
from toolkit.registers.schema import TABLES
from toolkit.rules import expressions
from toolkit.rules.endpoints import (
    BY_SEED,
    OVER_TASKS,
    SEED_BOOTSTRAP,
    Endpoint,
    IntervalSpec,
    common_to,
    read_endpoint,
)
from toolkit.rules.expressions import Kind, check_test, names_in
from toolkit.rules.plan import Cell, Columns, Plan, ProbePlan, check_probe, read_plan
from toolkit.rules.rules import (
    HOLM,
    MARGINS,
    Change,
    Family,
    Rule,
    Significance,
    Statistic,
    change_rules,
    check_adjusted,
    check_margins,
    check_rule,
    check_statistics,
    check_tests,
    expanded,
    made_of,
)
from toolkit.rules.sections import Identifier, Spans, Table, Text, Texts, identifier, keys, read
from toolkit.rules.terms import (
    OF_TOOLKIT,
    EvaluationSet,
    Picture,
    Scores,
    Terms,
    Words,
    check_picture,
    check_sizes,
    read_set,
    terms_of,
)
from toolkit.rules.values import exact
from toolkit.structs import Document, about, one_of, replace

LANGUAGE = 1
COMMON = ("interval_method", "interval_conventions")


class EarlyRun(Document, frozen=True):
    """A run that may precede the freeze."""

    run: Annotated[Text, about("name of a run that was launched before the freeze")]
    reason: Annotated[Text, about("why it was")]
    spans: Spans = ()


class Measured(Document, frozen=True, kw_only=True):
    """What rules and amendments declare alike."""

    endpoints: Annotated[dict[Identifier, Endpoint], about("what is measured")] = {}
    statistics: Annotated[dict[Identifier, Statistic], about("numbers made of endpoints")] = {}
    intervals: Annotated[dict[Identifier, IntervalSpec], about("intervals of endpoints and statistics")] = {}
    tests: Annotated[
        dict[Identifier, Significance], about("exact tests that differences are about zero")
    ] = {}
    families: Annotated[dict[Identifier, Family], about("tests that are adjusted for each other")] = {}
    probe: Annotated[
        ProbePlan | None, about("the gradient probe: one in a registration and its amendments")
    ] = None
    rules: Annotated[dict[Identifier, Rule], about("what decides")] = {}


class RulesFile(Measured, frozen=True, kw_only=True):
    """The rules of a registration: rules.toml."""

    language: Annotated[Literal[1], about("version of the rule language")]
    name: Annotated[Text, about("name of the registration, and of its folder")]
    title: Annotated[Text, about("the study in one line")]
    deciding_roles: Annotated[
        tuple[Annotated[str, one_of(ROLES)], ...],
        about("roles of the runs that enter decisions, at least one"),
    ]
    exceptions: Annotated[tuple[EarlyRun, ...], about("runs that may precede the freeze")] = ()
    words: Annotated[Words, about("the study's own words, where it has other than the toolkit's")] = Words()
    scores: Annotated[Scores | None, about("scores of episodes, where the study has scores")] = None
    missing: Annotated[MissingData | None, about("what becomes of episodes without an outcome")] = None
    attributes: Annotated[dict[Identifier, Texts], about("attributes of tasks, and the words of each")] = {}
    matrix: Annotated[tuple[Cell, ...], about("the runs: condition x arm x seed")] = ()
    training: Annotated[Columns, about("what `fixed` says of every run alike")] = field(
        default_factory=Columns
    )
    recipe: Annotated[
        dict[str, Any], about("settings of a language model's training, as of `toolkit train`")
    ] = {}
    spans: Annotated[
        dict[str, Span], about("lines of a document frozen elsewhere that the rules restate")
    ] = {}
    sets: Annotated[dict[Identifier, EvaluationSet], about("evaluations that belong together")] = {}
    interval_method: Annotated[dict[str, Any], about("what every interval says alike")] = {}
    interval_conventions: Annotated[dict[str, Any], about("the same, where a restatement added it")] = {}
    pictures: Annotated[dict[Identifier, Picture], about("predictions drawn beside what is seen")] = {}


class AmendmentFile(Measured, frozen=True, kw_only=True):
    """An amendment of the rules of a registration."""

    amendment: Annotated[AmendmentHead, about("what it is, and which rules it changes")]


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
        _check_unit(endpoint, unit_of(endpoint))  # 1
        _check_range(endpoint)  # 2
    units = {name: unit_of(endpoint) for name, endpoint in endpoints.items()}
    waiting = dict(statistics)
    while waiting:  # those first of which others are made
        ready = {name: s for name, s in waiting.items() if not waiting.keys() & set(names_in(s.expression))}
        for name, statistic in ready.items():
            test = _Test(units, f"statistics.{name}")
            units[name] = _check_unit(statistic, test.unit(statistic.expression) or Unit())  # 3
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
    if endpoint.outcome.is_rate and second[0].name in _bounds(TABLES[endpoint.register], first):
        return _named("fraction")
    above, below = (_unit_of_column(column) for column in columns)
    return above.times(below, -1)


def _check_unit(declared: Endpoint | Statistic, measured: Unit) -> Unit:
    """Check that a declared unit is that of what is measured, or of a formula; return it."""
    name, unit, is_formula = declared.id, declared.unit, isinstance(declared, Statistic)
    where = f"{'statistics' if is_formula else 'endpoints'}.{name}"
    if unit != str(measured):
        said = (
            ("a statistic", "its formula", "the formula; a quotient of equal units is a ratio")
            if is_formula
            else ("an endpoint", "what it measures", "its outcome; rates are fractions, never percentages")
        )
        raise RuleError(
            f"{said[0]} has another unit than {said[1]}",
            expected=str(measured),
            found=unit,
            where=where,
            remedy=f"declare the unit of {said[2]}",
        )
    if name.endswith(POINTS_SUFFIX) != (unit == POINTS):
        raise RuleError(
            f"percentage points, and they alone, are named with {POINTS_SUFFIX}",
            expected=POINTS if name.endswith(POINTS_SUFFIX) else f"a name with {POINTS_SUFFIX}",
            found=f"{name} in {unit}",
            where=where,
        )
    return measured


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
    if endpoint.outcome.is_rate and second[0].name in _bounds(TABLES[endpoint.register], first):
        return Fraction(0), Fraction(1)
    never_negative = all(column.low is not None and column.low >= 0 for column in (first, *second))
    return Fraction(0) if never_negative else None, None


def _columns(endpoint: Endpoint) -> list[Column]:
    table = TABLES[endpoint.register]
    return [column for name in endpoint.outcome.columns for column in (table.column(name),) if column]


def _bounds(table: Register, column: Column) -> Iterator[str]:
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


T = TypeVar("T", bound=Measured)


@dataclass(frozen=True)
class RuleBook:
    """Everything that is registered: runs, endpoints, statistics, intervals, rules, the probe; amended."""

    name: str  # the registration
    plan: Plan  # the registered runs
    # endpoints, statistics, intervals, tests, families, rules, pictures: by id
    endpoints: dict[str, Endpoint]
    intervals: dict[str, IntervalSpec]
    rules: dict[str, Rule]
    changes: dict[str, Change]  # rule id → what amendments did to it
    probe: ProbePlan | None = None  # the gradient probe, where one is registered
    terms: Terms = OF_TOOLKIT  # the words that the registration speaks
    spans: Mapping[str, Span] = default(
        default_factory=dict
    )  # of the document that the rules restate, by name
    statistics: dict[str, Statistic] = default(default_factory=dict)
    pictures: dict[str, Picture] = default(default_factory=dict)
    tests: dict[str, Significance] = default(default_factory=dict)
    families: dict[str, Family] = default(default_factory=dict)

    def __repr__(self) -> str:
        return f"<RuleBook {self.name!r}: {len(self.rules)} rules, {len(self.endpoints)} endpoints>"

    def rule(self, name: str) -> Rule:
        """Return a rule by name."""
        if name not in self.rules:
            raise self.refusal(name)
        return self.rules[name]

    def find(self, name: str) -> Rule | None:
        """Return the rule that somebody means by a name; None where there is none.

        Where no rule has the name, the only one that has it in other cases of letters is meant.
        """
        alike = [rule for rule in self.rules.values() if rule.id.casefold() == name.casefold()]
        return self.rules.get(name) or (alike[0] if len(alike) == 1 else None)

    def meant(self, name: str) -> Rule:
        """Return the rule that somebody means by a name, as `find`; errors as `rule`."""
        return self.find(name) or self.rule(name)

    def refusal(self, name: str, others: Iterable[str] = ()) -> UsageError:
        """Return the error for a rule that is not there; one of others may have been meant."""
        return UsageError(
            f"registration {self.name!r} has no rule {name!r}",
            expected=", ".join(self.rules),
            remedy=did_you_mean(name, (*self.rules, *others)),
        )

    def names_of(self, rule: Rule) -> set[str]:
        """Return every name that a rule's tests mention, those of the rules it rests on included."""
        names: set[str] = set()
        waiting = [rule.id]
        while waiting:
            for criterion in self.rules[waiting.pop()].criteria:
                new = set(names_in(criterion.expression)) - names
                names |= new
                waiting += [name for name in new if name in self.rules]
        return names

    def read_by(self, names: Collection[str]) -> set[str]:
        """Return names, with the endpoint of every interval and all that a statistic is made of.

        Of a test, with its endpoint, and with those of its family, which its adjusted p-value rests on.
        """
        tests = {other for name in names if name in self.tests for other in self.adjusted_with(name)}
        declared = [self.intervals[name] for name in names if name in self.intervals]
        of = {spec.endpoint for spec in declared} | {self.tests[name].endpoint for name in tests}
        return made_of({*names, *tests, *of}, self.statistics)

    def family_of(self, test: str) -> Family | None:
        """Return the family of a test; None where it is in none."""
        return next((family for family in self.families.values() if test in family.tests), None)

    def adjusted_with(self, test: str) -> tuple[str, ...]:
        """Return the tests of a test's family; itself alone where it is in none."""
        family = self.family_of(test)
        return family.tests if family else (test,)

    def smallest_p(self, test: str) -> tuple[Fraction, Fraction]:
        """Return the smallest p-value that a test can have, and the smallest adjusted one."""
        least = {
            name: self.tests[name].smallest(self.endpoints[self.tests[name].endpoint])
            for name in self.adjusted_with(test)
        }
        family = self.family_of(test)
        if family is None or family.method != HOLM:
            return least[test], least[test]
        # The smallest of the family is multiplied by their number, and no other is adjusted to less than it.
        return least[test], max(least[test], min(Fraction(1), len(least) * min(least.values())))

    def declared(self, name: str) -> Endpoint | Statistic:
        """Return an endpoint, or a statistic, by name."""
        return self.statistics[name] if name in self.statistics else self.endpoints[name]


def rulebook_of(registration: Registration) -> RuleBook:
    """Return the rules of a registration, its amendments applied; errors as `load_rulebook`."""
    return _parsed(registration.rules, tuple(amendment.rules for amendment in registration.amendments))


def load_rulebook(rules: str, amendments: Sequence[str] = ()) -> RuleBook:
    """Parse frozen rules and apply amendments."""
    content = _toml(rules, "rules.toml")
    if content.get("language", LANGUAGE) != LANGUAGE:
        raise RuleError("the rules are written in another version of the language", expected=LANGUAGE)
    method = {**_table(content, COMMON[0]), **_table(content, COMMON[1])}
    frozen = _parse(RulesFile, content, method)
    scaled = any(cell.scale_rewards for cell in frozen.matrix)
    terms = terms_of(frozen.words, frozen.scores, frozen.missing, frozen.attributes, scaled=scaled)
    plan = read_plan(frozen.deciding_roles, frozen.training, frozen.matrix, terms, frozen.recipe)
    sets = {name: read_set(declared, terms) for name, declared in frozen.sets.items()}
    check_sizes(sets.values())
    book = RuleBook(
        name=frozen.name,
        plan=plan,
        changes={},
        terms=terms,
        spans=frozen.spans,
        pictures=frozen.pictures,
        endpoints={},
        **{name: getattr(frozen, name) for name in ("probe", "rules", *_DECLARED)},
    )
    _read_endpoints(book, frozen, sets)
    if book.probe:
        check_probe(book.probe, plan)
    _check_spans(content, frozen.spans, whole=True)
    for text in amendments:
        content = _toml(text, "amendment")
        where = f"amendment {_table(content, 'amendment').get('id')}"
        change = _parse(AmendmentFile, content, method, f"{where}, ")
        for name in ("endpoints", *_DECLARED):
            _declare(getattr(book, name), getattr(change, name), where)
        _read_endpoints(book, change, sets)
        if change.probe:
            book = _with_probe(book, change.probe, where)
        change_rules(book.rules, book.changes, change.amendment, change.rules)
        _check_spans(content, frozen.spans, whole=False)
    _check(book)
    return book


# Who verifies, decides and specifies runs asks for the same ones.
_parsed = lru_cache(load_rulebook)
_DECLARED = ("statistics", "intervals", "tests", "families")


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return table if isinstance(table := content.get(key), dict) else {}


def _parse(kind: type[T], content: Mapping[str, Any], method: Mapping[str, Any], where: str = "") -> T:
    """Return a file of rules; each of its named tables is parsed by itself, so that errors name it."""
    tables = dict(content)
    for key, hint in keys(kind).items():
        of = get_args(hint)[-1] if get_args(hint) else None
        if isinstance(of, type) and issubclass(of, Document) and isinstance(content.get(key), dict):
            named = issubclass(of, Table)
            tables[key] = {
                name: read(
                    of,
                    common_to(table, method) if of is IntervalSpec else table,
                    f"{key}.{identifier(name, key) if named else name}",
                    **({"id": name} if named else {}),
                )
                for name, table in content[key].items()
            }
    return read(kind, tables, where)


def _read_endpoints(book: RuleBook, declared: Measured, sets: Mapping[str, EvaluationSet]) -> None:
    for name, endpoint in declared.endpoints.items():
        book.endpoints[name] = read_endpoint(endpoint, sets, book.terms)


def _declare(declared: dict[str, Any], new: dict[str, Any], where: str) -> None:
    """Add an amendment's declarations; what the frozen rules measure keeps its meaning under its name."""
    taken = sorted(set(declared) & set(new))
    if taken:
        raise RuleError(
            "an amendment declares a name that is declared already",
            expected="a new name for a new endpoint, statistic, interval, test or family",
            found=", ".join(taken),
            where=where,
        )
    declared |= new


def _with_probe(book: RuleBook, probe: ProbePlan, where: str) -> RuleBook:
    """Return the book with the probe that an amendment registers."""
    if book.probe is not None:
        raise RuleError(
            "an amendment registers a probe, and there is one already",
            expected="one probe in a registration and its amendments",
            where=where,
        )
    check_probe(probe, book.plan, f"{where}, probe")
    return replace(book, probe=probe)


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError("the rules are not TOML", found=error, where=where) from None


def _check_spans(content: Mapping[str, Any], spans: Mapping[str, Span], *, whole: bool) -> None:
    """Check that every span that is named is declared, and every declared one named, where all are here."""
    namers = named_spans(content)
    for name, items in namers.items():
        if name not in spans:
            _declared(name, spans, items[0])
    idle = [name for name in spans if whole and not namers[name]]
    if idle:
        raise RuleError("a span is declared that nothing restates", found=", ".join(idle), where=OF_SPANS)


def _check(book: RuleBook) -> None:
    """Check what only the whole book shows."""
    # A gate has outcomes of its own, and a superseded prediction no longer says anything.
    rules = [rule for rule in book.rules.values() if rule.kind != "gate" and not rule.superseded]
    names = {e.id: Kind.NUMBERS if e.is_series else Kind.NUMBER for e in book.endpoints.values()}
    check_statistics(book.statistics, names)
    declared = (book.endpoints, book.statistics, book.intervals, book.tests, book.rules)
    names |= dict.fromkeys(book.statistics, Kind.NUMBER)
    names |= dict.fromkeys(book.intervals, Kind.INTERVAL) | dict.fromkeys(book.tests, Kind.TEST)
    names |= {rule.id: Kind.RULE for rule in rules}
    if len({*names, *book.rules}) != sum(len(part) for part in declared):
        raise RuleError("a name is declared twice", where="rules.toml")
    for interval in book.intervals.values():
        if not 0 < interval.level < 1:
            problem, where = "a level lies between 0 and 1", f"intervals.{interval.id}"
            raise RuleError(problem, found=interval.level, where=where)
        _check_interval(interval, book)
    check_tests(book.tests, book.families, book.endpoints)
    for picture in book.pictures.values():
        _check_picture(picture, book)
    for endpoint in book.endpoints.values():
        _check_registered(endpoint, book.plan)
    for rule in book.rules.values():
        _check_rule(rule, book, names)
    for rule in book.rules.values():
        if rule.id in book.names_of(rule):
            raise RuleError("a rule rests on itself", where=f"rules.{rule.id}")
    check_units(book.endpoints, book.statistics, book.intervals, book.rules.values())


def _check_picture(picture: Picture, book: RuleBook) -> None:
    """Check that a picture shows declared statistics, each with an interval of its own."""
    where = f"pictures.{picture.id}"
    check_picture(picture)
    for predictor in picture.across:
        if predictor.statistic:
            _declared(predictor.statistic, book.statistics, where)
    for point in picture.points:
        _declared(point.statistic, book.statistics, where)
        if point.interval:
            _declared(point.interval, book.intervals, where)
            if book.intervals[point.interval].endpoint != point.statistic:
                raise RuleError(
                    "a picture shows an interval of another statistic", found=point.interval, where=where
                )


def _check_interval(interval: IntervalSpec, book: RuleBook) -> None:
    """Check that an interval is of what its method makes one of."""
    where, name = f"intervals.{interval.id}", interval.endpoint
    _declared(name, {**book.endpoints, **book.statistics}, where)
    endpoints = [e for e in book.endpoints.values() if e.id in book.read_by([name])]
    seeds = {e.seeds for e in endpoints if e.by == "seed"}
    of_seeds = {e.by for e in endpoints} & {"run", "pooled"}
    problem = ""
    if name in book.statistics and interval.method != SEED_BOOTSTRAP:
        problem = f"an interval of a statistic is a {SEED_BOOTSTRAP}"
    elif (
        name not in book.statistics
        and interval.method in (*BY_SEED, *OVER_TASKS)
        and endpoints[0].by != "seed"
    ):
        problem = f"a {interval.method} interval is of an endpoint by seed"
    elif interval.method in BY_SEED and (len(seeds) != 1 or of_seeds):
        problem = "seeds are drawn once for every endpoint of a formula, which are by seed, on the same seeds"
    if problem:
        raise RuleError(
            problem, found=f"{interval.method} of {', '.join(e.id for e in endpoints)}", where=where
        )


def _check_rule(rule: Rule, book: RuleBook, names: dict[str, Kind]) -> None:
    check_rule(rule)
    where = f"rules.{rule.id}"
    for name in (rule.estimate, *rule.secondary):
        if name:
            _declared(name, {**book.endpoints, **book.statistics}, where)
    if rule.interval:
        _declared(rule.interval, book.intervals, where)
        if book.intervals[rule.interval].endpoint != rule.estimate:
            raise RuleError(
                f"rule {rule.id} has an interval of another endpoint than its estimate",
                expected=rule.estimate,
                found=book.intervals[rule.interval].endpoint,
                where=where,
            )
    for criterion in rule.criteria:
        where = f"{rule.id}.{criterion.id}"
        check_test(criterion.expression, names, where)
        check_margins(criterion.expression, book.intervals, where)
        check_adjusted(criterion.expression, book.families, where)


def _declared(name: str, declared: Iterable[str], where: str) -> None:
    if name not in declared:
        raise RuleError(f"{name!r} is not declared", expected=", ".join(declared), where=where)


def _check_registered(endpoint: Endpoint, plan: Plan) -> None:
    """Check that every run an endpoint reads is a run of the registered matrix."""
    for arm in endpoint.arms:
        for seed in endpoint.seeds:
            if plan.cell(endpoint.condition, endpoint.scale_rewards, arm, seed) is None:
                raise RuleError(
                    "an endpoint reads a run that the registered matrix does not have",
                    found=f"{endpoint.condition} {arm} seed {seed}, scale_rewards {endpoint.scale_rewards}",
                    where=f"endpoints.{endpoint.id}",
                )
