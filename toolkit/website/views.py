"""Decisions as templates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.decisions.interval import Interval

if TYPE_CHECKING:
    from toolkit.decisions.decision import Decision


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
    document["criteria"] = [{"missing": [], "reading": "", **c} for c in document["criteria"]]
    return document
