"""Deciding: the rules of one registration on the registers of one study."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from toolkit.decisions.computed import EPISODES, Resampler
from toolkit.decisions.criteria import Measured, close_calls, judge, verdict_of
from toolkit.decisions.decision import AmendmentRef, Decision, Estimate, RegisterRef
from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.expressions import names_in
from toolkit.decisions.interval import Interval, evidence_of, registered_interval
from toolkit.decisions.lookup import Indexed, Registers
from toolkit.decisions.measure import CurvePoint, curve_points, measure
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.rules import Rule
from toolkit.decisions.stored import StoredDecisions, inputs_sha256
from toolkit.decisions.values import Missing, Scalar, Series, kleene_all, mean_of


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

        1. Measure what it reads: endpoints, intervals, and the rules that it rests on.
        2. Evaluate every criterion.
        3. Combine the criteria of each reading into a verdict; the binding reading's counts.
        4. Say what it rests on: registers, amendments, and what other random numbers could turn.
        5. Hold it against the decision that the study has stored on the same inputs.

        Raises:
            UsageError: the registration has no such rule.
            DamagedError: rows contradict each other, a value lies outside its declared range, or the stored
                decision is another.
        """
        if rule_id in self._decided:
            return self._decided[rule_id]
        rule = self._book.rule(rule_id)
        measured = self._measure(rule)  # 1
        interval = self.interval(rule.interval) if rule.interval else None
        criteria = tuple(judge(c, measured, self._book.endpoints) for c in rule.criteria)  # 2
        reached = verdict_of(rule, criteria, rule.binding)  # 3
        names = self._book.names_of(rule)  # 4
        endpoints = self._endpoints(names | {rule.estimate})
        change = self._book.changes.get(rule.id)
        decision = Decision(
            rule=rule.id,
            kind=rule.kind,
            title=rule.title,
            text=rule.text,
            study=self._registers.name,
            verdict="superseded" if rule.superseded else reached,
            holds=kleene_all([c.holds for c in criteria if c.reading in (None, rule.binding or None)]),
            evidence=evidence_of(interval, rule.threshold),
            criteria=criteria,
            estimate=self._estimate(rule.estimate) if rule.estimate else None,
            interval=interval,
            threshold=rule.threshold,
            readings={reading: verdict_of(rule, criteria, reading) for reading in rule.readings},
            binding=rule.binding,
            original_verdict=reached if rule.superseded else None,
            superseded=rule.superseded,
            registration=self._registration,
            amendment=self._reference(change.amendment, change.relation) if change else None,
            rests_on=self._rests_on(names),
            registers=self._read((*endpoints, *rule.secondary), names | {rule.interval}),
            endpoints=endpoints,
            secondary=tuple(self._estimate(name) for name in rule.secondary),
            close_calls=close_calls(rule, measured, interval),
            added_by=self._reference(change.added_by, "adds") if change and change.added_by else None,
            origin=self._registers.origin,
        )
        self._stored.check(decision)  # 5
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
            self._intervals[name] = self._find_interval(self._book.intervals[name])
        return self._intervals[name]

    def curve(self, endpoint: str) -> tuple[CurvePoint, ...]:
        """Return the learning curves behind an endpoint over several steps."""
        return curve_points(self._book.endpoints[endpoint], self._registers, self._book.plan)

    def _measure(self, rule: Rule) -> Measured:
        names = list(dict.fromkeys(n for c in rule.criteria for n in names_in(c.expression)))
        return Measured(
            {name: self.value(name) for name in names if name in self._book.endpoints},
            {name: self.interval(name) for name in names if name in self._book.intervals},
            {name: self.decide(name) for name in names if name in self._book.rules},
            self._registers.is_summary,
        )

    def _find_interval(self, spec: IntervalSpec) -> Interval | Missing:
        """Return an interval: stored with the study, else computed from its episodes, else as published."""
        mean = mean_of(self.value(spec.endpoint))
        if isinstance(mean, Missing):
            return mean
        if not self._registers.has(EPISODES):
            return registered_interval(spec, mean, self._registers)
        stored = None if self._recompute else self._stored.interval(spec.id)
        return stored or self._resampler.interval(spec, self._book.endpoints[spec.endpoint])

    def _estimate(self, endpoint: str) -> Estimate:
        declared, value = self._book.endpoints[endpoint], self.value(endpoint)
        members = value if isinstance(value, Series) else None
        return Estimate(endpoint, declared.title, declared.unit, mean_of(value), members)

    def _reference(self, amendment: str, relation: str) -> AmendmentRef:
        return AmendmentRef(amendment, relation, self._amendments.get(amendment, ""))

    def _rests_on(self, named: set[str]) -> tuple[AmendmentRef, ...]:
        """Return the amendments of the rules among some names."""
        changes = [self._book.changes[name] for name in sorted(named & set(self._book.changes))]
        return tuple(dict.fromkeys(self._reference(c.amendment, c.relation) for c in changes))

    def _endpoints(self, named: set[str]) -> tuple[str, ...]:
        """Return the endpoints among some names, and those of the intervals among them."""
        below = {spec.endpoint for spec in self._book.intervals.values() if spec.id in named}
        return tuple(name for name in self._book.endpoints if name in named | below)

    def _read(self, names: Sequence[str], named: set[str]) -> tuple[RegisterRef, ...]:
        """Return the tables that some endpoints are read from, and those of intervals if one is named."""
        endpoints = [self._book.endpoints[name] for name in names]
        tables = {endpoint.register for endpoint in endpoints}
        tables |= {"runs" for endpoint in endpoints if endpoint.arms}
        tables |= {"intervals", EPISODES} if named & set(self._book.intervals) else set()
        read = self._registers
        return tuple(RegisterRef(t, read.sha256(t), read.files(t)) for t in sorted(tables) if read.has(t))
