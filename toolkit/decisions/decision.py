"""A decision: verdict, criteria, estimate, evidence, and the reasons in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from toolkit.decisions.evaluation import COMPARE
from toolkit.decisions.intervals import Interval, PValue
from toolkit.decisions.measure import ArmCounts, Coverage
from toolkit.prereg.verification import UNVERIFIED, Standing
from toolkit.registers.columns import BOUNDS
from toolkit.registers.manifest import Origin
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number, parse
from toolkit.rules.rules import MARGINS, expanded
from toolkit.rules.values import Missing, Series, Value, exact_text, fixed, printed

if TYPE_CHECKING:
    from toolkit.documents import decisions as documents


@dataclass(frozen=True)
class CriterionResult:
    """One criterion."""

    id: str  # id, text, test, reading: as written in the rules
    text: str
    test: str
    reading: str | None
    value: Value | None  # the number tested, where the test is about one
    holds: bool | Missing  # whether it holds
    # What it rests on: `counts`, `figures`, `figures as published`, `interval as published`, `exact test`
    # and what that is of, `rules`
    basis: tuple[str, ...]
    # What the value is compared with, where that is measured, too, and no number as written
    against: Value | None = None
    cautions: tuple[str, ...] = ()  # quotients in the test whose denominator is not told from zero, in words
    # Which tests its comparisons with margins are, and at what level, in words
    procedures: tuple[str, ...] = ()
    truths: Series[bool] | None = None  # of a test of every member of a series, whether it holds for each
    counts: tuple[ArmCounts, ...] = ()  # what the arms had, where it rests on one rate
    rules: Mapping[str, str] = field(default_factory=dict)  # the verdicts of the rules that it names

    @property
    def known(self) -> bool | None:
        """Whether it holds; None where that is not known."""
        return None if isinstance(self.holds, Missing) else self.holds

    @property
    def failing(self) -> tuple[str, ...]:
        """The members of a series for which a test of every one does not hold."""
        items = self.truths.items if self.truths else ()
        return tuple(member for member, holds in items if holds is False)

    @property
    def marked(self) -> str:
        """The criterion in a line of HTML, with a mark that says whether it holds."""
        mark = {True: "✓", False: "✗", None: "?"}[self.known]
        return f"{mark} {escape(self.text)} <code>{escape(self.test)}</code>"

    def as_dict(self) -> documents.CriterionDocument:
        """Return the criterion as it is printed with `--json`."""
        exact, decimal = printed(self.value)
        reading: documents.OfReading = {"reading": self.reading} if self.reading else {}
        against: documents.Against = {} if self.against is None else {"against": printed(self.against)[1]}
        remarks: documents.CriterionRemarks = {}
        if isinstance(self.holds, Missing):
            remarks["missing"] = list(self.holds.reasons)
        if self.cautions:
            remarks["cautions"] = list(self.cautions)
        if self.procedures:
            remarks["procedures"] = list(self.procedures)
        if self.truths:
            remarks["failing"] = list(self.failing)
        if self.counts:
            remarks["counts"] = [counts.as_dict() for counts in self.counts]
        if self.rules:
            remarks["rules"] = dict(self.rules)
        return {
            "id": self.id,
            "text": self.text,
            "test": self.test,
            **reading,
            "value": exact,
            "decimal": decimal,
            **against,
            "basis": list(self.basis),
            "holds": self.known,
            **remarks,
        }


@dataclass(frozen=True)
class Estimate:
    """The value of an endpoint, its mean and its members where it is a series; or that of a statistic."""

    endpoint: str
    title: str
    unit: str
    mean: Fraction | Missing
    members: Series[Fraction] | None
    coverage: tuple[Coverage, ...] = ()  # by arm, where the rules say what becomes of missing episodes

    def as_dict(self) -> documents.EstimateDocument:
        """Return the estimate as it is printed with `--json`."""
        document: documents.EstimateDocument = {"endpoint": self.endpoint, "mean": printed(self.mean)[1]}
        if self.members is not None:
            document[f"by_{self.members.unit}"] = printed(self.members)[1]  # type: ignore[literal-required]
        if self.coverage:
            document["coverage"] = [each.as_dict() for each in self.coverage]
        return document

    @property
    def mean_text(self) -> str:
        """The mean, signed where it is one of differences; empty where it is missing."""
        if isinstance(self.mean, Missing):
            return ""
        return fixed(self.mean, signed=self.members is not None)

    @property
    def members_text(self) -> str:
        """The members, as `0:+0.0539, 1:-0.0016`; empty where it is no series."""
        items = self.members.items if self.members else ()
        return ", ".join(
            f"{name}:{'missing' if isinstance(value, Missing) else fixed(value, signed=True)}"
            for name, value in items
        )

    @property
    def in_words(self) -> str:
        """What it is, its mean, and its members where it has some."""
        members = f" ({self.members.unit}s {self.members_text})" if self.members else ""
        return f"{self.title}: {self.mean_text or 'missing'}{members}"


@dataclass(frozen=True)
class AmendmentRef:
    """What an amendment did to a rule: it `replaces` it, `restates` it on what it changed, or `adds` it."""

    id: str
    relation: documents.Relation
    sha256: str

    def as_dict(self) -> documents.AmendmentRefDocument:
        """Return the amendment as decisions state it."""
        return {"id": self.id, "relation": self.relation, "sha256": self.sha256}


@dataclass(frozen=True)
class Exploratory:
    """What a rule would say as an amendment has it that was made after the runs, and binds nothing."""

    amendment: str
    sha256: str
    verdict: str
    evidence: documents.Evidence

    def as_dict(self) -> documents.ExploratoryDocument:
        """Return it as decisions state it."""
        return {
            "amendment": self.amendment,
            "sha256": self.sha256,
            "verdict": self.verdict,
            "evidence": self.evidence,
        }


@dataclass(frozen=True)
class Bounds:
    """What the episodes without an outcome could turn."""

    counts_as: str  # what they count as, as registered
    # all_fail, all_succeed: the verdict with all of them failures, and with all of them successes
    all_fail: str
    all_succeed: str
    one_arm: dict[str, str]  # arm → the verdict with those of this arm alone successes; of several arms

    @property
    def in_words(self) -> str:
        """The verdicts, in words."""
        fail, succeed = (verdict.replace("_", " ") for verdict in (self.all_fail, self.all_succeed))
        if {fail} == {succeed, *(verdict.replace("_", " ") for verdict in self.one_arm.values())}:
            one = ", or a success in one arm alone" if self.one_arm else ""
            return f"{fail} with every episode without an outcome a failure, or a success{one}"
        alone = [f", with those of {arm} alone {of.replace('_', ' ')}" for arm, of in self.one_arm.items()]
        return (
            f"with every episode without an outcome a failure {fail}, with every one a success {succeed}"
            f"{''.join(alone)}"
        )

    @property
    def verdict(self) -> str:
        """The verdict that stands: none where the bounds are registered to agree, and do not."""
        agree = self.counts_as != BOUNDS or {self.all_fail} == {self.all_succeed, *self.one_arm.values()}
        return self.all_fail if agree else "not_evaluable"

    def as_dict(self) -> documents.BoundsDocument:
        """Return the verdicts as decisions state them."""
        return {
            "counts_as": self.counts_as,
            "all_fail": self.all_fail,
            "all_succeed": self.all_succeed,
            "one_arm": self.one_arm,
        }


@dataclass(frozen=True)
class RegisterRef:
    """A table that was read, with the hashes that were computed when it was."""

    config: str  # the table
    sha256: str | None  # its logical row hash; None where only some of its files were read
    files: dict[str, str]  # the SHA-256 of each file that was read, by its path

    def as_dict(self) -> documents.RegisterRefDocument:
        """Return the table as decisions state it."""
        return {"config": self.config, "sha256": self.sha256, "files": self.files}


@dataclass(frozen=True)
class Decision:
    """The verdict on one rule in one study."""

    rule: str
    kind: documents.Kind
    title: str
    text: str
    study: str  # the study
    # pass, miss; met, partially_met, missed, superseded; not_evaluable, not_run; or a gate's outcome
    verdict: str
    holds: bool | Missing  # whether everything that the binding reading asks for holds
    evidence: documents.Evidence  # what the interval shows beside the verdict
    criteria: tuple[CriterionResult, ...]  # every criterion of every reading
    estimate: Estimate | None  # the rule's estimate, where it names an endpoint or a statistic
    interval: Interval | Missing | None  # its registered interval, or what is missing for it
    threshold: Fraction | None  # the value beside zero that the interval is compared with
    readings: dict[str, str]  # verdict by reading, where there are several; `binding` is the one that decides
    binding: str
    original_verdict: str | None  # of a superseded prediction, and why it is superseded
    superseded: str
    registration: tuple[str, str]  # name and digest of the frozen files
    amendment: AmendmentRef | None  # what the last amendment that names the rule did to it
    rests_on: tuple[AmendmentRef, ...]  # amendments of the rules that it rests on
    secondary: tuple[Estimate, ...]  # endpoints shown beside the rule that decide nothing
    registers: tuple[RegisterRef, ...]  # every table read
    endpoints: tuple[str, ...]  # the endpoints that its tests and its estimate read
    close_calls: tuple[str, ...] = ()  # what other random numbers in the bootstrap could turn, in words
    added_by: AmendmentRef | None = None  # the amendment that added the rule; None where it was frozen
    origin: Origin | None = None  # the commit of the Hub that the study was read from; None for a local study
    standing: Standing = UNVERIFIED  # what the registration stands on
    exploratory: tuple[Exploratory, ...] = ()  # what the rule would say as changed after the runs
    pilot_rows: str = ""  # why rows of a pilot are among those that it was decided on; empty where none are
    is_exploratory: bool = False  # whether the rule was added after the runs: its verdict binds nothing
    statistics: tuple[str, ...] = ()  # the statistics that they name, and those that these are made of
    bounds: Bounds | None = None  # what the episodes without an outcome could turn; None where there are none
    tests: tuple[PValue, ...] = ()  # the tests of significance that they name

    @property
    def readings_agree(self) -> bool:
        """Whether every reading gives the same verdict."""
        return len(set(self.readings.values())) <= 1

    @property
    def missed(self) -> bool:
        """Whether `--fail-on-miss` counts the verdict as a miss."""
        counts = self.kind != "gate" and not self.superseded and not self.is_exploratory
        return self.holds is False and counts

    @property
    def binding_criteria(self) -> tuple[CriterionResult, ...]:
        """The criteria of the reading that binds."""
        return of_reading(self.criteria, self.binding)

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing, each reason once."""
        absent = [c.holds for c in self.criteria if isinstance(c.holds, Missing)]
        if isinstance(self.interval, Missing):
            absent.append(self.interval)
        return tuple(dict.fromkeys(reason for gap in absent for reason in gap.reasons))

    def __repr__(self) -> str:
        shown = f"<Decision {self.rule!r} in {self.study!r}: {self.verdict!r}"
        return f"{shown}, {self.evidence.replace('_', ' ')}, standing {self.standing.name}>"

    def _repr_html_(self) -> str:
        """Return the decision as a notebook shows it."""
        lines = [
            f"Evidence: {self.evidence.replace('_', ' ')}.",
            *([f"Estimate: {self.estimate.in_words}."] if self.estimate else []),
            *(
                [f"{self.interval.text}, {self.interval.origin}."]
                if isinstance(self.interval, Interval)
                else []
            ),
            *([f"Missing: {'; '.join(self.missing)}."] if self.missing else []),
            f"Registration {self.registration[0]}: {self.standing}.",
        ]
        head = f"<b>{escape(self.rule)}</b> {escape(self.title)}, study {escape(self.study)}: "
        criteria = "".join(f"<li>{criterion.marked}</li>" for criterion in self.criteria)
        return (
            f"<p>{head}<b>{escape(self.verdict.replace('_', ' '))}</b></p><ul>{criteria}</ul>"
            f"<p>{'<br>'.join(map(escape, lines))}</p>"
        )

    def as_dict(self) -> documents.DecisionDocument:
        """Return the decision as it is printed with `--json`."""
        name, sha256 = self.registration
        return {
            "rule": self.rule,
            "kind": self.kind,
            "title": self.title,
            "study": self.study,
            "verdict": self.verdict,
            "evidence": self.evidence,
            "criteria": [criterion.as_dict() for criterion in self.criteria],
            "estimate": self.estimate.as_dict() if self.estimate else None,
            "interval": self.interval.as_dict() if isinstance(self.interval, Interval) else None,
            **self._remarks(),
            "registration": {"name": name, "sha256": sha256, **self.standing.as_dict()},
            **self._amendments(),
            "origin": self.origin.as_dict() if self.origin else None,
            "registers": [register.as_dict() for register in self.registers],
        }

    def _remarks(self) -> documents.Remarks:
        document: documents.Remarks = {}
        if self.tests:
            document["tests"] = [test.as_dict() for test in self.tests]
        if self.readings:
            document["readings"] = self.readings
            document["binding_reading"] = self.binding
            document["readings_agree"] = self.readings_agree
        if self.original_verdict:
            document["original_verdict"] = self.original_verdict
            document["superseded"] = self.superseded
        if self.missing:
            document["missing"] = list(self.missing)
        if self.bounds:
            document["missing_data"] = self.bounds.as_dict()
        if self.pilot_rows:
            document["contains_pilot_rows"] = self.pilot_rows
        if self.close_calls:
            document["close_calls"] = list(self.close_calls)
        return document

    def _amendments(self) -> documents.Amendments:
        document: documents.Amendments = {}
        if self.exploratory:
            document["exploratory"] = [changed.as_dict() for changed in self.exploratory]
        if self.is_exploratory:
            document["is_exploratory"] = True
        if self.amendment:
            document["amended_by"] = self.amendment.id
            document["amendment"] = self.amendment.as_dict()
        if self.added_by:
            document["added_by"] = self.added_by.as_dict()
        if self.rests_on:
            document["rests_on_amendments"] = [ref.as_dict() for ref in self.rests_on]
        if self.secondary:
            document["secondary"] = [estimate.as_dict() for estimate in self.secondary]
        return document


