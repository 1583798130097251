"""A page a rule: its words, every criterion with its number, its seeds, its rows, its registration.

It also says, for a script to hold against the registers, what was recorded of the rule; no rows. Nothing of
that is computed: it is what the decision holds, in a form that a script can read without rounding. Exact
numbers are text, as `71/1920` or `-0.03`. The script reads the rows and the rules where they lie.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from toolkit.decisions.case import Case, rows_query
from toolkit.decisions.decision import Decision
from toolkit.decisions.intervals import FROM_SEEDS, FROM_TASKS, Interval
from toolkit.decisions.measure import are_read, excludes, in_words, lack_outcomes, rows_of
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.registers.query import Answer, asking
from toolkit.registers.schema import TABLES
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.values import Missing, Series, Value, mean_of
from toolkit.site.drawings import MOST_ENDPOINTS, rule_charts, rule_head
from toolkit.site.environment import WORDS
from toolkit.site.material import Material
from toolkit.site.page import Page, counts_of, rule_page, run_page
from toolkit.site.registers import carried, rows_by_run
from toolkit.structs import as_builtins

COMPUTED = "computed"
EVALUATIONS = "evaluations"
# What an endpoint says of its evaluation set and what the list of a run's episodes can be filtered by.
FILTERS = ("phase", "pool", "regime", "step")
Ask = Callable[[str], Answer]


def pages(material: Material) -> Iterator[Page]:
    """Yield a page for every rule of every study."""
    for case in material.cases:
        with asking(case.study) as put:
            ask = cache(put)  # rules share endpoints
            rules = [(d.rule, d.title) for d in case.decide_all()]
            for decision in case.decide_all():
                yield Page(
                    rule_page(case.study.name, decision.rule),
                    "rule.html",
                    f"{decision.rule}: {decision.title} ({case.study.name})",
                    f"study {case.study.name}",
                    {
                        **rule_head(material.cases, case, decision.rule),
                        "terms": glossary(case, decision),
                        "verifications": [
                            v for v in material.verifications if v.registration == case.registration.name
                        ],
                        "code_version": case.study.manifest.code_version,
                        "rows_sha256": case.study.manifest.logical_sha256,
                        "rules": rules,
                        "has_episodes": case.study.has("episodes"),
                        **_rule_page(case, decision, ask, material.probe_figures.get(case.study.name, ())),
                    },
                    ("decide",),
                )


def _rule_page(case: Case, decision: Decision, ask: Ask, figures: Iterable[Row]) -> dict[str, Any]:
    endpoints = [case.book.endpoints[name] for name in decision.endpoints_read]
    is_listed = len(endpoints) <= MOST_ENDPOINTS  # otherwise each has a line, without its rows
    amendments = {amendment.id: amendment for amendment in case.registration.amendments}
    change = case.book.changes.get(decision.rule)
    return {
        "d": decision,
        # A build checks every study whole, in this process or beside it, before it writes a page.
        "hashes": [(read.config, case.study.sha256(read.config)) for read in decision.registers],
        "rule": case.book.rule(decision.rule),
        "secondary": [
            {"title": estimate.title, "unit": estimate.unit, **as_builtins(estimate)}
            for estimate in decision.secondary
        ],
        "charts": rule_charts(case, decision, figures),
        "seeds": [(e, rows) for e in endpoints if is_listed and (rows := seed_rows(case, e))],
        "endpoints": [_rows(case, endpoint, ask) for endpoint in endpoints] if is_listed else [],
        "sums": [] if is_listed else [_sums(case, endpoint, ask) for endpoint in endpoints],
        "statistics": [case.book.statistics[name] for name in decision.statistics_read],
        "evidence": evidence_of(case, decision),
        "steps": WORDS["steps"],
        "amendment": amendments[change.amendment] if change else None,
        "added": amendments[change.added_by] if change and change.added_by else None,
        "first": change.first if change else None,
        "deviations": [d for d in case.registration.deviations if decision.rule in d.concerns],
    }


def _rows(case: Case, endpoint: Endpoint, ask: Ask, summed: Sequence[str] = ()) -> dict[str, Any]:
    """Return an endpoint with the number of its rows and sums over them, None where it cannot be read."""
    query = rows_query(endpoint, case.book.plan, case.study)
    counted: tuple[Any, ...] = (None,)
    if are_read(case.study, endpoint, case.book.plan):
        sums = "".join(f", sum({name})" for name in summed)
        counted = ask(f"SELECT count(*){sums} FROM ({query})").rows[0]
    return {
        "endpoint": endpoint,
        "formula": formula(endpoint),
        "query": query,
        "rows": counted[0],
        "counts": list(zip(counted[1:], summed, strict=False)),
    }


def _sums(case: Case, endpoint: Endpoint, ask: Ask) -> dict[str, Any]:
    """Return an endpoint in one row: its mean, the rows that it reads, their counts, and who lists them."""
    mean = mean_of(case.engine.value(endpoint.id))
    return {
        **_rows(case, endpoint, ask, endpoint.outcome.columns if endpoint.outcome.is_rate else ()),
        "mean": None if isinstance(mean, Missing) else mean,
        "listed": [(name, rule_page(case.study.name, name)) for name in listing(case, endpoint)],
    }


def listing(case: Case, endpoint: Endpoint) -> Iterator[str]:
    """Yield the rules whose pages list every row of an endpoint."""
    for decision in case.decide_all():
        shown = [case.book.endpoints[name] for name in decision.endpoints_read]
        if len(shown) <= MOST_ENDPOINTS and any(other.covers(endpoint) for other in shown):
            yield decision.rule


def seed_rows(case: Case, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return an endpoint by seed: its value, None where it has none, and the runs behind it."""
    if endpoint.by != "seed":
        return []
    value = case.engine.value(endpoint.id)
    values = dict(value.items) if isinstance(value, Series) else {}
    runs = case.book.plan.deciding_runs(endpoint, case.study.rows("runs"))
    return [
        {
            "seed": seed,
            "value": None if isinstance(member := values.get(str(seed)), Missing) else member,
            "arms": [_arm(case, endpoint, arm, runs[arm, seed]) for arm in endpoint.arms],
        }
        for seed in endpoint.seeds
    ]


