"""From decisions and register rows to charts and tables: only the values that are shown are handed on."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision, interval_bounds, interval_says
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import COMPARE
from toolkit.decisions.intervals import Interval
from toolkit.decisions.measure import in_words
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import Rule
from toolkit.rules.terms import Picture
from toolkit.rules.values import Missing, Series
from toolkit.site.charts.curves import learning_curves
from toolkit.site.charts.estimates import (
    EACH,
    LAST,
    REST,
    Comparison,
    Estimate,
    Measured,
    cells,
    forest,
    members,
    predicted_and_seen,
    seed_differences,
)
from toolkit.site.charts.plots import Bar, Dot, signed
from toolkit.site.charts.svg import Chart
from toolkit.site.environment import words
from toolkit.site.page import Link, rule_page
from toolkit.structs import replace


class Decided(Protocol):
    """A study and what decides it: a case, or a rehearsal."""

    @property
    def study(self) -> Study:
        """The study."""

    @property
    def book(self) -> RuleBook:
        """Its rules."""

    @property
    def engine(self) -> Engine:
        """What measures and decides."""


MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "="}
READ_INTO = ("all", "any", "each", "majority", "count")
TASKS = "tasks resampled"
MOST_ENDPOINTS = 8
"""Endpoints of a rule beyond which its page has neither their curves nor their rows."""
# Ends of an interval are drawn with what it belongs to.
ENDS = ("interval_low", "interval_high")
# Ratio of an endpoint on the probe → the figure of `probe_intervals` that it is.
FIGURE_OF = {
    ("condition_left", "condition_right"): "condition_ratio",
    ("trace_paired", "trace_independent"): "trace_ratio",
    ("trace_paired", "trace_stratified"): "trace_ratio_stratified",
}


def rule_charts(case: Decided, decision: Decision, figures: Iterable[Row]) -> list[Chart]:
    """Return the charts of a rule: its estimate, the curves and the series behind it."""
    drawn = [seed_differences(estimate_of(case, decision))]
    names, shown = decision.endpoints_read, set()
    if len(names) > MOST_ENDPOINTS:
        names, drawn = (), [*drawn, *pictures(case, decision.statistics_read).values()]
    for endpoint in (case.book.endpoints[name] for name in names):
        if endpoint.over_steps:
            points = case.engine.curve(endpoint.id)
            if points not in shown:  # two endpoints can summarize one curve
                drawn.append(learning_curves(points, _what(endpoint), measure(endpoint)))
            shown.add(points)
        elif endpoint.by in ("checkpoint", "run") and endpoint.outcome.columns[0] not in ENDS:
            value = case.engine.value(endpoint.id)
            if isinstance(value, Series) and len(set(value.values)) > 1:
                dots, interval = _dots(case, endpoint, value, figures)
                compared = comparisons(case.book.rules[decision.rule], endpoint.id, value)
                measured = Measured(endpoint.title, endpoint.by, endpoint.unit, measure(endpoint))
                drawn.append(members(measured, dots, interval, compared))
    return [chart for chart in drawn if chart is not None]


def estimate_of(case: Decided, decision: Decision) -> Estimate:
    """Return what a rule estimates, as it is drawn."""
    shown = Estimate(
        *(decision.rule, decision.title, decision.verdict),
        bar=_bar(decision.interval),
        threshold=decision.threshold,
        bounds=interval_bounds(decision),
        says=interval_says(decision),
    )
    estimate = decision.estimate
    if estimate is None:
        return shown
    items = estimate.members.items if estimate.members else ()
    present = tuple((name, value) for name, value in items if not isinstance(value, Missing))
    endpoint = case.book.endpoints.get(estimate.endpoint)
    return replace(
        shown,
        what=estimate.title,
        unit=estimate.unit,
        mean=None if isinstance(estimate.mean, Missing) else estimate.mean,
        arms=endpoint.arms if endpoint else (),
        member=estimate.members.unit if estimate.members else "",
        members=present,
        absent=len(items) - len(present),
    )


def estimates(case: Case) -> Chart | None:
    """Return what a study's hypotheses estimate; predictions restate the same estimates."""
    hypotheses = (decision for decision in case.decide_all() if decision.kind == "hypothesis")
    return forest([estimate_of(case, decision) for decision in hypotheses], case.study.name)