def of_reading(criteria: Iterable[CriterionResult], reading: str) -> tuple[CriterionResult, ...]:
    """Return the criteria of a reading: its own, and those of every reading."""
    return tuple(criterion for criterion in criteria if criterion.reading in (None, reading or None))


# A fraction longer than this says nothing to a reader.
LONGEST = 10
MOST_MEMBERS = 5
RATIO = "ratio"
_FLIPPED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_REGION = {">": "above", ">=": "at or above", "<": "below", "<=": "at or below"}


def what_decided(decision: Decision) -> str:
    """Return what a verdict rests on: the criteria that failed, and where, or that none did."""
    bounds, binding = decision.bounds, decision.binding_criteria
    if bounds and bounds.verdict != bounds.all_fail:
        return bounds.in_words
    failed = [c for c in binding if c.holds is False]
    unknown = [c for c in binding if isinstance(c.holds, Missing)]
    if unknown and decision.verdict in ("not_evaluable", "not_run"):
        return f"{len(unknown)} of {len(binding)} criteria cannot be evaluated"
    if failed:
        names = ", ".join(f"{c.id}{_at(c)}" for c in failed)
        if len(binding) == 1:
            return f"the criterion fails: {names}"
        return f"{len(failed)} of {len(binding)} criteria {'fails' if len(failed) == 1 else 'fail'}: {names}"
    return {1: "the criterion holds", 2: "both criteria hold"}.get(
        len(binding), f"all {len(binding)} criteria hold"
    )


