"""What a rule is, how one is read from the registration, and what amendments do to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from toolkit.decisions.equivalence import MARGINS, expanded
from toolkit.decisions.expressions import Binary, Call, Expression, Number
from toolkit.decisions.grammar import parse
from toolkit.decisions.keys import OPTIONAL, SPANS, Key, Listed, Named, Value, keys
from toolkit.decisions.section import Section, identifier
from toolkit.errors import RuleError

KINDS = ("hypothesis", "prediction", "gate")
RELATIONS = ("replaces", "restates", "adds")
# What a rule that is restated keeps.
_SAID = ("kind", "text", "confidence", "joint", "numbers")

CRITERION = keys(
    Key("id", Value.TEXT, "its name"),
    Key("text", Value.TEXT, "what has to hold, in words"),
    Key("test", Value.TEXT, "the same in the language of tests"),
    Key("reading", Value.TEXT, "the reading of the rule that it belongs to; else all", OPTIONAL),
)
RULE = keys(
    Key("kind", Value.TEXT, "what it is", choices=KINDS),
    Key(
        "parts",
        Value.TEXT,
        "whether it can be met in part (separate), or as a whole alone",
        "separate",
        ("separate", "joint"),
        only=("kind", ("prediction",)),
    ),
    Key("title", Value.TEXT, "what it is about, in a few words"),
    Key("text", Value.TEXT, "what it says, in words"),
    Key("criteria", Listed(CRITERION), "what has to hold: all of it, at least one"),
    Key("estimate", Value.TEXT, "the endpoint or statistic shown beside the verdict", OPTIONAL),
    Key("interval", Value.TEXT, "the interval of `estimate` that is shown with it", OPTIONAL),
    Key(
        "threshold",
        Value.DECIMAL,
        "what the interval is compared with beside zero, in the unit of `estimate`; a number of a test",
        OPTIONAL,
    ),
    Key("secondary", Value.TEXTS, "endpoints shown beside it that decide nothing", OPTIONAL),
    Key("binding", Value.TEXT, "the reading that decides, where there are several", OPTIONAL),
    Key("readings", Named(Value.TEXT), "what each reading means", OPTIONAL),
    Key("confidence", Value.TEXT, "of a prediction, in words", OPTIONAL),
    Key("superseded", Value.TEXT, "why a prediction no longer applies; it is evaluated still", OPTIONAL),
    Key("open", Value.TEXT, "what a gate says when it passes", OPTIONAL),
    Key("shut", Value.TEXT, "what a gate says when it does not", OPTIONAL),
    SPANS,
)
AMENDMENT = keys(
    Key("id", Value.TEXT, "its name, and that of its file"),
    Key("dated", Value.TEXT, "the day of its writing, YYYY-MM-DD"),
    Key("title", Value.TEXT, "what it is about, in a few words"),
    Key("seen", Value.TEXT, "what had been seen of the data when it was written"),
    Key("reason", Value.TEXT, "why the frozen text cannot stand"),
    Key("changes", Value.TEXTS, "what is different now, in words"),
    Key("note", Value.TEXT, "what else is to be said", OPTIONAL),
    Key("document", Value.TEXT, "the document that it restates", OPTIONAL),
    Key("after_runs", Value.FLAG, "whether it was written after the first run", OPTIONAL),
    Key("replaces", Value.TEXTS, "rules that are others now", OPTIONAL),
    Key("restates", Value.TEXTS, "rules that keep text and numbers, and read what is new here", OPTIONAL),
    Key("adds", Value.TEXTS, "rules that were not there before", OPTIONAL),
)


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
    """One registered rule, by name: the keys of `RULE`.

    Args:
        id: its name.
        joint: it is met or missed as a whole; a prediction that is not can be met in part.
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
    secondary: tuple[str, ...]
    binding: str
    readings: dict[str, str]
    confidence: str
    superseded: str
    open: str
    shut: str
    spans: tuple[str, ...] = ()

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
    """What amendments did to a rule.

    Args:
        amendment: id of the last one that names it.
        relation: what that one does: `replaces`; `restates` where the rule is unchanged and reads what the
            amendment changed; `adds` where there was no such rule.
        first: the rule as it was first written: as frozen, or as added.
        added_by: id of the amendment that added it; empty where it was frozen.
    """

    amendment: str
    relation: str
    first: Rule
    added_by: str = ""

    @property
    def frozen(self) -> Rule | None:
        """The rule as frozen; None where an amendment added it."""
        return None if self.added_by else self.first


