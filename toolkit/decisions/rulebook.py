"""The rules of a registration, amendments applied: nothing undeclared, nothing unknown, nothing circular."""

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from toolkit.decisions.endpoints import (
    Endpoint,
    IntervalSpec,
    read_endpoint,
    read_interval,
)
from toolkit.decisions.equivalence import check_margins
from toolkit.decisions.expressions import Kind, check_test, names_in
from toolkit.decisions.methods import BY_SEED, OVER_TASKS, SEED_BOOTSTRAP
from toolkit.decisions.picture import Picture, read_picture
from toolkit.decisions.plan import Plan, read_plan
from toolkit.decisions.probe_plan import ProbePlan, read_probe
from toolkit.decisions.rules import Change, Rule, change_rules, read_rule
from toolkit.decisions.rules_file import AMENDED, COMMON, EXCEPTION, LANGUAGE, RULES
from toolkit.decisions.section import Section
from toolkit.decisions.sets import check_sizes, read_set
from toolkit.decisions.significance import (
    HOLM,
    Family,
    Significance,
    check_adjusted,
    check_tests,
    read_family,
    read_test,
)
from toolkit.decisions.statistic import Statistic, check_statistics, made_of, read_statistic
from toolkit.decisions.terms import OF_TOOLKIT, Terms, read_terms
from toolkit.decisions.units import check_units
from toolkit.errors import RuleError, UsageError, did_you_mean
from toolkit.prereg.registration import Registration
from toolkit.prereg.spans import SPANS, Span, named_spans, read_spans

T = TypeVar("T")


@dataclass(frozen=True)
class RuleBook:
    """Everything that is registered: runs, endpoints, statistics, intervals, rules, the probe; amended.

    Args:
        name: the registration.
        plan: the registered runs.
        endpoints, statistics, intervals, tests, families, rules, pictures: by id.
        changes: rule id → what amendments did to it.
        probe: the gradient probe, where one is registered.
        terms: the words that the registration speaks.
        spans: of the frozen document that the rules restate, by name; none where they are themselves frozen.
    """

    name: str
    plan: Plan
    endpoints: dict[str, Endpoint]
    intervals: dict[str, IntervalSpec]
    rules: dict[str, Rule]
    changes: dict[str, Change]
    probe: ProbePlan | None = None
    terms: Terms = OF_TOOLKIT
    spans: Mapping[str, Span] = field(default_factory=dict)
    statistics: dict[str, Statistic] = field(default_factory=dict)
    pictures: dict[str, Picture] = field(default_factory=dict)
    tests: dict[str, Significance] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)

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


@lru_cache
def _parsed(rules: str, amendments: tuple[str, ...]) -> RuleBook:
    """Return the rules of some texts; who verifies, decides and specifies runs asks for the same ones."""
    return load_rulebook(rules, amendments)


def load_rulebook(rules: str, amendments: Sequence[str] = ()) -> RuleBook:
    """Parse frozen rules and apply amendments."""
    content = _toml(rules, "rules.toml")
    section = Section(content, "rules.toml", RULES)
    if section.whole("language") != LANGUAGE:
        raise RuleError("the rules are written in another version of the language", expected=LANGUAGE)
    name = section.text("name")
    section.text("title")
    for exception in section.tables("exceptions"):
        inner = Section(exception, "exceptions", EXCEPTION)
        inner.text("run")
        inner.text("reason")
        inner.texts(SPANS)
        inner.done()
    cells = section.tables("matrix")
    own = (section.table(name) for name in ("scores", "missing", "attributes"))
    terms = read_terms(section.table("words"), cells, *own)
    training, recipe = section.table("training"), section.table("recipe")
    plan = read_plan(section.texts("deciding_roles"), training, cells, terms, recipe)
    spans = read_spans(section.table(SPANS))
    method = section.table(COMMON[0]) | section.table(COMMON[1])
    sets = _read(section, "sets", read_set, terms)
    check_sizes(sets.values())
    book = RuleBook(
        name=name,
        plan=plan,
        endpoints=_read(section, "endpoints", read_endpoint, sets, terms),
        intervals=_read(section, "intervals", read_interval, method),
        rules=_read(section, "rules", read_rule),
        changes={},
        probe=read_probe(section.table("probe"), plan) if section.has("probe") else None,
        terms=terms,
        spans=spans,
        statistics=_read(section, "statistics", read_statistic),
        pictures=_read(section, "pictures", read_picture),
        tests=_read(section, "tests", read_test),
        families=_read(section, "families", read_family),
    )
    section.done()
    _check_spans(content, spans, whole=True)
    for text in amendments:
        content = _toml(text, "amendment")
        change = Section(content, "amendment", AMENDED)
        head = change.table("amendment")
        change.where = f"amendment {head.get('id')}"
        _declare(book.endpoints, _read(change, "endpoints", read_endpoint, sets, terms), change)
        _declare(book.statistics, _read(change, "statistics", read_statistic), change)
        _declare(book.intervals, _read(change, "intervals", read_interval, method), change)
        _declare(book.tests, _read(change, "tests", read_test), change)
        _declare(book.families, _read(change, "families", read_family), change)
        book = _with_probe(book, change)
        new = _read(change, "rules", read_rule)
        change.done()
        change_rules(book.rules, book.changes, head, new, change.where)
        _check_spans(content, spans, whole=False)
    _check(book)
    return book


def _read(section: Section, key: str, read: Callable[..., T], *more: object) -> dict[str, T]:
    return {name: read(name, content, *more) for name, content in section.table(key).items()}


def _declare(declared: dict[str, Any], new: dict[str, Any], change: Section) -> None:
    """Add an amendment's declarations; what the frozen rules measure keeps its meaning under its name."""
    taken = sorted(set(declared) & set(new))
    if taken:
        raise change.wrong(
            "an amendment declares a name that is declared already",
            expected="a new name for a new endpoint, statistic, interval, test or family",
            found=", ".join(taken),
        )
    declared |= new


def _with_probe(book: RuleBook, change: Section) -> RuleBook:
    """Return the book with the probe that an amendment registers, if it does."""
    if not change.has("probe"):
        return book
    if book.probe is not None:
        raise change.wrong(
            "an amendment registers a probe, and there is one already",
            expected="one probe in a registration and its amendments",
        )
    return replace(book, probe=read_probe(change.table("probe"), book.plan, f"{change.where}, probe"))


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
        raise RuleError("a span is declared that nothing restates", found=", ".join(idle), where=SPANS)


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