def criterion_says(criterion: CriterionResult) -> str:
    """Return a criterion's test, and the number that it tests."""
    rules = ", ".join(f"{rule} {spoken(verdict)}" for rule, verdict in criterion.rules.items())
    if isinstance(criterion.holds, Missing) or criterion.value is None:
        return f"{criterion.test}: {rules}" if rules else criterion.test
    return f"{criterion.test}: {_tested(criterion.value, criterion)}"


def counts_say(counts: Sequence[ArmCounts]) -> str:
    """Return what arms had, in words: `seed 1: paired 473, independent 474 of 768 episodes`."""
    groups: dict[int | None, list[ArmCounts]] = {}
    for one in counts:
        groups.setdefault(one.seed, []).append(one)
    return "; ".join(_group(seed, members) for seed, members in groups.items())


def interval_says(decision: Decision) -> str:
    """Return what an interval shows, in the terms of the tests that read it; empty where there is none.

    An interval that a test holds against numbers is inside or outside of these; of any other it is said
    whether it includes zero, or 1 where it is of a ratio, and the threshold.
    """
    interval = decision.interval
    if not isinstance(interval, Interval):
        return ""
    held = _bounds(decision, interval)
    if held:
        inside = all(COMPARE[operator](end, bound) for end, operator, bound in held)
        return f"{'' if inside else 'not '}{_region(held)}"
    # Of a statistic that is a ratio, 1 says that there is no difference.
    estimate = decision.estimate
    is_ratio = estimate and estimate.unit == RATIO and estimate.endpoint in decision.statistics
    none = Fraction(1 if is_ratio else 0)
    includes = [_plain(none)] if interval.low <= none <= interval.high else []
    threshold = decision.threshold
    if threshold and interval.low <= threshold <= interval.high:
        includes.append(f"the threshold {_plain(threshold)}")
    return f"includes {' and '.join(includes)}" if includes else f"excludes {_plain(none)}"