def pictures(case: Decided, statistics: Sequence[str] | None = None) -> dict[str, Chart]:
    """Return a study's registered pictures by name; one of which nothing was seen yet is left out."""
    drawn = {
        name: _predicted(case, picture)
        for name, picture in case.book.pictures.items()
        if statistics is None
        or any(point.statistic in statistics for point in picture.points)
        or any(predictor.statistic in statistics for predictor in picture.across)
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


def _predicted(case: Decided, picture: Picture) -> Chart | None:
    return predicted_and_seen(
        picture,
        {point.statistic: case.engine.value(point.statistic) for point in picture.points},
        {p.interval: _bar(case.engine.interval(p.interval)) for p in picture.points if p.interval},
        [_how_well(case, predictor.statistic) for predictor in picture.across],
        case.study.name,
    )


def _how_well(case: Decided, statistic: str) -> str:
    """Return a statistic in words: what it is, and its value; nothing where it has none."""
    value = case.engine.value(statistic) if statistic else None
    if not isinstance(value, Fraction):
        return ""
    return f"{case.book.statistics[statistic].title}: {signed(value, 2)}"


def measure(endpoint: Endpoint) -> str:
    """Return what an endpoint counts, in the words of its register."""
    return words(" / ".join(endpoint.outcome.columns))


def _bar(interval: Interval | Missing | None) -> Bar | None:
    if not isinstance(interval, Interval):
        return None
    return Bar(interval.level, interval.low, interval.high, f"{interval.origin} ({interval.method})")


def _what(endpoint: Endpoint) -> str:
    where = endpoint.where
    parts = (endpoint.condition, where.get("pool", ""), where.get("regime", ""))
    return ", ".join([*(words(part) for part in parts if part), *in_words(endpoint)])


def _dots(
    case: Decided, endpoint: Endpoint, series: Series[Any], figures: Iterable[Row]
) -> tuple[tuple[Dot, ...], str]:
    """Return the members of a series, and what is to be said of their intervals."""
    ends, said = _ends(case, endpoint, figures)
    dots = tuple(
        Dot((name,), float(value), *ends.get(name, (None, None)))
        for name, value in series.items
        if not isinstance(value, Missing)
    )
    lacking = len(series.items) - len(dots)
    without = "" if not lacking else f"; {lacking} of {len(series.items)} have no value and are left out"
    return dots, said + without


def _ends(
    case: Decided, endpoint: Endpoint, figures: Iterable[Row]
) -> tuple[dict[str, tuple[float, float]], str]:
    """Return the interval of every member that has one, and where they come from."""
    outcome = endpoint.outcome
    if outcome.is_rate:
        return {}, "counts, which have no interval registered"
    if endpoint.register == "luck_share_summary" and outcome.figure == "luck_share":
        held = {
            row["run_id"]: (float(row["interval_low"]), float(row["interval_high"]))
            for row in case.study.rows(endpoint.register)
            if row["step"] in endpoint.steps
            and _matches(row, endpoint.where)
            and None not in (row["interval_low"], row["interval_high"])
        }
        origin = "as published" if case.study.is_summary else "computed from the 8 x 8 tables"
        return held, f"bars: 95% intervals {origin}, {TASKS}"
    if endpoint.register != "probe":
        return {}, "the register holds no interval of this figure"
    name = FIGURE_OF.get((outcome.figure, outcome.over))
    rows = [row for row in figures if row["figure"] == name and _matches(row, endpoint.where)]
    by_checkpoint = {
        f"{row['trajectory']}@{row['step']}": (row["low"], row["high"])
        for row in rows
        if row["low"] is not None and row["high"] is not None
    }
    return by_checkpoint, probe_words(case, rows)


def _matches(row: Mapping[str, Any], where: Mapping[str, str]) -> bool:
    return all(row[name] == value for name, value in where.items() if name in row)


def probe_words(case: Decided, rows: Sequence[Row]) -> str:
    """Return what is to be said of the intervals of probe figures."""
    levels = [row["level"] for row in rows if row["low"] is not None]
    if levels:
        origin = (
            "computed here from figures of single tasks, which were published"
            if case.study.is_summary
            else "computed from the probe's evidence"
        )
        return f"bars: {100 * levels[0]:g}% intervals {origin}, {TASKS}"
    if case.study.is_summary:
        return "no intervals: what they need, products of different tasks' gradients, was never published"
    if any(row["value"] is not None for row in rows):
        return "no intervals: some resample of these tasks does not define the figure"
    return "no intervals: the study holds none for these figures"


def comparisons(rule: Rule, endpoint: str, series: Series[Fraction]) -> tuple[Comparison, ...]:
    """Return what a rule's criteria compare a series' members with; read from its tests, which decide."""
    present = [(name, value) for name, value in series.items if not isinstance(value, Missing)]
    if not present or len(present) < len(series.items):
        return ()
    (base, first), of = present[0], Name(endpoint)
    scopes = {
        of: (EACH, present),
        Call("rest", (of,)): (REST, present[1:]),
        Call("last", (of,)): (LAST, present[-1:]),
    }
    compared = []
    for left, sign, right in (sides for part in _parts(rule) for sides in _sides(part)):
        is_base = right == Call("first", (of,))
        bound = first if is_base else _number(right)
        if left in scopes and bound is not None:
            scope, held = scopes[left]
            true = sum(COMPARE[sign](value, bound) for _, value in held)
            compared.append(Comparison(scope, sign, float(bound), base if is_base else None, true, len(held)))
    return tuple(dict.fromkeys(compared))


def _parts(rule: Rule) -> Iterator[Expression]:
    waiting: list[Expression] = [criterion.expression for criterion in rule.criteria]
    while waiting:
        part = waiting.pop(0)
        yield part
        if isinstance(part, Call) and part.operator in READ_INTO:
            waiting.extend(part.arguments)
        elif isinstance(part, Binary):
            waiting.extend((part.left, part.right))


def _number(part: Expression) -> Fraction | None:
    """Return a number; a minus sign belongs to it."""
    match part:
        case Number(_, value):
            return value
        case Binary("-", Number("0", _), Number(_, value)):
            return -value
    return None


def _sides(part: Expression) -> Sequence[tuple[Expression, str, Expression]]:
    """Return both ways of reading a comparison; nothing of anything else."""
    if not isinstance(part, Binary) or part.operator not in MIRRORED:
        return ()
    return (part.left, part.operator, part.right), (part.right, MIRRORED[part.operator], part.left)


KINDS = {"hypothesis": "Hypotheses", "gate": "Gates", "prediction": "Predictions"}


def outcome_tables(case: Case) -> list[dict[str, Any]]:
    """Return a study's outcomes as tables, one a kind of rule, each with its forest plot."""
    by_kind: dict[str, list[Decision]] = {}
    for decision in case.decide_all():
        by_kind.setdefault(decision.kind, []).append(decision)
    return [
        {
            "study": case.study.name,
            "title": KINDS.get(kind, kind),
            "decisions": decisions,
            "cells": cells([estimate_of(case, decision) for decision in decisions]),
        }
        for kind, decisions in by_kind.items()
    ]


def standing_view(case: Case) -> dict[str, str]:
    """Return what a study's verdicts stand on."""
    return {"registration": case.registration.name, "name": case.standing.name, "text": str(case.standing)}


def rules_reading(case: Case, registers: Collection[str]) -> list[Decision]:
    """Return the rules that read one of some registers, as decided."""
    return [
        d
        for d in case.decide_all()
        if any(case.book.endpoints[name].register in registers for name in d.endpoints_read)
    ]


def head(cases: Iterable[Case], case: Case, what: str, page: Callable[[str], str]) -> dict[str, Any]:
    """Return what the head of a study's page shows: what it is of, and the same page of other studies."""
    others = [Link(_named(o), page(o.study.name)) for o in cases if o.study.name != case.study.name]
    return {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "stands_on": standing_view(case),
        "same_elsewhere": {"what": what, "here": _named(case), "elsewhere": others},
    }


def rule_head(cases: Iterable[Case], case: Case, rule: str) -> dict[str, Any]:
    """Return the head of a rule's page: others are of rules of the same name and title."""
    title = case.book.rule(rule).title
    same = [o for o in cases if rule in o.book.rules and o.book.rules[rule].title == title]
    return head(same, case, f"rule {rule}", lambda study: rule_page(study, rule))


def _named(case: Case) -> str:
    return f"study {case.study.name}{' (published figures)' if case.study.is_summary else ''}"
