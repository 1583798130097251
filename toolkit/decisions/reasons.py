"""Why a decision came out as it did, in words: what decided, each criterion, and what the interval says."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from toolkit.decisions.counts import ArmCounts
from toolkit.decisions.decision import CriterionResult, Decision
from toolkit.decisions.equivalence import MARGINS, expanded
from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number
from toolkit.decisions.grammar import parse
from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Missing, Series, Value, exact_text

# A fraction longer than this says nothing to a reader.
LONGEST = 10
MOST_MEMBERS = 5
_FLIPPED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_PLURAL = {"place": "places", "run": "runs", "seed": "seeds", "checkpoint": "checkpoints"}


def what_decided(decision: Decision) -> str:
    """Return which criteria a verdict rests on, and the members of a series that failed one."""
    binding = [c for c in decision.criteria if c.reading in (None, decision.binding or None)]
    failed = [c for c in binding if c.holds is False]
    unknown = [c for c in binding if isinstance(c.holds, Missing)]
    if failed:
        names = ", ".join(f"{c.id}{_at(c)}" for c in failed)
        if len(binding) == 1:
            return f"the criterion fails: {names}"
        return f"{len(failed)} of {len(binding)} criteria {'fails' if len(failed) == 1 else 'fail'}: {names}"
    if unknown:
        return f"{len(unknown)} of {len(binding)} criteria cannot be evaluated"
    return "the criterion holds" if len(binding) == 1 else f"all {len(binding)} criteria hold"


def criterion_says(criterion: CriterionResult) -> str:
    """Return a criterion's test, and the number that it tests."""
    rules = ", ".join(f"{rule} {verdict}" for rule, verdict in criterion.rules.items())
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
    whether it includes zero, or the threshold.
    """
    interval = decision.interval
    if not isinstance(interval, Interval):
        return ""
    low, high = _bounds(decision, interval.id)
    if low is not None and high is not None:
        inside = low <= interval.low and interval.high <= high
        region = f"±{_plain(high)}" if low == -high else f"{_plain(low)} to {_plain(high)}"
        return f"{'inside' if inside else 'not inside'} {region}"
    if low is not None:
        return f"{'above' if low < interval.low else 'not above'} {_plain(low)}"
    if high is not None:
        return f"{'below' if interval.high < high else 'not below'} {_plain(high)}"
    held = [0] if interval.low <= 0 <= interval.high else []
    threshold = decision.threshold
    if threshold and interval.low <= threshold <= interval.high:
        return "includes " + " and ".join(["zero"] * len(held) + [f"the threshold {_plain(threshold)}"])
    return "includes zero" if held else "excludes zero"


def estimate_lines(decision: Decision, *, seeds: bool) -> Iterator[str]:
    """Yield a decision's estimate, of all seeds or over their range, and what its interval says."""
    if mean_text(decision) and decision.estimate:
        unit = decision.estimate.members.unit if decision.estimate.members else ""
        members = seeds_text(decision) if seeds else range_text(decision)
        over = f" ({_PLURAL.get(unit, unit)} {members})" if members else ""
        yield f"{decision.estimate.title}: {mean_text(decision)}{over}"
    if isinstance(decision.interval, Interval):
        origin = decision.interval.origin
        made = "as published, without episode rows" if origin == "published" else origin
        yield f"{interval_text(decision)}, {made}: {interval_says(decision)}"


def missing_says(decision: Decision) -> str:
    """Return what a decision lacks: the first of it, and how much more; empty where nothing is missing."""
    if not decision.missing:
        return ""
    first, *more = decision.missing
    return f"missing: {first}" + (f", and {len(more)} more like it (--json lists them)" if more else "")


def mean_text(decision: Decision) -> str:
    """Return an estimate's mean, or a statistic; empty where there is none."""
    estimate = decision.estimate
    if estimate is None or isinstance(estimate.mean, Missing):
        return ""
    return f"{float(estimate.mean):{'.4f' if estimate.members is None else '+.4f'}}"


def range_text(decision: Decision) -> str:
    """Return the range of an estimate's members, as `-0.0016 to +0.0586`."""
    numbers = [number for _, number in _numbers(decision)]
    return f"{min(numbers):+.4f} to {max(numbers):+.4f}" if numbers else ""