def read_rule(name: str, content: object) -> Rule:
    """Read one rule."""
    section = Section(content, f"rules.{identifier(name, 'rules')}", RULE)
    rule = Rule(
        id=name,
        kind=section.text("kind"),
        title=section.text("title"),
        text=section.text("text"),
        criteria=tuple(_criterion(name, entry) for entry in section.tables("criteria")),
        joint=section.text("parts") != "separate",
        estimate=section.text("estimate"),
        interval=section.text("interval"),
        threshold=section.exact("threshold"),
        secondary=section.texts("secondary"),
        binding=section.text("binding"),
        readings=section.strings("readings"),
        confidence=section.text("confidence"),
        superseded=section.text("superseded"),
        open=section.text("open"),
        shut=section.text("shut"),
        spans=section.texts("spans"),
    )
    section.done()
    _check_fit(rule)
    return rule


def _criterion(rule: str, content: object) -> Criterion:
    section = Section(content, f"rules.{rule}.criteria", CRITERION)
    name = identifier(section.text("id"), section.where)
    test = section.text("test")
    criterion = Criterion(
        id=name,
        text=section.text("text"),
        test=test,
        expression=parse(test, f"{rule}.{name}"),
        reading=section.text("reading") or None,
    )
    section.done()
    return criterion


def _check_fit(rule: Rule) -> None:
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
    rules: dict[str, Rule],
    changes: dict[str, Change],
    head: Mapping[str, Any],
    new: Mapping[str, Rule],
    where: str,
) -> None:
    """Apply one amendment to the rules."""
    section = Section(head, where, AMENDMENT)
    label = identifier(section.text("id"), where)
    for key in ("dated", "title", "seen", "reason", "note", "document"):
        section.text(key)
    section.texts("changes")
    section.flag("after_runs")
    pairs = [(rule, relation) for relation in RELATIONS for rule in section.texts(relation)]
    section.done()
    relations = dict(pairs)
    if len(relations) != len(pairs) or set(new) != set(relations):
        raise section.wrong(
            "an amendment's rules are not those that it replaces, restates or adds, each named once",
            expected=", ".join(rule for rule, _ in pairs) or "no rule",
            found=", ".join(new) or "no rule",
        )
    for name, rule in new.items():
        _check_relation(relations[name], rule, rules.get(name), section)
        if relations[name] == "adds":
            changes[name] = Change(label, "adds", rule, label)
        else:
            before = changes.get(name) or Change("", "", rules[name])
            changes[name] = replace(before, amendment=label, relation=relations[name])
        rules[name] = rule


def _check_relation(relation: str, rule: Rule, before: Rule | None, section: Section) -> None:
    """Check that a rule is to the one before it what the amendment says."""
    if relation == "adds" and before is not None:
        problem = f"an amendment adds {rule.id}, which there is already"
        raise section.wrong(problem, expected="a new name, or `replaces`")
    if relation == "adds" and rule.superseded:
        raise section.wrong(f"an amendment adds {rule.id} and says that it is superseded")
    if relation != "adds" and before is None:
        raise section.wrong(
            f"an amendment {relation} {rule.id}, which there is not yet",
            expected="a rule that is frozen or was added by an earlier amendment, or `adds`",
        )
    if relation == "restates" and before is not None and not rule.says_the_same(before):
        raise section.wrong(
            f"an amendment restates {rule.id} and changes its text or one of its numbers",
            expected="the same text and numbers, or `replaces`",
        )