def _arm(case: Case, endpoint: Endpoint, arm: str, run: str | Missing) -> dict[str, Any]:
    """Return an arm's deciding run, how many of its episodes are read and where; or why there is no run."""
    if isinstance(run, Missing):
        return {"arm": arm, "run": "", "missing": "; ".join(run.reasons), "episodes": None, "target": ""}
    page = run_page(case.study.name, run)
    lists_episodes = case.study.has("episodes") and carried(case.study, "episodes")
    fragment = _fragment(endpoint) if lists_episodes else counts_fragment(endpoint)
    if endpoint.register == EVALUATIONS:
        page = f"{page}#{fragment}" if fragment else page
    return {"arm": arm, "run": run, "episodes": _episodes(case, endpoint, run), "target": page}


def _fragment(endpoint: Endpoint) -> str:
    """Return the part of an address that filters a run's episodes to those that an endpoint reads."""
    filters = {name: endpoint.where[name] for name in FILTERS if name in endpoint.where}
    if len(endpoint.steps) == 1:
        filters["step"] = str(endpoint.steps[0])
    return urlencode(filters)


def counts_fragment(endpoint: Endpoint) -> str:
    """Return the part of an address that leads to a run's counts on the set that an endpoint reads."""
    names = [endpoint.where.get(name, "") for name in FILTERS[:3]]
    return counts_of(*names) if all(names) else "counts"


def _episodes(case: Case, endpoint: Endpoint, run: str) -> int | None:
    if endpoint.register != EVALUATIONS or not case.study.has(EVALUATIONS):
        return None
    rows = rows_by_run(case.study, EVALUATIONS).get(run, [])
    if endpoint.attributes or excludes(endpoint):
        made = rows_of(endpoint, case.study, case.book.plan)
        rows = [] if isinstance(made, Missing) else [row for row in made if row["run_id"] == run]
    counted = [
        row["episodes"]
        for row in rows
        if row["step"] in endpoint.steps
        and all(row.get(name) == value for name, value in endpoint.where.items())
    ]
    return sum(counted) if counted else None


@dataclass(frozen=True)
class Evidence:
    """What was recorded of a rule and of those that it names, and why intervals are not resampled."""

    document: dict[str, Any]
    fixed: tuple[str, ...]


def evidence_of(case: Case, decision: Decision) -> Evidence:
    """Return what a rule page says to its script."""
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
        "registration": {"name": decision.registration.name, "sha256": decision.registration.sha256},
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
    is_left_out = lack_outcomes(case.study) and excludes(endpoint)
    return (
        is_whole
        and not is_left_out
        and not any(row.get("excluded") for row in case.study.rows(endpoint.register))
    )


def _fixed(case: Case, name: str, interval: Interval | Missing) -> str:
    """Return why an interval is not resampled here, or nothing."""
    if isinstance(interval, Missing):
        return f"There is no interval {name}: {'; '.join(interval.reasons)}."
    stands = f"The interval {name} stands as"
    if interval.source == FROM_SEEDS:
        return f"{stands} computed: it is made of seeds, which this page does not draw."
    if interval.source == FROM_TASKS:
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


# What rows of the probe are told apart by.
OF_PROBE = ("noise", "estimator", "scored")
FEW = 8