def seeds_text(decision: Decision) -> str:
    """Return an estimate's members, as `0:+0.0539, 1:-0.0016, 2:+0.0586`."""
    return ", ".join(f"{name}:{number:+.4f}" for name, number in _numbers(decision))


def interval_text(decision: Decision) -> str:
    """Return an interval as `95% [-0.0039, +0.0779]`; empty where there is none."""
    interval = decision.interval
    if not isinstance(interval, Interval):
        return ""
    return f"{float(100 * interval.level):g}% [{float(interval.low):+.4f}, {float(interval.high):+.4f}]"


def _numbers(decision: Decision) -> list[tuple[str, float]]:
    """Return the members of an estimate, where all of them are there."""
    estimate = decision.estimate
    if estimate is None or estimate.members is None or isinstance(estimate.mean, Missing):
        return []
    return [(name, float(number)) for name, number in estimate.members.items if isinstance(number, Fraction)]


def _bounds(decision: Decision, interval: str) -> tuple[Fraction | None, Fraction | None]:
    """Return the numbers that the ends of an interval are held against."""
    low, high = None, None
    for criterion in decision.criteria:
        for end, operator, bound in _held(parse(criterion.test, decision.rule), interval):
            if end == "lower" and operator in (">=", ">"):
                low = bound
            if end == "upper" and operator in ("<=", "<"):
                high = bound
    return low, high


def _held(expression: Expression, interval: str) -> Iterator[tuple[str, str, Fraction]]:
    """Yield every comparison of an end of an interval with a number: (end, operator, number)."""
    match expression:
        case Call(operator, _) if operator in MARGINS:
            yield from _held(expanded(expression), interval)
        case Call(_, arguments):
            for argument in arguments:
                yield from _held(argument, interval)
        case Binary(operator, Call(("lower" | "upper") as end, (Name(name),)), other) if name == interval:
            if (bound := _constant(other)) is not None:
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
        return f"{len(members)} {_PLURAL.get(unit, unit)}"
    names = [f"{unit} {name}" if unit in ("seed", "place") else name for name in members]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _tested(value: Value, criterion: CriterionResult) -> str:
    """Return the number tested; of a series its range, or the members that fail."""
    exactly = "counts" in criterion.basis
    if not isinstance(value, Series):
        against = "" if criterion.against is None else f" against {_text(criterion.against, exactly)}"
        return _text(value, exactly) + against
    numbers = {member: number for member, number in value.items if isinstance(number, Fraction)}
    if len(numbers) == 1:
        return ", ".join(
            f"{_members(value.unit, [name])} {_text(numbers[name], exactly)}" for name in numbers
        )
    least, most = min(numbers.values()), max(numbers.values())
    within = _text(least, exactly) + (f" to {_text(most, exactly)}" if least < most else "")
    failing = criterion.failing
    if failing is None:
        return within
    held = f"holds at {len(numbers) - len(failing)} of {len(numbers)} {_PLURAL.get(value.unit, value.unit)}"
    if not 0 < len(failing) <= MOST_MEMBERS:
        return f"{held}, {within}"
    told = (f"{_members(value.unit, [name])} ({_text(numbers[name], exactly)})" for name in failing)
    return f"fails at {' and '.join(told)}, {held}"


def _group(seed: int | None, members: Sequence[ArmCounts]) -> str:
    first = "" if seed is None else f"seed {seed}: "
    unit = members[0].among.replace("_", " ")
    if len({one.of for one in members}) == 1:
        counts = ", ".join(f"{one.arm} {_count(one.count)}" for one in members)
        return f"{first}{counts} of {_count(members[0].of)} {unit}"
    return first + ", ".join(f"{one.arm} {_count(one.count)} of {_count(one.of)} {unit}" for one in members)


def _count(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _text(value: Value, exactly: bool) -> str:  # noqa: FBT001 - a number's kind
    """Return a number to four decimals, and exactly where it is a short fraction of counts."""
    if not isinstance(value, Fraction):
        return "missing"
    if value.denominator == 1:
        return str(value)
    whole = exact_text(value)
    shown = f"{float(value):.4f}"
    return f"{shown} = {whole}" if exactly and "/" in whole and len(whole) <= LONGEST else shown


def _plain(value: Fraction) -> str:
    return "zero" if value == 0 else f"{float(value):g}"