def interval_bounds(decision: Decision) -> tuple[Fraction, ...]:
    """Return the numbers that tests hold an interval against, upwards; none where no region says it."""
    interval = decision.interval
    held = _bounds(decision, interval) if isinstance(interval, Interval) else []
    return tuple(sorted(bound for _, _, bound in held))


def estimate_lines(decision: Decision, *, seeds: bool) -> Iterator[str]:
    """Yield a decision's estimate, of all seeds or over their range, and what its interval says."""
    estimate, interval = decision.estimate, decision.interval
    if estimate and estimate.mean_text:
        over = f" ({estimate.members.unit}s {range_text(decision)})" if estimate.members else ""
        yield estimate.in_words if seeds else f"{estimate.title}: {estimate.mean_text}{over}"
    if estimate and estimate.coverage:
        yield f"episodes: {'; '.join(each.in_words for each in estimate.coverage)}"
    if isinstance(interval, Interval):
        published = interval.origin == "published"
        made = "as published, with no episodes to compute it from" if published else interval.origin
        yield f"{interval.text}, {made}: {interval_says(decision)}"


def missing_says(decision: Decision) -> str:
    """Return what a decision lacks: the first of it, and how much more; empty where nothing is missing."""
    if not decision.missing:
        return ""
    first, *more = decision.missing
    return f"missing: {first}" + (f", and {len(more)} more (--json lists them)" if more else "")


