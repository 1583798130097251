"""The rules of a registration, parsed and checked: nothing undeclared, nothing unknown, nothing circular."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolkit.decisions.endpoints import Endpoint, IntervalSpec, read_endpoint, read_interval, read_set
from toolkit.decisions.expressions import Expression, Kind
from toolkit.decisions.grammar import parse
from toolkit.decisions.kinds import check_test, names_in
from toolkit.decisions.section import Section, strings
from toolkit.errors import RuleError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

LANGUAGE = 1
KINDS = ("hypothesis", "prediction", "gate")


@dataclass(frozen=True)
class Criterion:
    """One criterion of a rule; without a reading it belongs to all of them."""

    id: str
    text: str
    test: str
    expression: Expression
    reading: str | None


@dataclass(frozen=True)
class Rule:
    """One registered rule.

    Args:
        id: its name.
        kind: `hypothesis`, `prediction` or `gate`.
        title, text: what it says, in words.
        criteria: what has to hold.
        joint: a prediction that is met or missed as a whole; otherwise it can be met in part.
        estimate: the endpoint whose estimate is shown beside the verdict.
        interval: the registered interval of that endpoint.
        threshold: the value beside zero that the interval is compared with.
        binding: the reading that decides.
        readings: what each reading means.
        confidence: of a prediction.
        superseded: why a prediction no longer applies; its criteria are evaluated all the same.
        open, shut: the two outcomes of a gate.
        amended_by: the amendment that this rule comes from.
    """

    id: str
    kind: str
    title: str
    text: str
    criteria: tuple[Criterion, ...]
    joint: bool
    estimate: str
    interval: str
    threshold: Fraction | None
    binding: str
    readings: dict[str, str]
    confidence: str
    superseded: str
    open: str
    shut: str
    amended_by: str | None


@dataclass(frozen=True)
class Cell:
    """One line of the registered run matrix."""

    tier: int
    condition: str
    noise: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    scale_rewards: str
    serves: tuple[str, ...]


@dataclass(frozen=True)
class RuleBook:
    """Everything that decides: deciding roles, endpoints, intervals and rules, amendments applied."""

    name: str
    deciding_roles: tuple[str, ...]
    matrix: tuple[Cell, ...]
    endpoints: dict[str, Endpoint]
    intervals: dict[str, IntervalSpec]
    rules: dict[str, Rule]
    amendments: tuple[str, ...]

    def rule(self, name: str) -> Rule:
        """Return a rule by name.

        Raises:
            UsageError: the registration has no such rule.
        """
        if name not in self.rules:
            raise UsageError(
                f"registration {self.name!r} has no rule {name!r}", expected=", ".join(self.rules)
            )
        return self.rules[name]


def load_rulebook(rules: str, amendments: Sequence[str] = ()) -> RuleBook:
    """Parse frozen rules and apply amendments.

    Args:
        rules: text of the frozen rules file.
        amendments: texts of the amendment files, in order.

    Raises:
        RuleError: anything that the language does not allow, with the place.
    """
    section = Section(_toml(rules, "rules.toml"), "rules.toml")
    if section.whole("language") != LANGUAGE:
        raise RuleError("the rules are written in another version of the language", expected=LANGUAGE)
    name, _title = section.text("name"), section.text("title")
    roles = section.texts("deciding_roles")
    section.tables("exceptions")
    matrix = tuple(_cell(content) for content in section.tables("matrix"))
    method = section.table("interval_method")
    sets = {key: read_set(key, content) for key, content in section.table("sets").items()}
    endpoints = {k: read_endpoint(k, c, sets) for k, c in section.table("endpoints").items()}
    intervals = {k: read_interval(k, c, method) for k, c in section.table("intervals").items()}
    declared = {k: _rule(k, c) for k, c in section.table("rules").items()}
    section.done()
    amended: list[str] = []
    for text in amendments:
        change = Section(_toml(text, "amendment"), "amendment")
        head = change.table("amendment")
        label = str(head.get("id", "amendment"))
        change.where = f"amendment {label}"
        endpoints |= {k: read_endpoint(k, c, sets) for k, c in change.table("endpoints").items()}
        intervals |= {k: read_interval(k, c, method) for k, c in change.table("intervals").items()}
        new = {k: replace(_rule(k, c), amended_by=label) for k, c in change.table("rules").items()}
        change.done()
        if sorted(new) != sorted(head.get("replaces", [])) or not set(new) <= set(declared):
            raise RuleError(
                "an amendment's rules are not those it says it replaces",
                expected=", ".join(head.get("replaces", [])),
                found=", ".join(new),
                where=change.where,
            )
        declared |= new
        amended.append(label)
    book = RuleBook(name, roles, matrix, endpoints, intervals, declared, tuple(amended))
    _check(book)
    return book


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError("the rules are not TOML", found=error, where=where) from None


def _cell(content: object) -> Cell:
    section = Section(content, "matrix")
    cell = Cell(
        tier=section.whole("tier") or 0,
        condition=section.text("condition"),
        noise=section.text("noise"),
        arms=section.texts("arms"),
        seeds=section.wholes("seeds"),
        scale_rewards=section.text("scale_rewards"),
        serves=section.texts("for"),
    )
    section.done()
    return cell


def _rule(name: str, content: object) -> Rule:
    section = Section(content, f"rules.{name}")
    kind = section.choice("kind", KINDS)
    rule = Rule(
        id=name,
        kind=kind,
        title=section.text("title"),
        text=section.text("text"),
        criteria=tuple(_criterion(name, entry) for entry in section.tables("criteria")),
        joint=kind != "prediction" or section.choice("parts", ("separate", "joint"), "separate") == "joint",
        estimate=section.text("estimate", ""),
        interval=section.text("interval", ""),
        threshold=section.exact("threshold", None),
        binding=section.text("binding", ""),
        readings=strings(section.table("readings"), section.where),
        confidence=section.text("confidence", ""),
        superseded=section.text("superseded", ""),
        open=section.text("open", ""),
        shut=section.text("shut", ""),
        amended_by=None,
    )
    section.done()
    return rule


def _criterion(rule: str, content: object) -> Criterion:
    section = Section(content, f"rules.{rule}.criteria")
    name = section.text("id")
    test = section.text("test")
    criterion = Criterion(
        id=name,
        text=section.text("text"),
        test=test,
        expression=parse(test, f"{rule}.{name}"),
        reading=section.text("reading", "") or None,
    )
    section.done()
    return criterion


def _check(book: RuleBook) -> None:
    """Check what only the whole book shows."""
    names = {
        endpoint.id: Kind.NUMBERS if endpoint.is_series else Kind.NUMBER
        for endpoint in book.endpoints.values()
    }
    names |= dict.fromkeys(book.intervals, Kind.INTERVAL)
    names |= dict.fromkeys(book.rules, Kind.RULE)
    if len(names) != len(book.endpoints) + len(book.intervals) + len(book.rules):
        raise RuleError("a name is declared twice", where="rules.toml")
    for interval in book.intervals.values():
        _declared(interval.endpoint, book.endpoints, f"intervals.{interval.id}")
    for endpoint in book.endpoints.values():
        _check_registered(endpoint, book.matrix)
    for rule in book.rules.values():
        _check_rule(rule, book, names)
    _check_acyclic(book)


def _check_rule(rule: Rule, book: RuleBook, names: dict[str, Kind]) -> None:
    where = f"rules.{rule.id}"
    ids = [criterion.id for criterion in rule.criteria]
    used = {criterion.reading for criterion in rule.criteria if criterion.reading}
    problems = (
        (not ids, "has no criteria"),
        (len(set(ids)) != len(ids), "names a criterion twice"),
        (
            used != set(rule.readings) and bool(rule.readings or used),
            "uses readings that it does not declare",
        ),
        (bool(rule.readings) != bool(rule.binding), "does not say which reading binds"),
        (bool(rule.binding) and rule.binding not in rule.readings, "is bound to an undeclared reading"),
        (
            (rule.kind == "gate") != bool(rule.open and rule.shut),
            "names two outcomes exactly if it is a gate",
        ),
        (bool(rule.superseded) and rule.kind != "prediction", "can only be superseded if it is a prediction"),
    )
    for wrong, problem in problems:
        if wrong:
            raise RuleError(f"rule {rule.id} {problem}", where=where)
    for name, declared in ((rule.estimate, book.endpoints), (rule.interval, book.intervals)):
        if name:
            _declared(name, declared, where)
    for criterion in rule.criteria:
        check_test(criterion.expression, names, f"{rule.id}.{criterion.id}")


def _declared(name: str, declared: Iterable[str], where: str) -> None:
    if name not in declared:
        raise RuleError(f"{name!r} is not declared", expected=", ".join(declared), where=where)


def _check_registered(endpoint: Endpoint, matrix: tuple[Cell, ...]) -> None:
    """Check that every run an endpoint reads is a run of the registered matrix."""
    for arm in endpoint.arms:
        for seed in endpoint.seeds:
            if not any(
                cell.condition == endpoint.condition
                and cell.scale_rewards == endpoint.scale_rewards
                and arm in cell.arms
                and seed in cell.seeds
                for cell in matrix
            ):
                raise RuleError(
                    "an endpoint reads a run that the registered matrix does not have",
                    found=f"{endpoint.condition} {arm} seed {seed}, scale_rewards {endpoint.scale_rewards}",
                    where=f"endpoints.{endpoint.id}",
                )


def _check_acyclic(book: RuleBook) -> None:
    def visit(rule: str, above: tuple[str, ...]) -> None:
        if rule in above:
            raise RuleError("rules refer to each other in a circle", found=" -> ".join((*above, rule)))
        for criterion in book.rules[rule].criteria:
            for name in names_in(criterion.expression):
                if name in book.rules:
                    visit(name, (*above, rule))

    for rule in book.rules:
        visit(rule, ())
