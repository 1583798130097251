"""What a rule page carries for a reader to decide again: the rule as data, its rows, and what was recorded.

Nothing is computed: it is what the rule book, the registers and the decision hold, in a form that a script
can read without rounding. Exact numbers are text, as `71/1920` or `-0.03`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.expressions import names_in
from toolkit.decisions.interval import Interval
from toolkit.decisions.measure import members
from toolkit.decisions.rules import Rule
from toolkit.decisions.seedwise import SOURCE as OF_SEEDS
from toolkit.decisions.subgroup import are_read, in_words
from toolkit.decisions.taskwise import SOURCE as OF_TASKS
from toolkit.decisions.values import Missing, Series, Value
from toolkit.website.evidence_tables import Download, episodes_counted, parquet, rows_counted, rows_read

COMPUTED = "computed"
ROWS = "rows"
EPISODES = "episodes"


@dataclass(frozen=True)
class Evidence:
    """What a rule page carries.

    Args:
        document: rules, endpoints, intervals, and what was recorded, for the script.
        downloads: the rows, as Parquet.
        fixed: why intervals stand as they are and are not resampled, each in one sentence.
    """

    document: dict[str, Any]
    downloads: tuple[Download, ...]
    fixed: tuple[str, ...]

    @property
    def resampled(self) -> bool:
        """Whether an interval can be resampled from the page."""
        return any(file.table == EPISODES for file in self.downloads)


def evidence_of(case: Case, decision: Decision) -> Evidence:
    """Return what a rule page carries.

    1. The rule, and the rules that it names.
    2. Their endpoints, with the run that stands at each place, or why none does.
    3. Their intervals, with the ends that were recorded.
    4. The rows of the registers, and the episodes of the intervals that can be resampled.

    Args:
        case: the study and its registration.
        decision: the decision of the rule.
    """
    below = case.book.names_of(case.book.rule(decision.rule))
    rules = [rule for name, rule in case.book.rules.items() if name in below | {decision.rule}]  # 1
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]  # 2
    runs = {endpoint.id: _runs(case, endpoint) for endpoint in endpoints}
    intervals = _intervals(case, decision)  # 3
    downloads = (  # 4
        *_rows(case, decision.rule, endpoints, runs),
        *_episodes(case, decision.rule, endpoints, runs, intervals),
    )
    document = {
        "study": case.study.name,
        "rule": decision.rule,
        "registration": dict(zip(("name", "sha256"), decision.registration, strict=True)),
        "registers": [{"config": read.config, "sha256": read.sha256} for read in decision.registers],
        "rules": {rule.id: _rule(rule) for rule in rules},
        "endpoints": {e.id: _endpoint(e, runs[e.id], has=are_read(case.study, e)) for e in endpoints},
        **_statistics(case, decision),
        **_tests(case, decision),
        "intervals": {name: _interval(case, name, interval) for name, interval in intervals.items()},
        "recorded": {rule.id: _recorded(case.decide(rule.id)) for rule in rules},
    }
    fixed = [_fixed(case, name, interval) for name, interval in intervals.items()]
    fixed += [
        f"The p-value of the test {name} is taken as recorded: this page does not make it again."
        for name in _named_tests(case, decision)
    ]
    return Evidence(document, downloads, tuple(text for text in fixed if text))


def _intervals(case: Case, decision: Decision) -> dict[str, Interval | Missing]:
    """Return the interval of a rule and those of the tests that it rests on."""
    rule = case.book.rule(decision.rule)
    named = case.book.names_of(rule) | {rule.interval}
    return {name: case.engine.interval(name) for name in case.book.intervals if name in named}


def _runs(case: Case, endpoint: Endpoint) -> dict[tuple[str, int], str | Missing]:
    if not endpoint.arms or not case.study.has(endpoint.register):
        return {}
    rows = case.study.kept("rows as evidence: runs", lambda: case.study.rows("runs"))
    return case.book.plan.deciding_runs(endpoint, rows)


def _named(runs: dict[tuple[str, int], str | Missing]) -> tuple[str, ...]:
    return tuple(run for run in runs.values() if isinstance(run, str))


def _rows(
    case: Case,
    rule: str,
    endpoints: Sequence[Endpoint],
    runs: dict[str, dict[tuple[str, int], str | Missing]],
) -> list[Download]:
    made = []
    of_registers = [e for e in endpoints if not e.attributes]
    for register in dict.fromkeys(e.register for e in of_registers if case.study.has(e.register)):
        wanted = {e.id: (e, _named(runs[e.id])) for e in of_registers if e.register == register}
        table = rows_read(case.study, register, wanted)
        file = f"{case.study.name}-{rule}-{register}.parquet"
        made.append(Download(ROWS, register, f"Rows of {register}", file, table.num_rows, parquet(table)))
    for endpoint in (e for e in endpoints if e.attributes):
        if are_read(case.study, endpoint):
            table = rows_counted(case.study, endpoint, _named(runs[endpoint.id]))
            title = f"Rows of {_source(endpoint)}"
            file = f"{case.study.name}-{rule}-{endpoint.register}-{endpoint.id}.parquet"
            made.append(Download(ROWS, _source(endpoint), title, file, table.num_rows, parquet(table)))
    return made


def _source(endpoint: Endpoint) -> str:
    """Return what a page calls the rows of an endpoint: its register, or what was counted for it."""
    tasks = ", ".join(in_words(endpoint))
    return f"{endpoint.register}, tasks with {tasks}, for {endpoint.id}" if tasks else endpoint.register


def _episodes(
    case: Case,
    rule: str,
    endpoints: Sequence[Endpoint],
    runs: dict[str, dict[tuple[str, int], str | Missing]],
    intervals: dict[str, Interval | Missing],
) -> list[Download]:
    resampled = {i.endpoint for i in intervals.values() if isinstance(i, Interval) and i.source == COMPUTED}
    made = []
    for endpoint in (e for e in endpoints if e.id in resampled and _is_counted_here(case, e)):
        content, rows = episodes_counted(case.study, endpoint, _named(runs[endpoint.id]))
        file = f"{case.study.name}-{rule}-episodes-{endpoint.id}.parquet"
        title = f"Episodes of {endpoint.id}, counted by run, step and task"
        made.append(Download(EPISODES, endpoint.id, title, file, rows, content))
    return made


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
    if interval.source == OF_SEEDS:
        return f"The interval {name} stands as computed: it is made of seeds, which this page does not draw."
    if interval.source == OF_TASKS:
        return f"The interval {name} stands as computed: this page does not make it. It is {interval.method}."
    if interval.source == COMPUTED and not _is_counted_here(case, case.book.endpoints[interval.endpoint]):
        return f"The interval {name} stands as computed: this page resamples whole counts of all tasks alone."
    if interval.source != COMPUTED:
        return f"The interval {name} stands as {interval.source}: the episodes behind it were not published."
    return ""


def _rule(rule: Rule) -> dict[str, Any]:
    names = ("kind", "joint", "superseded", "binding", "open", "shut", "estimate", "interval")
    return {
        **{name: getattr(rule, name) for name in names},
        "readings": list(rule.readings),
        "threshold": _exact(rule.threshold),
        "criteria": [
            {
                "id": c.id,
                "text": c.text,
                "test": c.test,
                "reading": c.reading,
                "names": [*names_in(c.expression)],
            }
            for c in rule.criteria
        ],
    }


def _statistics(case: Case, decision: Decision) -> dict[str, Any]:
    """Return the statistics that a page's rules read; nothing where they read none."""
    made = {name: case.book.statistics[name] for name in decision.statistics}
    return {"statistics": {name: statistic.as_dict() for name, statistic in made.items()}} if made else {}


