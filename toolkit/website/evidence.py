"""What a rule page says for a script to hold against the registers: what was recorded, and no rows.

Nothing is computed: it is what the decision holds, in a form that a script can read without rounding. Exact
numbers are text, as `71/1920` or `-0.03`. The script reads the rows and the rules where they lie.
"""

from dataclasses import dataclass
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import Endpoint
from toolkit.decisions.interval import Interval
from toolkit.decisions.seedwise import SOURCE as OF_SEEDS
from toolkit.decisions.taskwise import SOURCE as OF_TASKS
from toolkit.decisions.values import Missing, Series, Value

COMPUTED = "computed"


@dataclass(frozen=True)
class Evidence:
    """What was recorded of a rule and of those that it names, and why intervals are not resampled."""

    document: dict[str, Any]
    fixed: tuple[str, ...]


def evidence_of(case: Case, decision: Decision) -> Evidence:
    """Return what a rule page says to its script.

    Args:
        case: the study and its registration.
        decision: the decision of the rule.
    """
    rule = case.book.rule(decision.rule)
    named = case.book.names_of(rule)
    rules = [name for name in case.book.rules if name in named | {rule.id}]
    shown = named | {case.book.rule(name).interval for name in rules}
    intervals = {name: case.engine.interval(name) for name in case.book.intervals if name in shown}
    fixed = {name: _fixed(case, name, interval) for name, interval in intervals.items()}
    tests = {name: case.engine.test(name) for name in case.book.tests if name in named}
    document = {
        "study": case.study.name,
        "rule": rule.id,
        "registration": dict(zip(("name", "sha256"), decision.registration, strict=True)),
        "rows_sha256": case.study.manifest.logical_sha256,
        "intervals": {name: _ends(interval) for name, interval in intervals.items()},
        "resampled": [name for name, why in fixed.items() if not why],
        "tests": {
            name: {"made": one.test.made, "p": _value(one.p), "adjusted": _value(one.adjusted)}
            for name, one in tests.items()
        },
        "recorded": {name: _recorded(case.decide(name)) for name in rules},
    }
    said = [why for why in fixed.values() if why]
    said += [
        f"The p-value of the test {name} is taken as recorded: this page does not make it again."
        for name in tests
    ]
    return Evidence(document, tuple(said))


def _is_counted_here(case: Case, endpoint: Endpoint) -> bool:
    """Whether a page can count an endpoint's episodes: whole numbers, of every task that is registered."""
    table = case.study.table(endpoint.register)
    columns = [table.column(name) for name in endpoint.outcome.columns]
    is_whole = all(column is not None and column.type.most is not None for column in columns)
    return is_whole and not any(row.get("excluded") for row in case.study.rows(endpoint.register))


def _fixed(case: Case, name: str, interval: Interval | Missing) -> str:
    """Return why an interval is not resampled here, or nothing."""
    if isinstance(interval, Missing):
        return f"There is no interval {name}: {'; '.join(interval.reasons)}."
    stands = f"The interval {name} stands as"
    if interval.source == OF_SEEDS:
        return f"{stands} computed: it is made of seeds, which this page does not draw."
    if interval.source == OF_TASKS:
        return f"{stands} computed: this page does not make it. It is {interval.method}."
    if interval.source != COMPUTED:
        return f"{stands} {interval.source}: the episodes behind it were not published."
    if not _is_counted_here(case, case.book.endpoints[interval.endpoint]):
        return f"{stands} computed: this page resamples whole counts of all tasks alone."
    return ""


def _ends(interval: Interval | Missing) -> Any:
    if isinstance(interval, Missing):
        return _value(interval)
    low_error, high_error = interval.errors or (None, None)
    return {
        "low": _value(interval.low),
        "high": _value(interval.high),
        "low_error": _value(low_error),
        "high_error": _value(high_error),
        "source": interval.source,
        "origin": interval.origin,
    }


def _recorded(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "original_verdict": decision.original_verdict,
        "evidence": decision.evidence,
        "readings": decision.readings,
        "criteria": [
            {"id": c.id, "value": _value(c.value), "holds": _value(c.holds)} for c in decision.criteria
        ],
        "estimate": _value(decision.estimate.mean) if decision.estimate else None,
        "close_calls": list(decision.close_calls),
    }


def _value(value: Value | None) -> Any:
    """Return a value without rounding: text, true or false, what is missing, or members in order."""
    if isinstance(value, Series):
        return {"unit": value.unit, "members": [[key, _value(member)] for key, member in value.items]}
    if isinstance(value, Missing):
        return {"missing": list(value.reasons), "not_run": value.not_run}
    return value if value is None or isinstance(value, bool) else str(value)