def formula(endpoint: Endpoint) -> str:
    """Return how an endpoint's value follows from the rows of its register, as declared in the rules."""
    steps = ", ".join(map(str, endpoint.steps))
    at = f"at step {steps}" if steps else ""
    if endpoint.over_steps:
        made = str(WORDS["over_steps"][endpoint.over_steps]["formula"])
        at = made.format(steps=steps, threshold=float(endpoint.threshold or 0))
    parts = [" / ".join(endpoint.outcome.columns), at, _units(endpoint), _set(endpoint)]
    return "; ".join(part for part in parts if part) + "."


def _units(endpoint: Endpoint) -> str:
    seeds, arms = listed("seed", endpoint.seeds), endpoint.arms
    match endpoint.by:
        case "seed":
            return f"{endpoint.condition} {' minus '.join(arms)}, {seeds} one by one"
        case "run":
            return f"each run of {endpoint.condition}, {' and '.join(arms)}, {seeds}"
        case "pooled":
            return f"counts of {endpoint.condition} {arms[0]} added up over {seeds}, then divided"
        case "checkpoint":
            return listed("checkpoint", [f"{name}@{step}" for name, step in endpoint.checkpoints])
    return ""


def _set(endpoint: Endpoint) -> str:
    where = [f"{name} {value}" for name, value in sorted(endpoint.where.items())]
    schedules = "1 schedule" if endpoint.schedules == 1 else f"{endpoint.schedules} schedules"
    size = [f"{endpoint.tasks} tasks × {schedules}"] if endpoint.tasks else []
    return ", ".join([*where, *in_words(endpoint), *size])


def listed(noun: str, members: Iterable[object]) -> str:
    """Return a noun with its members; first, last and how many where they are more than a few."""
    texts = [str(member) for member in members]
    if len(texts) == 1:
        return f"{noun} {texts[0]}"
    if len(texts) > FEW:
        return f"{noun}s {texts[0]} to {texts[-1]} ({len(texts)})"
    return f"{noun}s {', '.join(texts)}"


def glossary(case: Case, decision: Decision) -> dict[str, str]:
    """Return what the words of a rule's endpoints mean, as the registration and the schema say it."""
    meanings: dict[str, str] = {}
    for word, meaning in _terms(case, decision):
        meanings.setdefault(word, meaning)
    return meanings


def _terms(case: Case, decision: Decision) -> Iterator[tuple[str, str]]:
    endpoints = [case.book.endpoints[name] for name in decision.endpoints_read]
    for endpoint in endpoints:
        if endpoint.over_steps:
            told = WORDS["over_steps"][endpoint.over_steps]
            yield told["word"], f"{told['meaning']} {listed('step', endpoint.steps)}"
    yield from _registered(case, decision, endpoints)
    yield from _figures(endpoints)
    for spec in case.book.intervals.values():
        if spec.endpoint in {endpoint.id for endpoint in endpoints}:
            yield f"{100 * float(spec.level):g}% interval", spec.made


def _registered(case: Case, decision: Decision, endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, str]]:
    cells, own = case.book.plan.cells, case.book.terms
    for condition in _each(endpoint.condition for endpoint in endpoints):
        if noises := _each(cell.noise for cell in cells if cell.condition == condition):
            yield f"condition {condition}", f"runs that train under: {'; or '.join(noises)}"
    for arm in _each(arm for endpoint in endpoints for arm in endpoint.arms):
        if "arm" in own.words:
            yield f"arm {arm}", f"one of the arms of this study: {', '.join(own.arms)}"
        elif arm in WORDS["arms"]:
            yield f"arm {arm.replace('_', ' ')}", WORDS["arms"][arm]
    if tiers := sorted({cell.tier for cell in cells if decision.rule in cell.serves}):
        meaning = "the order in which runs were to be made, lowest first; runs for this rule are of"
        yield "tier", f"{meaning} {listed('tier', tiers)}"
    for regime in _each(endpoint.where.get("regime", "") for endpoint in endpoints):
        is_own = "regime" in own.words or regime not in REGIMES
        about = ", in this study's own words" if is_own else f": {REGIMES[regime].about}"
        yield f"regime {regime}", f"noise of the evaluation{about}"


def _figures(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, str]]:
    if any(endpoint.register.startswith("luck_share") for endpoint in endpoints):
        yield "luck share", WORDS["luck"]["share"]
    for endpoint in endpoints:
        for name in endpoint.outcome.columns if not endpoint.outcome.is_rate else ():
            column = TABLES[endpoint.register].column(name)
            if column is not None and name != "luck_share":
                yield name.replace("_", " "), column.meaning
    for name in OF_PROBE:
        held = [endpoint for endpoint in endpoints if name in endpoint.where]
        column = TABLES[held[0].register].column(name) if held else None
        if column is not None:
            values = _each(endpoint.where[name] for endpoint in held)
            yield f"{name} ({', '.join(values)})", column.meaning


def _each(names: Iterable[str]) -> tuple[str, ...]:
    """Return names once each, in order, without the empty one."""
    return tuple(dict.fromkeys(name for name in names if name))
