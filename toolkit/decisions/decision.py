"""A decision: verdict, criteria, estimate, evidence, and the reasons in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from html import escape
from operator import attrgetter
from typing import Annotated, Any, Literal

from msgspec import field

from toolkit.decisions.evaluation import COMPARE
from toolkit.decisions.intervals import Evidence, Interval, PValue
from toolkit.decisions.measure import ArmCounts, Coverage
from toolkit.prereg.verification import UNVERIFIED, Standing
from toolkit.registers.columns import BOUNDS
from toolkit.registers.manifest import Origin
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number, parse
from toolkit.rules.rules import MARGINS, expanded
from toolkit.rules.values import Missing, Scalar, Series, Truth, Value, exact_text, fixed, printed
from toolkit.structs import HIDDEN, UNSET, Document, Shown, UnsetType, about, as_builtins, inlined

Kind = Literal["hypothesis", "prediction", "gate"]
Relation = Literal["replaces", "restates", "adds"]
Exactly = str | dict[str, str | None] | None
Members = dict[str, float | None]
Rounded = float | Members | None
"""A number rounded to five decimals; by member where it is a series; null where it is missing."""


def _exactly(value: Value | None) -> Exactly:
    exact: Exactly = printed(value)[0]
    return exact


def _rounded(value: Value | None) -> Rounded:
    decimal: Rounded = printed(value)[1]
    return decimal


def known(holds: Truth) -> bool | None:
    """Return whether something holds; None where that is not known."""
    return None if isinstance(holds, Missing) else holds


def _reasons(holds: Truth) -> tuple[str, ...] | UnsetType:
    return holds.reasons if isinstance(holds, Missing) else UNSET


def _failing(truths: Series[bool]) -> tuple[str, ...]:
    return tuple(member for member, holds in truths.items if holds is False)


class CriterionResult(Document, frozen=True, kw_only=True, omit_defaults=True):
    """One criterion of a rule."""

    id: Annotated[str, about("Its name in the rule.")]
    text: Annotated[str, about("As registered.")]
    test: Annotated[str, about("As written in the rules.")]
    reading: Annotated[
        str | None,
        Shown("reading", str, "The reading that the criterion belongs to, where there are several."),
    ] = None
    value: Annotated[
        Value | None,
        Shown(
            "value",
            Exactly,
            "The number tested, exactly; by member where it is a series; null where the test is about none.",
            _exactly,
        ),
        Shown("decimal", Rounded, "The same, rounded to five decimals.", _rounded),
    ]
    against: Annotated[
        Value | None,
        Shown("against", Rounded, "What the number is compared with, where that is measured, too.", _rounded),
    ] = None
    basis: Annotated[tuple[str, ...], about("What it rests on, as `counts` or `interval as published`.")]
    holds: Annotated[
        Truth,
        Shown("holds", bool | None, "Null: something is missing.", known),
        Shown("missing", list[str] | UnsetType, "What is missing, each in a phrase.", _reasons),
    ]
    cautions: Annotated[tuple[str, ...], about("Quotients whose denominator is not told from zero.")] = ()
    procedures: Annotated[
        tuple[str, ...], about("Which tests its comparisons with margins are, and at what level.")
    ] = ()
    truths: Annotated[
        Series[bool] | None,
        Shown(
            "failing",
            list[str],
            "Of a test of every member of a series, those for which it does not hold.",
            _failing,
        ),
    ] = None
    counts: Annotated[
        tuple[ArmCounts, ...], about("What the arms had; of the seeds that failed, where few did.")
    ] = ()
    rules: Annotated[dict[str, str], about("The verdicts of the rules that it names.")] = field(
        default_factory=dict
    )

    @property
    def known(self) -> bool | None:
        """Whether it holds; None where that is not known."""
        return known(self.holds)

    @property
    def failing(self) -> tuple[str, ...]:
        """The members of a series for which a test of every one does not hold."""
        return _failing(self.truths) if self.truths else ()

    @property
    def marked(self) -> str:
        """The criterion in a line of HTML, with a mark that says whether it holds."""
        mark = {True: "✓", False: "✗", None: "?"}[self.known]
        return f"{mark} {escape(self.text)} <code>{escape(self.test)}</code>"


def _by(unit: str, of: str) -> Shown:
    """Return how an estimate's members are printed where they are of a unit."""
    return Shown(
        f"by_{unit}",
        Members | UnsetType,
        f"Its value by {of}.",
        lambda members: _rounded(members) if members.unit == unit else UNSET,
    )


_MEMBERS = (
    *(_by(unit, unit) for unit in ("seed", "run", "step")),
    _by("checkpoint", "checkpoint of the probe"),
    _by("place", "place in a list"),
)


