"""The engine: it decides the criteria of a rule, combines them and compares stored decisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from toolkit.decisions.decision import (
    AmendmentRef,
    Bounds,
    CriterionResult,
    Decision,
    Estimate,
    Kind,
    RegisterRef,
    RegistrationRef,
    Relation,
    of_reading,
)
from toolkit.decisions.evaluation import compared_with, evaluate, subject
from toolkit.decisions.intervals import (
    Interval,
    PValue,
    Resampler,
    Table,
    caution,
    evidence_of,
    interval_by_seed,
    means_divided_by,
    p_value,
    registered_interval,
    unavailable,
)
from toolkit.decisions.measure import (
    EPISODES,
    TASK_POOLS,
    Coverage,
    CurvePoint,
    Indexed,
    Registers,
    Row,
    Succeeding,
    arm_counts,
    coverage_of,
    curve_points,
    excludes,
    lack_outcomes,
    measure,
    members,
    rows_with,
)
from toolkit.errors import DamagedError
from toolkit.estimators.bootstrap import CLOSE_ERRORS
from toolkit.registers.columns import BOUNDS, FAILURE
from toolkit.registers.row_tables import DECISIONS, LAUNCHES
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study
from toolkit.rules.endpoints import BY_SEED, Endpoint, IntervalSpec
from toolkit.rules.expressions import Binary, Call, Expression, names_in
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import Criterion, Rule, Statistic, procedures
from toolkit.rules.values import Missing, Scalar, Series, Value, kleene_all, mean_of, together
from toolkit.structs import replace

# What is decided does not depend on these: decisions are what comes out, and launches enter no rule.
LEFT_OUT = (DECISIONS.name, LAUNCHES.name)
# Ends from another machine may differ in their last digits, where draws are nested: far below any error.
ROUNDING = Fraction(1, 10**9)


def inputs_sha256(study: Study) -> str:
    """Return the SHA-256 of what a study's decisions were made on."""
    tables = {name: study.sha256(name) for name in TABLES if name not in LEFT_OUT and study.has(name)}
    registered = study.manifest.registration
    frozen = {"name": registered.name, "sha256": registered.sha256}
    document = {"registration": frozen, "amendments": dict(registered.amendments), "tables": tables}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def decision_rows(decisions: Sequence[Decision], inputs: str) -> list[dict[str, Any]]:
    """Return decisions as rows of `decisions`."""
    return [_row(decision, inputs) for decision in decisions]


class StoredDecisions:
    """The decisions that a study keeps: none is believed, each has to be the one that is reached.

    Args:
        study: the study.
    """

    def __init__(self, study: Study) -> None:
        rows = study.rows(DECISIONS.name) if study.has(DECISIONS.name) else ()
        self._rows = {row["rule"]: row for row in rows}
        self._inputs = inputs_sha256(study) if rows else ""

    def check(self, decision: Decision) -> None:
        """Check that a stored decision is the one reached now."""
        row = self._rows.get(decision.rule)
        if row is None:
            return
        for name, reached in _row(decision, self._inputs).items():
            if not _same(row[name], reached):
                what = name.replace("_", " ")
                raise DamagedError(
                    f"the stored decision on {decision.rule} has another {what} than the one reached",
                    expected=reached,
                    found=row[name],
                    where=f"{DECISIONS.name} row rule={decision.rule}",
                    remedy="restore the files, or decide and store anew",
                )

    def check_complete(self, rules: Collection[str]) -> None:
        """Check that no decision is stored on a rule that is none."""
        unknown = [rule for rule in self._rows if rule not in rules]
        if unknown:
            raise DamagedError(
                "a decision is stored on a rule that the registration does not have",
                expected=", ".join(rules),
                found=unknown[0],
                where=DECISIONS.name,
            )


def _row(decision: Decision, inputs: str) -> dict[str, Any]:
    estimate = decision.estimate
    mean = None if estimate is None or isinstance(estimate.mean, Missing) else float(estimate.mean)
    interval = decision.interval
    errors = interval.errors if interval else None
    return {
        **{name: getattr(decision, name) for name in ("rule", "kind", "verdict", "evidence")},
        "estimate": mean,
        "interval": interval.id if interval else None,
        "level": float(interval.level) if interval else None,
        "low": float(interval.low) if interval else None,
        "high": float(interval.high) if interval else None,
        "low_error": float(errors[0]) if errors else None,
        "high_error": float(errors[1]) if errors else None,
        "inputs_sha256": inputs,
    }


