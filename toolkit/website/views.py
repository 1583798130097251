"""Decisions as templates show them."""

from collections.abc import Collection
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import CriterionResult, Decision
from toolkit.decisions.interval import Interval
from toolkit.decisions.reasons import interval_says
from toolkit.decisions.values import Series, Value, printed
from toolkit.website.charts.forest import cells
from toolkit.website.drawings import forest_row
from toolkit.website.page import rule_page

# A fraction longer than this says nothing to a reader.
LONGEST = 15


def decision_view(decision: Decision) -> dict[str, Any]:
    """Return a decision as printed, with every optional part present."""
    decided = decision.as_dict()
    document = {
        "readings": {},
        "superseded": "",
        "original_verdict": "",
        "missing": [],
        "secondary": [],
        "amendment": None,
        "added_by": None,
        "close_calls": [],
        "tests": [],
        "exploratory": [],
        "is_exploratory": False,
        "bounds": decision.bounds.in_words if decision.bounds else "",
        "estimate_text": decision.estimate.mean_text if decision.estimate else "",
        "interval_text": decision.interval.text if isinstance(decision.interval, Interval) else "",
        "interval_says": interval_says(decision),
        "interval_origin": decision.interval.origin if isinstance(decision.interval, Interval) else "",
        **decided,
    }
    document["criteria"] = [
        {
            "missing": [],
            "cautions": [],
            "procedures": [],
            "reading": "",
            "rules": {},
            "shown": _shown(criterion.value, criterion),
            "other": _shown(criterion.against, criterion),
            **document_of,
        }
        for criterion, document_of in zip(decision.criteria, decided["criteria"], strict=True)
    ]
    return document


KINDS = {"hypothesis": "Hypotheses", "gate": "Gates", "prediction": "Predictions"}


def outcome_tables(case: Case) -> list[dict[str, Any]]:
    """Return a study's outcomes as tables, one a kind of rule, each with its forest plot."""
    decisions = case.decide_all()
    return [
        {
            "study": case.study.name,
            "title": KINDS.get(kind, kind),
            "decisions": [
                {**decision_view(d), "target": rule_page(case.study.name, d.rule)}
                for d in decisions
                if d.kind == kind
            ],
            "cells": cells([forest_row(d) for d in decisions if d.kind == kind]),
        }
        for kind in dict.fromkeys(decision.kind for decision in decisions)
    ]


def standing_view(case: Case) -> dict[str, str]:
    """Return what a study's verdicts stand on."""
    return {
        "registration": case.registration.name,
        "name": case.standing.name,
        "text": str(case.standing),
    }


def rules_reading(case: Case, registers: Collection[str]) -> list[dict[str, Any]]:
    """Return the rules that read one of some registers, as decided."""
    return [
        decision_view(d)
        for d in case.decide_all()
        if any(case.book.endpoints[name].register in registers for name in d.endpoints)
    ]


def _shown(value: Value | None, criterion: CriterionResult) -> Any:
    """Return a number of a criterion, exactly where it is made of counts; by member where it is a series."""
    exact, decimal = printed(value)
    counted = "counts" in criterion.basis
    if isinstance(value, Series):
        seeds = value.unit == "seed"
        return {f"seed {key}" if seeds else key: _both(exact[key], decimal[key], counted) for key in exact}
    return _both(exact, decimal, counted)


def _both(exact: str | None, decimal: float | None, counted: bool) -> str | None:  # noqa: FBT001 - a column's kind
    if exact is None or decimal is None:
        return None
    return f"{exact} = {decimal:g}" if counted and "/" in exact and len(exact) <= LONGEST else f"{decimal:g}"
