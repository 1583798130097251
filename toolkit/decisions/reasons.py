"""Why a decision came out as it did, in words: what decided, each criterion, and what the interval says."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from toolkit.decisions.counts import ArmCounts
from toolkit.decisions.decision import CriterionResult, Decision
from toolkit.decisions.equivalence import MARGINS, expanded
from toolkit.decisions.evaluation import COMPARE
from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number
from toolkit.decisions.grammar import parse
from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Missing, Series, Value, exact_text, fixed

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