def _same(stored: object, reached: object) -> bool:
    if isinstance(stored, float) and isinstance(reached, float):
        return abs(Fraction(stored) - Fraction(reached)) <= ROUNDING
    return stored == reached


@dataclass(frozen=True)
class Measured:
    """What the tests of a rule read, by name."""

    values: Mapping[str, Scalar | Series[Fraction]]  # of endpoints and statistics
    intervals: Mapping[str, Interval | Missing]  # registered intervals
    tests: Mapping[str, PValue]  # registered tests of significance
    decisions: Mapping[str, Decision]  # on the rules that it rests on
    is_summary: bool = False  # whether figures stand as published

    def resolve(self, role: str, name: str) -> Value:
        """Return the value of a name in its role, as `evaluate` asks for it."""
        if role == "passes":
            return self.decisions[name].holds
        if role == "value":
            return self.values[name]
        if role == "p":
            return self.tests[name].p
        if role == "adjusted":
            return cast("Scalar", self.tests[name].adjusted)
        interval = self.intervals[name]
        if isinstance(interval, Missing):
            return interval
        return interval.low if role == "lower" else interval.high


def judge(criterion: Criterion, measured: Measured, book: RuleBook) -> CriterionResult:
    """Evaluate a criterion."""
    holds = evaluate(criterion.expression, measured.resolve)
    if not isinstance(holds, bool | Missing):
        raise TypeError(criterion.test)
    value, against = (
        None if part is None else evaluate(part, measured.resolve)
        for part in (subject(criterion.expression), compared_with(criterion.expression))
    )
    named = tuple(names_in(criterion.expression))
    basis = tuple(dict.fromkeys(words for name in named for words in _basis(name, measured, book)))
    return CriterionResult(
        id=criterion.id,
        text=criterion.text,
        test=criterion.test,
        reading=criterion.reading,
        value=value,
        holds=holds,
        basis=basis,
        against=against,
        truths=_truths(criterion.expression, measured),
        rules={name: measured.decisions[name].verdict for name in named if name in measured.decisions},
    )


def _truths(expression: Expression, measured: Measured) -> Series[bool] | None:
    """Return for which members of a series a test of them holds; None for any other test."""
    match expression:
        case Call("each" | "majority", (inside,)) | Binary(">=", Call("count", (inside,)), _):
            return cast("Series[bool]", evaluate(inside, measured.resolve))
        case _:
            return None


def _basis(name: str, measured: Measured, book: RuleBook) -> Iterator[str]:
    """Say what a name rests on: what was recomputed here, and what stands as published."""
    if name in measured.decisions:
        yield "rules"
    elif name in measured.intervals:
        interval = measured.intervals[name]
        yield "interval " + ("not available" if isinstance(interval, Missing) else f"as {interval.source}")
    else:
        if name in measured.tests:
            yield "exact test"
        below = book.read_by([name])
        for endpoint in (e for part, e in book.endpoints.items() if part in below):
            if endpoint.outcome.is_rate:
                yield "counts"
            else:
                yield "figures as published" if measured.is_summary else "figures"


def verdict_of(rule: Rule, criteria: Sequence[CriterionResult], reading: str) -> str:
    """Combine the criteria of a reading into a verdict.

    Hypotheses, gates and joint predictions are Kleene conjunctions. Another prediction is partially met as
    soon as one part is met and one is missed; with a part unknown and no such split it has no verdict.
    """
    truths = [criterion.holds for criterion in of_reading(criteria, reading)]
    if not rule.joint and True in truths and False in truths:
        return "partially_met"
    absent = [truth for truth in truths if isinstance(truth, Missing)]
    whole = kleene_all(truths) if rule.joint or not absent else together(absent)
    if isinstance(whole, Missing):
        return "not_run" if whole.not_run else "not_evaluable"
    words = {"hypothesis": ("pass", "miss"), "prediction": ("met", "missed"), "gate": (rule.open, rule.shut)}
    yes, no = words[rule.kind]
    return yes if whole else no


