"""A page a rule: its words, every criterion with its number, its seeds, its rows, its registration."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.rows_query import rows_query
from toolkit.decisions.subgroup import are_read, rows_of
from toolkit.decisions.values import Missing, Series, mean_of
from toolkit.registers.query import Answer, asking
from toolkit.registers.row_types import ProbeIntervalRow
from toolkit.website.drawings import MOST_ENDPOINTS, rule_charts
from toolkit.website.environment import WORDS
from toolkit.website.evidence import evidence_of
from toolkit.website.glossary import formula, glossary
from toolkit.website.material import Material
from toolkit.website.page import Page, counts_of, rule_page, run_page
from toolkit.website.registers import carried, rows_by_run
from toolkit.website.views import rule_head

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
                        "verifications": material.verifications_of(case),
                        "code_version": case.study.manifest.code_version,
                        "rows_sha256": case.study.manifest.logical_sha256,
                        "rules": rules,
                        "has_episodes": case.study.has("episodes"),
                        **_rule_page(case, decision, ask, material.probe_figures.get(case.study.name, ())),
                    },
                    ("decide",),
                )


def _rule_page(
    case: Case, decision: Decision, ask: Ask, figures: Iterable[ProbeIntervalRow]
) -> dict[str, Any]:
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]
    is_listed = len(endpoints) <= MOST_ENDPOINTS  # otherwise each has a line, without its rows
    amendments = {amendment.id: amendment for amendment in case.registration.amendments}
    change = case.book.changes.get(decision.rule)
    return {
        "d": decision,
        # A build checks every study whole, in this process or beside it, before it writes a page.
        "hashes": [(read.config, case.study.sha256(read.config)) for read in decision.registers],
        "rule": case.book.rule(decision.rule),
        "secondary": [{**vars(estimate), **estimate.as_dict()} for estimate in decision.secondary],
        "charts": rule_charts(case, decision, figures),
        "seeds": [(e, rows) for e in endpoints if is_listed and (rows := seed_rows(case, e))],
        "endpoints": [_rows(case, endpoint, ask) for endpoint in endpoints] if is_listed else [],
        "sums": [] if is_listed else [_sums(case, endpoint, ask) for endpoint in endpoints],
        "statistics": [case.book.statistics[name] for name in decision.statistics],
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
    if are_read(case.study, endpoint):
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
        **_rows(case, endpoint, ask, endpoint.outcome.columns if isinstance(endpoint.outcome, Rate) else ()),
        "mean": None if isinstance(mean, Missing) else mean,
        "listed": [(name, rule_page(case.study.name, name)) for name in _listing(case, endpoint)],
    }


def _listing(case: Case, endpoint: Endpoint) -> Iterator[str]:
    """Yield the rules whose pages list every row of an endpoint."""
    for decision in case.decide_all():
        shown = [case.book.endpoints[name] for name in decision.endpoints]
        if len(shown) <= MOST_ENDPOINTS and any(other.covers(endpoint) for other in shown):
            yield decision.rule


def seed_rows(case: Case, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return an endpoint by seed: its value, None where it has none, and the runs behind it.

    Args:
        case: the study and what decides it.
        endpoint: an endpoint of its rule book.

    Returns:
        A row for every seed that was registered, in order; nothing for an endpoint that is not by seed.
    """
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
    """Return an arm's deciding run and how many of its episodes are read; or why there is no run.

    It leads to the run's page with the filters that show these episodes, or to their counts where the page
    lists no episodes.
    """
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
    if endpoint.attributes:
        made = rows_of(endpoint, case.study)
        rows = [] if isinstance(made, Missing) else [row for row in made if row["run_id"] == run]
    counted = [
        row["episodes"]
        for row in rows
        if row["step"] in endpoint.steps
        and all(row.get(name) == value for name, value in endpoint.where.items())
    ]
    return sum(counted) if counted else None