def range_text(decision: Decision) -> str:
    """Return the range of an estimate's members, as `-0.0016 to +0.0586`."""
    numbers = _numbers(decision)
    if not numbers:
        return ""
    return f"{fixed(min(numbers), signed=True)} to {fixed(max(numbers), signed=True)}"


def spoken(verdict: str) -> str:
    """Return a verdict as it is said: with spaces."""
    return verdict.replace("_", " ")


def _numbers(decision: Decision) -> list[Fraction]:
    """Return the members of an estimate, where all of them are there."""
    estimate = decision.estimate
    if estimate is None or estimate.members is None or isinstance(estimate.mean, Missing):
        return []
    return [number for number in estimate.members.values if isinstance(number, Fraction)]


def _bounds(decision: Decision, interval: Interval) -> list[tuple[Fraction, str, Fraction]]:
    """Return how the binding criteria hold the ends of an interval against numbers: (end, operator, number).

    Nothing where they bound an end twice, or leave no number between: no region says that.
    """
    ends = {"lower": interval.low, "upper": interval.high}
    found = [
        held for c in decision.binding_criteria for held in _held(parse(c.test, decision.rule), interval.id)
    ]
    below = [bound for end, operator, bound in found if (end, operator[0]) == ("lower", ">")]
    above = [bound for end, operator, bound in found if (end, operator[0]) == ("upper", "<")]
    one_region = len(below) <= 1 and len(above) <= 1 and len(below) + len(above) == len(found)
    if not one_region or (below and above and below[0] >= above[0]):
        return []
    return [(ends[end], operator, bound) for end, operator, bound in found]


def _region(held: Sequence[tuple[Fraction, str, Fraction]]) -> str:
    """Return the region that bounds make, in words."""
    if len(held) == 1:
        ((_, operator, bound),) = held
        return f"{_REGION[operator]} {_plain(bound)}"
    low, high = sorted(bound for _, _, bound in held)
    return f"inside ±{_plain(high)}" if low == -high else f"inside {_plain(low)} to {_plain(high)}"