class Estimate(Document, frozen=True, omit_defaults=True):
    """The value of an endpoint or a statistic, in the unit that the rules give it."""

    endpoint: Annotated[str, about("The endpoint, or the statistic.")]
    title: Annotated[str, HIDDEN]
    unit: Annotated[str, HIDDEN]
    mean: Annotated[
        Scalar, Shown("mean", float | None, "Its mean; null where a member is missing.", _rounded)
    ]
    members: Annotated[Series[Fraction] | None, *_MEMBERS] = None
    coverage: Annotated[
        tuple[Coverage, ...], about("By arm, where the rules say what becomes of missing episodes.")
    ] = ()

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


class AmendmentRef(Document, frozen=True):
    """An amendment, and what it did to a rule."""

    id: Annotated[str, about("Of the amendment.")]
    relation: Annotated[
        Relation, about("`restates`: the rule is unchanged, and reads what the amendment changed.")
    ]
    sha256: Annotated[str, about("Of its file.")]


class Exploratory(Document, frozen=True):
    """What a rule would say as an amendment has it that was made after the runs, and binds nothing."""

    amendment: Annotated[str, about("Id of the amendment.")]
    sha256: Annotated[str, about("Of its file.")]
    verdict: Annotated[str, about("As a decision's.")]
    evidence: Annotated[Evidence, about("What the interval would show.")]


class Bounds(Document, frozen=True):
    """What the episodes without an outcome could turn."""

    counts_as: Annotated[str, about("What they count as, as registered.")]
    all_fail: Annotated[str, about("The verdict with all of them failures.")]
    all_succeed: Annotated[str, about("The verdict with all of them successes.")]
    one_arm: Annotated[
        dict[str, str],
        about("By arm, of several: the verdict with those of this arm alone successes."),
    ]

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


class RegisterRef(Document, frozen=True):
    """A table that was read, with the hashes that were computed when it was."""

    config: Annotated[str, about("The table.")]
    sha256: Annotated[str | None, about("Its logical row hash; null where only some of its files were read.")]
    files: Annotated[dict[str, str], about("SHA-256 of each file that was read, by its path.")]


class RegistrationRef(Document, frozen=True):
    """A registration, and what its verdicts stand on."""

    name: Annotated[str, about("Of the registration.")]
    sha256: Annotated[str, about("Digest of the list of frozen files.")]
    standing: Annotated[Standing, *inlined(Standing)] = UNVERIFIED