def close_calls(rule: Rule, measured: Measured, interval: Interval | Missing | None) -> tuple[str, ...]:
    """Say what other random numbers could turn: tests, those of rules that they name, the evidence."""
    calls: list[str] = []
    for criterion in rule.criteria:
        calls += [f"{criterion.id} could turn with {end}" for end in _close_ends(criterion, measured)]
        for name in names_in(criterion.expression):
            if name in measured.decisions:
                calls += [f"{name}: {call}" for call in measured.decisions[name].close_calls]
    ends = close_evidence(interval, rule.threshold)
    return tuple(
        dict.fromkeys(
            calls
            + [f"whether the interval includes zero or the threshold could turn with {end}" for end in ends]
        )
    )


def _close_ends(criterion: Criterion, measured: Measured) -> Iterator[str]:
    """Yield the ends that would turn a test if they lay three Monte Carlo errors elsewhere, in words."""
    holds = evaluate(criterion.expression, measured.resolve)
    for name in names_in(criterion.expression):
        for end, moved in _moved(measured.intervals.get(name)):
            elsewhere = replace(measured, intervals={**measured.intervals, name: moved})
            if evaluate(criterion.expression, elsewhere.resolve) != holds:
                yield end


def close_evidence(interval: Interval | Missing | None, threshold: Fraction | None) -> tuple[str, ...]:
    """Return the ends that would change the evidence if they lay three Monte Carlo errors elsewhere."""
    evidence = evidence_of(interval, threshold)
    turned = [end for end, moved in _moved(interval) if evidence_of(moved, threshold) != evidence]
    return tuple(dict.fromkeys(turned))


def _moved(interval: Interval | Missing | None) -> Iterator[tuple[str, Interval]]:
    """Yield an end in words and the interval with it moved, each way; none where the ends are exact."""
    if not isinstance(interval, Interval) or interval.errors is None:
        return
    low, high = (CLOSE_ERRORS * error for error in interval.errors)
    for sign in (-1, 1):
        yield interval.end_text("lower"), replace(interval, low=interval.low + sign * low)
        yield interval.end_text("upper"), replace(interval, high=interval.high + sign * high)


