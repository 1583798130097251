"""A decision with its rule's words, and where the rows of its endpoints are."""

from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.rows_query import rows_query


def explain(case: Case, rule: str) -> dict[str, Any]:
    """Return a decision with the rule's words and the rows of its endpoints; errors as `Case.decide`."""
    decision = case.decide(rule)
    rule = decision.rule
    registered, restated = case.book.rule(rule), case.restated_words(rule)
    endpoints = [case.book.endpoints[name] for name in decision.endpoints]
    statistics = [case.book.statistics[name].as_dict() for name in decision.statistics]
    by = decision.added_by
    added = next(a for a in case.registration.amendments if a.id == by.id) if by else None
    return {
        "rule": rule,
        "text": registered.text,
        "confidence": registered.confidence or None,
        "readings_text": registered.readings or None,
        **{key: value for key, value in decision.as_dict().items() if key != "rule"},
        "endpoints": [
            {"id": e.id, "title": e.title, "unit": e.unit, "rows": rows_query(e, case.book.plan, case.study)}
            for e in endpoints
        ],
        **({"statistics": statistics} if statistics else {}),
        **({"restates": restated} if restated else {}),
        **({"addition": {"id": added.id, "dated": str(added.dated), "seen": added.seen}} if added else {}),
        "deviations": [
            {"id": d.id, "title": d.title, "text": d.text}
            for d in case.registration.deviations
            if rule in d.concerns
        ],
    }
