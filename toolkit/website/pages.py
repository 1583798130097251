"""Pages: from decisions and register rows to HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.decisions.interval import Interval
from toolkit.decisions.plan import place_of
from toolkit.decisions.provenance import rows_query
from toolkit.decisions.values import Series
from toolkit.prereg.verification import PROMISE
from toolkit.registers.query import Answer, asking
from toolkit.website.charts import Chart, learning_curves, members, seed_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jinja2

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision
    from toolkit.decisions.endpoints import Endpoint
    from toolkit.prereg.verification import Verification

Ask = Callable[[str], Answer]

_GOOD = ("pass", "met", "verified", "passed", "holds")
_BAD = ("miss", "missed", "failed", "not_verified", "does_not_hold")
_MIXED = ("partially_met", "superseded", "incomplete", "missing")


def render(
    cases: Sequence[Case], verifications: Sequence[Verification], progress: Callable[[str], None]
) -> dict[str, str]:
    """Return every page by its file name.

    Args:
        cases: the studies, decided by their registrations.
        verifications: what can be said of the registrations.
        progress: called with the name of each page before it is made.
    """
    environment = _environment()
    shared: dict[str, Any] = {
        "version": toolkit.__version__,
        "cases": [
            {
                "study": case.study.name,
                "is_summary": case.study.is_summary,
                "decisions": [_view(decision) for decision in case.engine.decide_all()],
                "matrix": _matrix(case),
            }
            for case in cases
        ],
    }
    progress("index.html")
    pages = {
        "index.html": environment.get_template("index.html").render(
            **shared, root="", current=("", ""), verifications=verifications, promise=PROMISE
        )
    }
    template = environment.get_template("rule.html")
    for case, entry in zip(cases, shared["cases"], strict=True):
        with asking(case.study) as ask:
            for decision in case.engine.decide_all():
                name = f"{case.study.name}/{decision.rule}.html"
                progress(name)
                page = _rule_page(case, decision, ask)
                pages[name] = template.render(
                    **shared, root="../", current=(case.study.name, decision.rule), case=entry, **page
                )
    return pages


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("toolkit.website"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["verdict_class"] = _verdict_class
    return environment


def _verdict_class(verdict: str) -> str:
    for names, css in ((_GOOD, "good"), (_BAD, "bad"), (_MIXED, "mixed")):
        if verdict in names:
            return css
    return "plain"


def _rule_page(case: Case, decision: Decision, ask: Ask) -> dict[str, Any]:
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]
    amendments = {amendment.id: amendment for amendment in case.registration.amendments}
    change = case.book.changes.get(decision.rule)
    secondary = zip(decision.secondary, _view(decision)["secondary"], strict=True)
    return {
        "d": _view(decision),
        "rule": case.book.rule(decision.rule),
        "estimate_title": decision.estimate.title if decision.estimate else "",
        "secondary": [{"title": estimate.title, **document} for estimate, document in secondary],
        "charts": _charts(case, decision, endpoints),
        "endpoints": [_rows(case, endpoint, ask) for endpoint in endpoints],
        "amendment": amendments[change.amendment] if change else None,
        "added": amendments[change.added_by] if change and change.added_by else None,
        "first": change.first if change else None,
        "deviations": [d for d in case.registration.deviations if decision.rule in d.concerns],
    }


def _view(decision: Decision) -> dict[str, Any]:
    """Return a decision as printed, with every optional part present."""
    document = {
        "readings": {},
        "superseded": "",
        "original_verdict": "",
        "missing": [],
        "secondary": [],
        "amendment": None,
        "added_by": None,
        "close_calls": [],
        "interval_origin": decision.interval.origin if isinstance(decision.interval, Interval) else "",
        **decision.as_dict(),
    }
    document["criteria"] = [{"missing": [], "reading": "", **c} for c in document["criteria"]]
    return document


def _rows(case: Case, endpoint: Endpoint, ask: Ask) -> dict[str, Any]:
    query = rows_query(endpoint, case.book.plan)
    if not case.study.has(endpoint.register):
        return {"title": endpoint.title, "query": query, "columns": (), "rows": ()}
    answer = ask(query)
    return {"title": endpoint.title, "query": query, "columns": answer.columns, "rows": answer.rows}


def _charts(case: Case, decision: Decision, endpoints: Sequence[Endpoint]) -> list[Chart]:
    arms = case.book.endpoints[decision.estimate.endpoint].arms if decision.estimate else ()
    drawn = [seed_differences(decision, arms)]
    shown = set()
    for endpoint in endpoints:
        if endpoint.over_steps:
            points = case.engine.curve(endpoint.id)
            if points not in shown:  # two endpoints can summarize one curve
                drawn.append(learning_curves(points, _curve_title(endpoint)))
            shown.add(points)
        elif endpoint.by in ("checkpoint", "run"):
            value = case.engine.value(endpoint.id)
            if isinstance(value, Series) and len(set(value.values)) > 1:
                drawn.append(members(endpoint.title, endpoint.unit, value))
    return [chart for chart in drawn if chart is not None]


def _curve_title(endpoint: Endpoint) -> str:
    where = endpoint.where
    return f"{endpoint.condition} learning curves, {where.get('pool', '')} {where.get('regime', '')}"


def _matrix(case: Case) -> list[dict[str, Any]]:
    """Return the registered run matrix, each cell with the runs that the study has of it."""
    runs = case.study.rows("runs")
    return [
        {
            "cell": cell,
            "runs": [
                run["run_id"]
                for run in runs
                if run["role"] in case.book.plan.roles and cell.holds(*place_of(run))
            ],
        }
        for cell in case.book.plan.cells
    ]