class Engine:
    """The rules of one registration, applied to one study.

    Args:
        book: the rules.
        registration: name and digest of the frozen files they come from.
        registers: the study.
        amendments: amendment id → SHA-256 of its file.
        stored: the decisions that the study keeps, which have to be the ones reached; None to compare none.
        is_bound: whether it decides on what could have been, beside another.
    """

    def __init__(
        self,
        book: RuleBook,
        registration: tuple[str, str],
        registers: Registers,
        amendments: Mapping[str, str] | None = None,
        stored: StoredDecisions | None = None,
        *,
        is_bound: bool = False,
    ) -> None:
        self._book = book
        self._is_bound = is_bound
        self._registration = registration
        self._registers = Indexed(registers)
        self._amendments = dict(amendments or {})
        self._stored = stored
        self._resampler = Resampler(self._registers, book.plan)
        self._measured: dict[str, Scalar | Series[Fraction]] = {}
        self._intervals: dict[str, Interval | Missing] = {}
        self._tests: dict[str, PValue] = {}
        self._decided: dict[str, Decision] = {}
        self._deciding: dict[str, tuple[str, ...]] = {}
        self._succeeding: dict[tuple[str, ...], Engine] = {}

    @property
    def registers(self) -> Registers:
        """What is decided on."""
        return self._registers

    def _had_succeeded(self, arms: tuple[str, ...]) -> Engine:
        """Return what decides, had every episode of some arms without an outcome succeeded; made once."""
        if arms not in self._succeeding:
            lifted = Succeeding(self._registers, self._book.terms.scores, arms)
            said = (self._book, self._registration, lifted, self._amendments)
            self._succeeding[arms] = Engine(*said, is_bound=True)
        return self._succeeding[arms]

    def _bounds(self, rule_id: str, reached: str, endpoints: Collection[str]) -> Bounds | None:
        """Return what the episodes without an outcome could turn, where such count at all."""
        counting = [e for e in map(self._book.endpoints.__getitem__, endpoints) if e.arms and not excludes(e)]
        if self._is_bound or not counting or not lack_outcomes(self._registers):
            return None
        treated = BOUNDS if any(e.counts_as == BOUNDS for e in counting) else FAILURE
        arms = tuple(dict.fromkeys(arm for endpoint in counting for arm in endpoint.arms))
        alone = {arm: (arm,) for arm in arms} if len(arms) > 1 else {}
        all_succeed = self._had_succeeded(arms).decide(rule_id).verdict
        one_arm = {arm: self._had_succeeded(one).decide(rule_id).verdict for arm, one in alone.items()}
        return Bounds(treated, reached, all_succeed, one_arm)

    def decide(self, rule_id: str) -> Decision:
        """Decide one rule.

        1. Measure what it reads: endpoints, intervals, and the rules that it rests on.
        2. Evaluate every criterion.
        3. Combine the criteria of each reading into a verdict; the binding reading's counts.
        4. Say what it rests on: registers, amendments, what other random numbers could turn, and what the
           episodes without an outcome could.
        5. Hold it against the decision that the study keeps.
        """
        if rule_id in self._decided:
            return self._decided[rule_id]
        rule = self._book.rule(rule_id)
        measured = self._measure(rule)  # 1
        interval = self.interval(rule.interval) if rule.interval else None
        criteria = tuple(self._judge(c, measured) for c in rule.criteria)  # 2
        reached = verdict_of(rule, criteria, rule.binding)  # 3
        names = self._book.names_of(rule)  # 4
        read = self._book.read_by(names | {rule.estimate})
        endpoints = tuple(name for name in self._book.endpoints if name in read)
        change = self._book.changes.get(rule.id)
        readings = {reading: verdict_of(rule, criteria, reading) for reading in rule.readings}
        absent = [gap for gap in (*(c.holds for c in criteria), interval) if isinstance(gap, Missing)]
        decision = Decision(
            rule=rule.id,
            kind=cast("Kind", rule.kind),
            title=rule.title,
            words=rule.text,
            study=self._registers.name,
            verdict="superseded" if rule.superseded else reached,
            holds=kleene_all([c.holds for c in of_reading(criteria, rule.binding)]),
            evidence=evidence_of(interval, rule.threshold),
            criteria=criteria,
            estimate=self._estimate(rule.estimate) if rule.estimate else None,
            interval=interval if isinstance(interval, Interval) else None,
            missing=tuple(dict.fromkeys(reason for gap in absent for reason in gap.reasons)),
            threshold=rule.threshold,
            readings=readings,
            binding=rule.binding,
            readings_agree=len(set(readings.values())) == 1 if readings else None,
            original_verdict=reached if rule.superseded else None,
            superseded=rule.superseded,
            registration=RegistrationRef(*self._registration),
            amendment=self._reference(change.amendment, change.relation) if change else None,
            rests_on=self._rests_on(names),
            registers=self._read(read | {*rule.secondary}, names | {rule.interval}),
            endpoints_read=endpoints,
            statistics_read=tuple(name for name in self._book.statistics if name in read),
            tests=tuple(self.test(name) for name in self._book.tests if name in names),
            secondary=tuple(self._estimate(name) for name in rule.secondary),
            close_calls=close_calls(rule, measured, interval),
            added_by=self._reference(change.added_by, "adds") if change and change.added_by else None,
            origin=self._registers.origin,
        )
        bounds = self._bounds(rule_id, decision.verdict, endpoints)
        if bounds:
            decision = replace(decision, bounds=bounds, verdict=bounds.verdict)
        if self._stored is not None:  # 5
            self._stored.check(decision)
        self._decided[rule_id] = decision
        return decision

    def decide_all(self, rule_ids: Sequence[str] = ()) -> tuple[Decision, ...]:
        """Decide the named rules in their order, or every rule of the registration."""
        return tuple(self.decide(rule_id) for rule_id in rule_ids or self._book.rules)

    def value(self, name: str) -> Scalar | Series[Fraction]:
        """Return the value of an endpoint or a statistic, found once."""
        if name not in self._measured:
            declared = self._book.declared(name)
            if isinstance(declared, Statistic):
                made = evaluate(declared.expression, lambda _, part: self.value(part))
                self._measured[name] = cast("Scalar", made)
            else:
                self._measured[name] = self._value_of(declared)
        return self._measured[name]

    def _value_of(self, endpoint: Endpoint) -> Scalar | Series[Fraction]:
        if self._registers.has(endpoint.register):
            self._derive(endpoint, self._names_read(endpoint))
        return measure(endpoint, self._registers, self._book.plan)

    def interval(self, name: str) -> Interval | Missing:
        """Return a registered interval, or what is missing for it; found once."""
        if name not in self._intervals:
            self._intervals[name] = self._find_interval(self._book.intervals[name])
        return self._intervals[name]

    def test(self, name: str) -> PValue:
        """Return a registered test with its p-value, or with what is missing for it; made once."""
        if name not in self._tests:
            self._tests[name] = p_value(name, self._book, self.value, self._by_task)
        return self._tests[name]

    def _by_task(self, endpoint: Endpoint) -> Table | Missing:
        """Return the differences of an endpoint by seed and task; what its value lacks, they lack."""
        mean = mean_of(self.value(endpoint.id))
        if isinstance(mean, Missing):
            return mean
        if not self._registers.has(EPISODES):
            return unavailable(f"{endpoint.id} by task takes episode rows, and the study has none")
        differences = self._resampler.differences(endpoint)
        return differences if isinstance(differences, Missing) else differences[0]

    def curve(self, endpoint: str) -> tuple[CurvePoint, ...]:
        """Return the learning curves behind an endpoint over several steps."""
        declared = self._book.endpoints[endpoint]
        shown = [run for run in self._registers.rows("runs") if run["arm"] in declared.arms]
        self._derive(declared, [run["run_id"] for run in shown if run["condition"] == declared.condition])
        return curve_points(declared, self._registers, self._book.plan)

    def _measure(self, rule: Rule) -> Measured:
        names = list(dict.fromkeys(n for c in rule.criteria for n in names_in(c.expression)))
        return Measured(
            {
                name: self.value(name)
                for name in names
                if name in {**self._book.endpoints, **self._book.statistics}
            },
            {name: self.interval(name) for name in names if name in self._book.intervals},
            {name: self.test(name) for name in names if name in self._book.tests},
            {name: self.decide(name) for name in names if name in self._book.rules},
            self._registers.is_summary,
        )

    def _judge(self, criterion: Criterion, measured: Measured) -> CriterionResult:
        result = judge(criterion, measured, self._book)
        read = self._book.read_by(tuple(names_in(criterion.expression)))
        endpoints = [endpoint for name, endpoint in self._book.endpoints.items() if name in read]
        decided = result.failing if result.holds is False else ()
        return replace(
            result,
            cautions=self._cautions(criterion),
            procedures=procedures(criterion.expression, self._book.intervals),
            counts=arm_counts(endpoints[0], self._registers, self._book.plan, decided)
            if len(endpoints) == 1
            else (),
        )

    def _cautions(self, criterion: Criterion) -> tuple[str, ...]:
        """Say where a test, or a statistic that it reads, divides by a mean that may be zero."""
        parts = self._book.read_by(tuple(names_in(criterion.expression)))
        formulas = [
            statistic.expression for name, statistic in self._book.statistics.items() if name in parts
        ]
        divided = dict.fromkeys(n for e in (criterion.expression, *formulas) for n in means_divided_by(e))
        known = {
            spec.endpoint: name for name, spec in self._book.intervals.items() if spec.endpoint in divided
        }
        said = (
            caution(name, self.value(name), self.interval(known[name]) if name in known else None)
            for name in divided
        )
        return tuple(text for text in said if text)

    def _find_interval(self, spec: IntervalSpec) -> Interval | Missing:
        """Return an interval: computed from the study's rows, or as published where it has no episodes."""
        if spec.method in BY_SEED:
            return interval_by_seed(spec, self._book, self.value)
        mean = mean_of(self.value(spec.endpoint))
        if isinstance(mean, Missing):
            return mean
        if not self._registers.has(EPISODES):
            return registered_interval(spec, mean, self._registers)
        return self._resampler.interval(spec, self._book.endpoints[spec.endpoint])

    def _estimate(self, endpoint: str) -> Estimate:
        declared, value = self._book.declared(endpoint), self.value(endpoint)
        members = value if isinstance(value, Series) else None
        coverage: tuple[Coverage, ...] = ()
        if isinstance(declared, Endpoint) and self._book.terms.missing is not None:
            coverage = coverage_of(declared, self._registers, self._book.plan)
        return Estimate(endpoint, declared.title, declared.unit, mean_of(value), members, coverage)

    def _reference(self, amendment: str, relation: str) -> AmendmentRef:
        return AmendmentRef(amendment, cast("Relation", relation), self._amendments.get(amendment, ""))

    def _rests_on(self, named: set[str]) -> tuple[AmendmentRef, ...]:
        """Return the amendments of the rules among some names."""
        changes = [self._book.changes[name] for name in sorted(named & set(self._book.changes))]
        return tuple(dict.fromkeys(self._reference(c.amendment, c.relation) for c in changes))

    def _derive(self, endpoint: Endpoint, names: Collection[str]) -> None:
        """Hold the rows that an endpoint reads against those that they follow from.

        Of runs, all in the endpoint's places: those that are said not to count, too.
        """
        if endpoint.arms and self._registers.has("runs"):
            cell = (endpoint.condition, endpoint.arms, endpoint.seeds)
            there = (run for run in self._registers.rows("runs") if _is_in(run, *cell))
            self._registers.derive("runs", [run["run_id"] for run in there])
        if self._registers.has(endpoint.register):
            self._registers.derive(endpoint.register, names)

    def _names_read(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the runs that an endpoint reads, or the checkpoints, as `trajectory@step`."""
        if endpoint.by == "checkpoint":
            return tuple(members(endpoint))
        if not self._registers.has(endpoint.register if endpoint.by == "row" else "runs"):
            return ()
        if endpoint.by == "row":
            rows = rows_with(self._registers.rows(endpoint.register), endpoint.where)
            return tuple(
                dict.fromkeys(row.get("run_id") or "{trajectory}@{step}".format(**row) for row in rows)
            )
        if endpoint.id not in self._deciding:
            runs: list[Any] = self._registers.rows("runs")
            deciding = self._book.plan.deciding_runs(endpoint, runs).values()
            self._deciding[endpoint.id] = tuple(run for run in deciding if isinstance(run, str))
        return self._deciding[endpoint.id]

    def _read(self, names: Collection[str], named: set[str]) -> tuple[RegisterRef, ...]:
        """Return the tables that endpoints and statistics rest on, and those of intervals if one is named.

        Of a table with one file a run, the files of the runs that were read.
        """
        read: dict[str, set[str]] = {}
        below = self._book.read_by(names)
        for endpoint in (e for name, e in self._book.endpoints.items() if name in below):
            for table in ("runs", endpoint.register) if endpoint.arms else (endpoint.register,):
                read.setdefault(table, set())
                for source in TABLES[table].follows:
                    read.setdefault(source, set()).update(self._names_read(endpoint))
            if endpoint.attributes:
                read.setdefault(TASK_POOLS, set())
        if named & set(self._book.intervals):
            read.setdefault("intervals", set())
        return tuple(self._reference_to(t, read[t]) for t in sorted(read) if self._registers.has(t))

    def _reference_to(self, table: str, names: Collection[str]) -> RegisterRef:
        """Return a table with what was hashed of it; of some runs alone where they are named."""
        stems = {name.partition("@")[0] for name in names}
        files = self._registers.hashed(table).items()
        mine = {file: sha256 for file, sha256 in files if not stems or _stem(file) in stems}
        return RegisterRef(table, self._registers.hashed_rows(table), mine)


def _is_in(run: Row, condition: str, arms: Collection[str], seeds: Collection[int]) -> bool:
    return run["condition"] == condition and run["arm"] in arms and run["seed"] in seeds


def _stem(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".parquet")