def _held(expression: Expression, interval: str) -> Iterator[tuple[str, str, Fraction]]:
    """Yield every comparison of an interval's end with a number that has to hold: (end, operator, number)."""
    match expression:
        case Call(operator, _) if operator in MARGINS:
            yield from _held(expanded(expression), interval)
        case Call("all", arguments):
            for argument in arguments:
                yield from _held(argument, interval)
        case Binary(operator, Call(("lower" | "upper") as end, (Name(name),)), other) if name == interval:
            if (bound := _constant(other)) is not None and operator in _FLIPPED:
                yield end, operator, bound
        case Binary(operator, other, Call(("lower" | "upper") as end, (Name(name),))) if name == interval:
            if (bound := _constant(other)) is not None and operator in _FLIPPED:
                yield end, _FLIPPED[operator], bound


def _constant(expression: Expression) -> Fraction | None:
    match expression:
        case Number(_, value):
            return value
        case Binary("-", Number(_, above), Number(_, below)):
            return above - below
        case _:
            return None


def _at(criterion: CriterionResult) -> str:
    """Return at which members a criterion fails: ` at seed 1`."""
    if not criterion.failing or not isinstance(criterion.value, Series):
        return ""
    return f" at {_members(criterion.value.unit, criterion.failing)}"


def _members(unit: str, members: Sequence[str]) -> str:
    if len(members) > MOST_MEMBERS:
        return f"{len(members)} {unit}s"
    names = [f"{unit} {name}" if unit in ("seed", "place") else name for name in members]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _tested(value: Value, criterion: CriterionResult) -> str:
    """Return the number tested; of a series its range, or the members that fail."""
    exactly = "counts" in criterion.basis
    if not isinstance(value, Series):
        return _side(value, exactly) + _against(criterion, exactly)
    numbers = {member: number for member, number in value.items if isinstance(number, Fraction)}
    if len(value.items) == 1:
        return ", ".join(
            f"{_members(value.unit, [name])} {_text(numbers[name], exactly)}" for name in numbers
        )
    within = _side(value, exactly) + _against(criterion, exactly)
    if criterion.truths is None:
        return within
    truths, failing = criterion.truths.values, criterion.failing
    held = f"holds at {sum(truth is True for truth in truths)} of {len(truths)} {value.unit}s"
    if not 0 < len(failing) <= MOST_MEMBERS or not set(failing) <= set(numbers):
        return f"{held}, {within}"
    told = (f"{_members(value.unit, [name])} ({_text(numbers[name], exactly)})" for name in failing)
    return f"fails at {' and '.join(told)}, {held}"


def _against(criterion: CriterionResult, exactly: bool) -> str:  # noqa: FBT001 - a number's kind
    return "" if criterion.against is None else f" against {_side(criterion.against, exactly)}"


def _side(value: Value, exactly: bool) -> str:  # noqa: FBT001 - a number's kind
    """Return one side of a comparison: a number, or the range of a series."""
    if not isinstance(value, Series):
        return _text(value, exactly)
    numbers = [number for number in value.values if isinstance(number, Fraction)]
    if not numbers:
        return "missing"
    least, most = min(numbers), max(numbers)
    return _text(least, exactly) + (f" to {_text(most, exactly)}" if least < most else "")


def _group(seed: int | None, members: Sequence[ArmCounts]) -> str:
    first = "" if seed is None else f"seed {seed}: "
    one = members[0]
    unit = one.among.replace("_", " ")
    over = f", {one.steps} steps unweighted" if one.steps > 1 else ""
    if len({each.of for each in members}) == 1:
        counts = ", ".join(f"{each.arm} {_count(each.count)}" for each in members)
        every = " each" if len(members) > 1 else ""
        return f"{first}{counts} of {_count(one.of)} {unit}{every}{over}"
    of = (f"{each.arm} {_count(each.count)} of {_count(each.of)} {unit}" for each in members)
    return f"{first}{', '.join(of)}{over}"


def _count(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _text(value: Value, exactly: bool) -> str:  # noqa: FBT001 - a number's kind
    """Return a number to four decimals, and exactly where it is a short fraction of counts."""
    if not isinstance(value, Fraction):
        return "missing"
    if value.denominator == 1:
        return str(value)
    whole = exact_text(value)
    shown = fixed(value)
    return f"{shown} = {whole}" if exactly and "/" in whole and len(whole) <= LONGEST else shown


def _plain(value: Fraction) -> str:
    return "zero" if value == 0 else f"{float(value):g}"
