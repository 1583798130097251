"""Decisions as templates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.decisions.decision import printed
from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Series

if TYPE_CHECKING:
    from toolkit.decisions.decision import CriterionResult, Decision

# A fraction longer than this says nothing to a reader.
LONGEST = 15


def decision_view(decision: Decision) -> dict[str, Any]:
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
    document["criteria"] = [
        {"missing": [], "reading": "", "shown": _shown(criterion), **document_of}
        for criterion, document_of in zip(decision.criteria, document["criteria"], strict=True)
    ]
    return document


def _shown(criterion: CriterionResult) -> Any:
    """Return a criterion's number, exactly and rounded; member by member where it is a series."""
    exact, decimal = printed(criterion.value)
    if isinstance(criterion.value, Series):
        seeds = criterion.value.unit == "seed"
        return {f"seed {key}" if seeds else key: _both(exact[key], decimal[key]) for key in exact}
    return _both(exact, decimal)


def _both(exact: str | None, decimal: float | None) -> str | None:
    if exact is None or decimal is None:
        return None
    return f"{exact} = {decimal}" if "/" in exact and len(exact) <= LONGEST else str(decimal)