def _named_tests(case: Case, decision: Decision) -> list[str]:
    named = case.book.names_of(case.book.rule(decision.rule))
    return [name for name in case.book.tests if name in named]


def _tests(case: Case, decision: Decision) -> dict[str, Any]:
    """Return the tests of significance that a page's rules read; nothing where they read none."""
    made = {name: case.engine.test(name) for name in _named_tests(case, decision)}
    recorded = {
        name: {"made": one.test.made, "p": _value(one.p), "adjusted": _value(one.adjusted)}
        for name, one in made.items()
    }
    return {"tests": recorded} if recorded else {}


def _endpoint(endpoint: Endpoint, runs: dict[tuple[str, int], str | Missing], *, has: bool) -> dict[str, Any]:
    outcome = endpoint.outcome
    names = members(endpoint) if endpoint.is_series else []
    as_declared = (
        *("title", "register", "where", "expect", "arms", "seeds", "by", "steps", "over_steps", "unit"),
        *("tasks", "schedules"),
    )
    exactly = ("threshold", "low", "high")
    return {
        **{name: list(v) if isinstance(v := getattr(endpoint, name), tuple) else v for name in as_declared},
        **{name: _exact(getattr(endpoint, name)) for name in exactly},
        "register": _source(endpoint),
        "has_register": has,
        "outcome": {"count": outcome.count, "of": outcome.of}
        if isinstance(outcome, Rate)
        else {"figure": outcome.figure, "over": outcome.over},
        "runs": [{"arm": arm, "seed": seed, **_run(run)} for (arm, seed), run in runs.items()],
        "members": names,
        "checkpoints": [{"trajectory": t, "step": s} for t, s in endpoint.checkpoints],
    }


def _run(run: str | Missing) -> dict[str, Any]:
    return _missing(run) if isinstance(run, Missing) else {"run": run}


def _interval(case: Case, name: str, interval: Interval | Missing) -> dict[str, Any]:
    spec = case.book.intervals[name]
    return {
        "endpoint": spec.endpoint,
        "level": _exact(spec.level),
        "made": spec.made,
        "resamples": spec.resamples,
        "crossing": spec.crossing,
        "rng_seed": str(spec.rng_seed),
        "recorded": _ends(interval) if isinstance(interval, Interval) else _missing(interval),
    }


def _ends(interval: Interval) -> dict[str, Any]:
    low_error, high_error = interval.errors or (None, None)
    return {
        "low": _exact(interval.low),
        "high": _exact(interval.high),
        "low_error": _exact(low_error),
        "high_error": _exact(high_error),
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
        return _missing(value)
    return value if value is None or isinstance(value, bool) else str(value)


def _missing(missing: Missing) -> dict[str, Any]:
    return {"missing": list(missing.reasons), "not_run": missing.not_run}


def _exact(number: Fraction | None) -> str | None:
    return None if number is None else str(number)
