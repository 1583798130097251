"""A page a rule: its words, every criterion with its number, its rows, its registration."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.rows_query import rows_query
from toolkit.decisions.subgroup import are_read
from toolkit.decisions.values import Missing, mean_of
from toolkit.registers.query import Answer, asking
from toolkit.registers.row_types import ProbeIntervalRow
from toolkit.website.drawings import MOST_ENDPOINTS, rule_charts
from toolkit.website.evidence import evidence_of
from toolkit.website.formulas import formula
from toolkit.website.glossary import glossary
from toolkit.website.material import Material
from toolkit.website.page import Page, rule_page
from toolkit.website.seeds import seed_rows
from toolkit.website.siblings import of_rule
from toolkit.website.views import decision_view, standing_view

# What a reader's browser does on opening the page, in order.
STEPS = (
    ("files", "Register files"),
    ("rows", "Rows, decided again"),
    ("manifest", "Manifest"),
    ("registration", "Registration"),
    ("tokens", "Tokens"),
)
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
                        "study": case.study.name,
                        "stands_on": standing_view(case),
                        "same_elsewhere": of_rule(material, case, decision.rule),
                        "terms": glossary(case, decision),
                        "verifications": material.verifications_of(case),
                        "code_version": case.study.manifest.code_version,
                        "rows_sha256": case.study.manifest.logical_sha256,
                        "is_summary": case.study.is_summary,
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
    shown = endpoints if len(endpoints) <= MOST_ENDPOINTS else ()
    amendments = {amendment.id: amendment for amendment in case.registration.amendments}
    change = case.book.changes.get(decision.rule)
    view = decision_view(decision)
    secondary = zip(decision.secondary, view["secondary"], strict=True)
    return {
        "d": view,
        # A build checks every study whole, in this process or beside it, before it writes a page.
        "hashes": [(read.config, case.study.sha256(read.config)) for read in decision.registers],
        "rule": case.book.rule(decision.rule),
        "estimate": decision.estimate,
        "secondary": [
            {"title": estimate.title, "unit": estimate.unit, **document} for estimate, document in secondary
        ],
        "charts": rule_charts(case, decision, figures),
        "seeds": [(e, rows) for e in shown if (rows := seed_rows(case, e))],
        **_read(case, endpoints, ask),
        "statistics": [case.book.statistics[name] for name in decision.statistics],
        "tests": decision.tests,
        "evidence": evidence_of(case, decision),
        "steps": STEPS,
        "amendment": amendments[change.amendment] if change else None,
        "added": amendments[change.added_by] if change and change.added_by else None,
        "first": change.first if change else None,
        "deviations": [d for d in case.registration.deviations if decision.rule in d.concerns],
    }


def _read(case: Case, endpoints: Sequence[Endpoint], ask: Ask) -> dict[str, Any]:
    """Return the endpoints with the rows that each reads; a line each where there are too many for that."""
    if len(endpoints) <= MOST_ENDPOINTS:
        return {"endpoints": [_rows(case, endpoint, ask) for endpoint in endpoints], "sums": []}
    return {"endpoints": [], "sums": [_sums(case, endpoint, ask) for endpoint in endpoints]}


def _rows(case: Case, endpoint: Endpoint, ask: Ask) -> dict[str, Any]:
    """Return an endpoint with the number of its rows, None where it cannot be read."""
    query = rows_query(endpoint, case.book.plan, case.study)
    is_read = are_read(case.study, endpoint)
    return {
        "id": endpoint.id,
        "title": endpoint.title,
        "formula": formula(endpoint),
        "query": query,
        "rows": ask(f"SELECT count(*) FROM ({query})").rows[0][0] if is_read else None,
    }


def _sums(case: Case, endpoint: Endpoint, ask: Ask) -> dict[str, Any]:
    """Return an endpoint in one row: its mean, the rows that it reads, their counts, and who lists them."""
    query = rows_query(endpoint, case.book.plan, case.study)
    mean = mean_of(case.engine.value(endpoint.id))
    counted: tuple[Any, ...] = (None,)
    if are_read(case.study, endpoint):
        columns = endpoint.outcome.columns if isinstance(endpoint.outcome, Rate) else ()
        sums = "".join(f", sum({name})" for name in columns)
        counted = ask(f"SELECT count(*){sums} FROM ({query})").rows[0]
    return {
        "endpoint": endpoint,
        "formula": formula(endpoint),
        "query": query,
        "mean": None if isinstance(mean, Missing) else mean,
        "rows": counted[0],
        "counts": list(zip(counted[1:], endpoint.outcome.columns, strict=False)),
        "listed": [(name, rule_page(case.study.name, name)) for name in _listing(case, endpoint)],
    }


def _listing(case: Case, endpoint: Endpoint) -> Iterator[str]:
    """Yield the rules whose pages list every row of an endpoint."""
    for decision in case.decide_all():
        shown = [case.book.endpoints[name] for name in decision.endpoints]
        if len(shown) <= MOST_ENDPOINTS and any(other.covers(endpoint) for other in shown):
            yield decision.rule
