"""Decisions as templates show them, and where the same is shown of other studies."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.site.charts.estimates import cells
from toolkit.site.drawings import forest_row
from toolkit.site.page import Link, rule_page

KINDS = {"hypothesis": "Hypotheses", "gate": "Gates", "prediction": "Predictions"}


def outcome_tables(case: Case) -> list[dict[str, Any]]:
    """Return a study's outcomes as tables, one a kind of rule, each with its forest plot."""
    by_kind: dict[str, list[Decision]] = {}
    for decision in case.decide_all():
        by_kind.setdefault(decision.kind, []).append(decision)
    return [
        {
            "study": case.study.name,
            "title": KINDS.get(kind, kind),
            "decisions": decisions,
            "cells": cells([forest_row(decision) for decision in decisions]),
        }
        for kind, decisions in by_kind.items()
    ]


def standing_view(case: Case) -> dict[str, str]:
    """Return what a study's verdicts stand on."""
    return {
        "registration": case.registration.name,
        "name": case.standing.name,
        "text": str(case.standing),
    }


def rules_reading(case: Case, registers: Collection[str]) -> list[Decision]:
    """Return the rules that read one of some registers, as decided."""
    return [
        d
        for d in case.decide_all()
        if any(case.book.endpoints[name].register in registers for name in d.endpoints)
    ]


def head(cases: Iterable[Case], case: Case, what: str, page: Callable[[str], str]) -> dict[str, Any]:
    """Return what the head of a study's page shows: what it is of, and the same page of other studies."""
    others = [Link(_named(o), page(o.study.name)) for o in cases if o.study.name != case.study.name]
    return {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "stands_on": standing_view(case),
        "same_elsewhere": {"what": what, "here": _named(case), "elsewhere": others},
    }


def rule_head(cases: Iterable[Case], case: Case, rule: str) -> dict[str, Any]:
    """Return the head of a rule's page: others are of rules of the same name and title."""
    title = case.book.rule(rule).title
    same = [o for o in cases if rule in o.book.rules and o.book.rules[rule].title == title]
    return head(same, case, f"rule {rule}", lambda study: rule_page(study, rule))


def _named(case: Case) -> str:
    return f"study {case.study.name}{' (published figures)' if case.study.is_summary else ''}"
