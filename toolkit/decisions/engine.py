"""Deciding: the rules of one registration on the registers of one study."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.closeness import close_evidence, close_tests
from toolkit.decisions.computed import EPISODES, Resampler
from toolkit.decisions.curves import CurvePoint, curve_points
from toolkit.decisions.decision import AmendmentRef, CriterionResult, Decision, Estimate, RegisterRef
from toolkit.decisions.endpoints import Rate
from toolkit.decisions.evaluation import compared_with, evaluate, subject
from toolkit.decisions.interval import Interval, evidence_of, registered_interval
from toolkit.decisions.kinds import names_in
from toolkit.decisions.lookup import Indexed
from toolkit.decisions.measure import measure
from toolkit.decisions.stored import StoredDecisions, inputs_sha256
from toolkit.decisions.values import Missing, Scalar, Series, Value, kleene_all, together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.decisions.endpoints import IntervalSpec
    from toolkit.decisions.measure import Registers
    from toolkit.decisions.rulebook import RuleBook
    from toolkit.decisions.rules import Criterion, Rule


class Engine:
    """The rules of one registration, applied to one study.

    Args:
        book: the rules.
        registration: name and digest of the frozen files they come from.
        registers: the study.
        amendments: amendment id → SHA-256 of its file.
        recompute: whether intervals are computed even where the study has stored them.
    """

    def __init__(
        self,
        book: RuleBook,
        registration: tuple[str, str],
        registers: Registers,
        amendments: Mapping[str, str] | None = None,
        *,
        recompute: bool = False,
    ) -> None:
        self._book = book
        self._registration = registration
        self._registers = Indexed(registers)
        self._amendments = dict(amendments or {})
        self._recompute = recompute
        self._stored = StoredDecisions(self._registers, self.inputs_sha256, book.intervals)
        self._resampler = Resampler(self._registers, book.plan)
        self._measured: dict[str, Scalar | Series[Fraction]] = {}
        self._intervals: dict[str, Interval | Missing] = {}
        self._decided: dict[str, Decision] = {}

    @property
    def inputs_sha256(self) -> str:
        """The SHA-256 of what is decided on."""
        return inputs_sha256(self._registration, self._amendments, self._registers)

    def decide(self, rule_id: str) -> Decision:
        """Decide one rule.

        1. Evaluate every criterion.
        2. Combine the criteria of each reading into a verdict; the binding reading's counts.
        3. Put the estimate and its registered interval beside the verdict.
        4. Hold it against the decision that the study has stored on the same inputs.

        Raises:
            UsageError: the registration has no such rule.
            DamagedError: rows contradict each other, a value lies outside its declared range, or the stored
                decision is another.
        """
        if rule_id in self._decided:
            return self._decided[rule_id]
        rule = self._book.rule(rule_id)
        criteria = tuple(self._criterion(criterion) for criterion in rule.criteria)  # 1
        binding = [c for c in criteria if c.reading in (None, rule.binding or None)]  # 2
        readings = {r: _verdict(rule, [c for c in criteria if c.reading in (None, r)]) for r in rule.readings}
        reached = _verdict(rule, binding)
        interval = self.interval(rule.interval) if rule.interval else None  # 3
        decision = Decision(
            rule=rule.id,
            kind=rule.kind,
            title=rule.title,
            text=rule.text,
            study=self._registers.name,
            verdict="superseded" if rule.superseded else reached,
            holds=kleene_all([criterion.holds for criterion in binding]),
            evidence=evidence_of(interval, rule.threshold),
            criteria=criteria,
            estimate=self._estimate(rule.estimate) if rule.estimate else None,
            interval=interval,
            threshold=rule.threshold,
            readings=readings,
            binding=rule.binding,
            original_verdict=reached if rule.superseded else None,
            superseded=rule.superseded,
            registration=self._registration,
            amendment=self._amendment(rule.id),
            rests_on=self._rests_on(rule),
            registers=self._read(rule),
            endpoints=self._endpoints(rule),
            secondary=tuple(self._estimate(name) for name in rule.secondary),
            close_calls=self._close_calls(rule, interval),
            added_by=self._added_by(rule.id),
            origin=self._registers.origin,
        )
        self._stored.check(decision)  # 4
        self._decided[rule_id] = decision
        return decision

    def decide_all(self, rule_ids: Sequence[str] = ()) -> tuple[Decision, ...]:
        """Decide the named rules in their order, or every rule of the registration."""
        return tuple(self.decide(rule_id) for rule_id in rule_ids or self._book.rules)

    def value(self, endpoint: str) -> Scalar | Series[Fraction]:
        """Return an endpoint's value, measured once."""
        if endpoint not in self._measured:
            declared = self._book.endpoints[endpoint]
            self._measured[endpoint] = measure(declared, self._registers, self._book.plan)
        return self._measured[endpoint]

    def interval(self, name: str) -> Interval | Missing:
        """Return a registered interval, or what is missing for it; found once."""
        if name not in self._intervals:
            self._intervals[name] = self._found_interval(self._book.intervals[name])
        return self._intervals[name]

    def curve(self, endpoint: str) -> tuple[CurvePoint, ...]:
        """Return the learning curves behind an endpoint over several steps."""
        return curve_points(self._book.endpoints[endpoint], self._registers, self._book.plan)

    def _criterion(self, criterion: Criterion) -> CriterionResult:
        holds = evaluate(criterion.expression, self._resolve)
        if not isinstance(holds, bool | Missing):
            raise TypeError(criterion.test)
        seen = subject(criterion.expression)
        value = evaluate(seen, self._resolve) if seen is not None else None
        other = compared_with(criterion.expression)
        return CriterionResult(
            criterion.id,
            criterion.text,
            criterion.test,
            criterion.reading,
            value,
            holds,
            self._basis(criterion),
            evaluate(other, self._resolve) if other is not None else None,
        )

    def _basis(self, criterion: Criterion) -> tuple[str, ...]:
        """Say what a criterion rests on: what was recomputed here, and what stands as published."""
        figures = "figures as published" if self._registers.is_summary else "figures"
        bases: dict[str, None] = {}
        for name in names_in(criterion.expression):
            if name in self._book.rules:
                bases["rules"] = None
            elif name in self._book.intervals:
                interval = self.interval(name)
                source = "not available" if isinstance(interval, Missing) else f"as {interval.source}"
                bases[f"interval {source}"] = None
            else:
                counted = isinstance(self._book.endpoints[name].outcome, Rate)
                bases["counts" if counted else figures] = None
        return tuple(bases)

    def _resolve(self, role: str, name: str) -> Value:
        if role == "passes":
            return self.decide(name).holds
        if role == "value":
            return self.value(name)
        interval = self.interval(name)
        if isinstance(interval, Missing):
            return interval
        return interval.low if role == "lower" else interval.high

    def _mean(self, endpoint: str) -> Scalar:
        value = self.value(endpoint)
        if not isinstance(value, Series):
            return value
        present = value.present()
        return present if isinstance(present, Missing) else sum(present, Fraction(0)) / len(present)

    def _found_interval(self, spec: IntervalSpec) -> Interval | Missing:
        """Return an interval: stored with the study, else computed from its episodes, else as published."""
        mean = self._mean(spec.endpoint)
        if isinstance(mean, Missing):
            return mean
        if not self._registers.has(EPISODES):
            return registered_interval(spec, mean, self._registers)
        stored = None if self._recompute else self._stored.interval(spec.id)
        return stored or self._resampler.interval(spec, self._book.endpoints[spec.endpoint])

    def _close_calls(self, rule: Rule, interval: Interval | Missing | None) -> tuple[str, ...]:
        """Say what other random numbers could turn: tests, those of rules that they name, the evidence."""
        calls: list[str] = []
        for criterion in rule.criteria:
            named = tuple(names_in(criterion.expression))
            intervals = {name: self.interval(name) for name in named if name in self._book.intervals}
            ends = close_tests(criterion.expression, self._resolve, intervals)
            calls += [f"{criterion.id} could turn with {end}" for end in ends]
            for other in (name for name in named if name in self._book.rules):
                calls += [f"{other}: {call}" for call in self.decide(other).close_calls]
        calls += [f"the evidence could turn with {end}" for end in close_evidence(interval, rule.threshold)]
        return tuple(dict.fromkeys(calls))

    def _estimate(self, endpoint: str) -> Estimate:
        declared = self._book.endpoints[endpoint]
        value = self.value(endpoint)
        members = value if isinstance(value, Series) else None
        return Estimate(endpoint, declared.title, declared.unit, self._mean(endpoint), members)

    def _amendment(self, rule_id: str) -> AmendmentRef | None:
        change = self._book.changes.get(rule_id)
        if change is None:
            return None
        return self._reference(change.amendment, change.relation)

    def _added_by(self, rule_id: str) -> AmendmentRef | None:
        change = self._book.changes.get(rule_id)
        return self._reference(change.added_by, "adds") if change and change.added_by else None

    def _reference(self, amendment: str, relation: str) -> AmendmentRef:
        return AmendmentRef(amendment, relation, self._amendments.get(amendment, ""))

    def _rests_on(self, rule: Rule) -> tuple[AmendmentRef, ...]:
        """Return the amendments of the rules that a rule rests on."""
        below = sorted(self._book.names_of(rule) & set(self._book.changes))
        return tuple(dict.fromkeys(ref for ref in map(self._amendment, below) if ref))

    def _endpoints(self, rule: Rule) -> tuple[str, ...]:
        """Return the endpoints that a rule reads: its tests', its estimate's, and those of rules it names."""
        named = self._book.names_of(rule) | {rule.estimate}
        named |= {interval.endpoint for interval in self._book.intervals.values() if interval.id in named}
        return tuple(name for name in self._book.endpoints if name in named)

    def _read(self, rule: Rule) -> tuple[RegisterRef, ...]:
        endpoints = [self._book.endpoints[name] for name in (*self._endpoints(rule), *rule.secondary)]
        tables = {endpoint.register for endpoint in endpoints}
        tables |= {"runs" for endpoint in endpoints if endpoint.arms}
        if rule.interval or self._book.names_of(rule) & set(self._book.intervals):
            tables |= {"intervals", EPISODES}
        read = self._registers
        return tuple(RegisterRef(t, read.sha256(t), read.files(t)) for t in sorted(tables) if read.has(t))


def _verdict(rule: Rule, criteria: Sequence[CriterionResult]) -> str:
    """Combine criteria into a verdict.

    Hypotheses, gates and joint predictions are Kleene conjunctions. Another prediction is partially met as
    soon as one part is met and one is missed; with a part unknown and no such split it has no verdict.
    """
    truths = [criterion.holds for criterion in criteria]
    if not rule.joint and True in truths and False in truths:
        return "partially_met"
    absent = [truth for truth in truths if isinstance(truth, Missing)]
    whole = kleene_all(truths) if rule.joint or not absent else together(absent)
    if isinstance(whole, Missing):
        return "not_run" if whole.not_run else "not_evaluable"
    words = {"hypothesis": ("pass", "miss"), "prediction": ("met", "missed"), "gate": (rule.open, rule.shut)}
    yes, no = words[rule.kind]
    return yes if whole else no
