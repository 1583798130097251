"""Judging a rule's criteria on what was measured: what holds, on what grounds, and what could turn it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from toolkit.decisions.decision import CriterionResult, Decision, of_reading
from toolkit.decisions.endpoints import Rate
from toolkit.decisions.evaluation import compared_with, evaluate, subject
from toolkit.decisions.expressions import Binary, Call, Expression, names_in
from toolkit.decisions.interval import Interval, evidence_of
from toolkit.decisions.pvalues import PValue
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.rules import Criterion, Rule
from toolkit.decisions.values import Missing, Scalar, Series, Value, kleene_all, together
from toolkit.estimators.bootstrap import CLOSE_ERRORS


@dataclass(frozen=True)
class Measured:
    """What the tests of a rule read, by name.

    Args:
        values: of endpoints and statistics.
        intervals: registered intervals.
        tests: registered tests of significance.
        decisions: on the rules that it rests on.
        is_summary: whether figures stand as published.
    """

    values: Mapping[str, Scalar | Series[Fraction]]
    intervals: Mapping[str, Interval | Missing]
    tests: Mapping[str, PValue]
    decisions: Mapping[str, Decision]
    is_summary: bool = False

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
        criterion.id,
        criterion.text,
        criterion.test,
        criterion.reading,
        value,
        holds,
        basis,
        against,
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
            if isinstance(endpoint.outcome, Rate):
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