class Decision(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict on one rule in one study, with every number that it rests on."""

    rule: Annotated[str, about("Name of the rule.")]
    kind: Annotated[Kind, about("Of the rule.")]
    title: Annotated[str, about("Of the rule.")]
    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[
        str,
        about(
            "Of a hypothesis pass, miss; of a prediction met, partially_met, missed, superseded; of both "
            "not_evaluable, not_run; of a gate one of its outcomes."
        ),
    ]
    evidence: Annotated[Evidence, about("What the interval shows beside the verdict.")]
    criteria: Annotated[tuple[CriterionResult, ...], about("Every criterion of every reading.")]
    estimate: Annotated[Estimate | None, about("Null where the rule names none.")]
    interval: Annotated[Interval | None, about("Null where the rule has none, or something is missing.")]
    tests: Annotated[tuple[PValue, ...], about("The tests of significance that its tests name.")] = ()
    readings: Annotated[dict[str, str], about("Verdict by reading, where there are several.")] = field(
        default_factory=dict
    )
    binding: Annotated[str, Shown("binding_reading", str, "The reading that decides.")] = ""
    readings_agree: Annotated[
        bool | None, Shown("readings_agree", bool, "Whether every reading gives the same verdict.")
    ] = None
    original_verdict: Annotated[str | None, Shown("original_verdict", str, "Of a superseded prediction.")] = (
        None
    )
    superseded: Annotated[str, about("Why it is superseded.")] = ""
    missing: Annotated[tuple[str, ...], about("What is missing, each reason once.")] = ()
    bounds: Annotated[
        Bounds | None, Shown("missing_data", Bounds, "What the episodes without an outcome could turn.")
    ] = None
    pilot_rows: Annotated[
        str,
        Shown("contains_pilot_rows", str, "Why rows of a pilot are among those that it was decided on."),
    ] = ""
    close_calls: Annotated[
        tuple[str, ...], about("What other random numbers in the bootstrap could turn.")
    ] = ()
    registration: RegistrationRef
    exploratory: Annotated[
        tuple[Exploratory, ...], about("What the rule would say as changed after the runs.")
    ] = ()
    is_exploratory: Annotated[
        bool, about("The rule was added after the runs: its verdict binds nothing. Absent otherwise.")
    ] = False
    amendment: Annotated[
        AmendmentRef | None,
        Shown("amended_by", str, "The last amendment that names the rule.", attrgetter("id")),
        Shown("amendment", AmendmentRef, "What it did to the rule."),
    ] = None
    added_by: Annotated[
        AmendmentRef | None, Shown("added_by", AmendmentRef, "Absent where the rule was frozen.")
    ] = None
    rests_on: Annotated[
        tuple[AmendmentRef, ...],
        Shown("rests_on_amendments", list[AmendmentRef], "Amendments of the rules that it rests on."),
    ] = ()
    secondary: Annotated[
        tuple[Estimate, ...], about("Endpoints shown beside the rule; they decide nothing.")
    ] = ()
    origin: Annotated[Origin | None, about("Null for a local study.")]
    registers: Annotated[tuple[RegisterRef, ...], about("Every table that was read.")]
    words: Annotated[str, HIDDEN]  # of the rule, as registered
    holds: Annotated[Truth, HIDDEN]  # whether everything that the binding reading asks for holds
    threshold: Annotated[Fraction | None, HIDDEN]  # beside zero, what the interval is compared with
    endpoints_read: Annotated[tuple[str, ...], HIDDEN]  # by its tests and its estimate
    statistics_read: Annotated[tuple[str, ...], HIDDEN]  # and those that these are made of

    @property
    def standing(self) -> Standing:
        """What the registration stands on."""
        return self.registration.standing

    @property
    def missed(self) -> bool:
        """Whether `--fail-on-miss` counts the verdict as a miss."""
        counts = self.kind != "gate" and not self.superseded and not self.is_exploratory
        return self.holds is False and counts

    @property
    def binding_criteria(self) -> tuple[CriterionResult, ...]:
        """The criteria of the reading that binds."""
        return of_reading(self.criteria, self.binding)

    def __repr__(self) -> str:
        shown = f"<Decision {self.rule!r} in {self.study!r}: {self.verdict!r}"
        return f"{shown}, {self.evidence.replace('_', ' ')}, standing {self.standing.name}>"

    def _repr_html_(self) -> str:
        """Return the decision as a notebook shows it."""
        lines = [
            f"Evidence: {self.evidence.replace('_', ' ')}.",
            *([f"Estimate: {self.estimate.in_words}."] if self.estimate else []),
            *([f"{self.interval.text}, {self.interval.origin}."] if self.interval else []),
            *([f"Missing: {'; '.join(self.missing)}."] if self.missing else []),
            f"Registration {self.registration.name}: {self.standing}.",
        ]
        head = f"<b>{escape(self.rule)}</b> {escape(self.title)}, study {escape(self.study)}: "
        criteria = "".join(f"<li>{criterion.marked}</li>" for criterion in self.criteria)
        return (
            f"<p>{head}<b>{escape(self.verdict.replace('_', ' '))}</b></p><ul>{criteria}</ul>"
            f"<p>{'<br>'.join(map(escape, lines))}</p>"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as it is printed with `--json`."""
        printed: dict[str, Any] = as_builtins(self)
        return printed


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
    if interval is None:
        return ""
    held = _bounds(decision, interval)
    if held:
        inside = all(COMPARE[operator](end, bound) for end, operator, bound in held)
        return f"{'' if inside else 'not '}{_region(held)}"
    # Of a statistic that is a ratio, 1 says that there is no difference.
    estimate = decision.estimate
    is_ratio = estimate and estimate.unit == RATIO and estimate.endpoint in decision.statistics_read
    none = Fraction(1 if is_ratio else 0)
    includes = [_plain(none)] if interval.low <= none <= interval.high else []
    threshold = decision.threshold
    if threshold and interval.low <= threshold <= interval.high:
        includes.append(f"the threshold {_plain(threshold)}")
    return f"includes {' and '.join(includes)}" if includes else f"excludes {_plain(none)}"


def interval_bounds(decision: Decision) -> tuple[Fraction, ...]:
    """Return the numbers that tests hold an interval against, upwards; none where no region says it."""
    interval = decision.interval
    held = _bounds(decision, interval) if interval else []
    return tuple(sorted(bound for _, _, bound in held))


def estimate_lines(decision: Decision, *, seeds: bool) -> Iterator[str]:
    """Yield a decision's estimate, of all seeds or over their range, and what its interval says."""
    estimate, interval = decision.estimate, decision.interval
    if estimate and estimate.mean_text:
        over = f" ({estimate.members.unit}s {range_text(decision)})" if estimate.members else ""
        yield estimate.in_words if seeds else f"{estimate.title}: {estimate.mean_text}{over}"
    if estimate and estimate.coverage:
        yield f"episodes: {'; '.join(each.in_words for each in estimate.coverage)}"
    if interval:
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
