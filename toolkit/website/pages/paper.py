"""Every table and figure of the paper, for every study side by side, from the registers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from itertools import groupby
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.measure import CurvePoint, mean_point
from toolkit.errors import DamagedError, UsageError
from toolkit.findings import at
from toolkit.registers.query import Answer, asking
from toolkit.website.charts.curves import learning_curves
from toolkit.website.charts.probe import Ratio, ratios
from toolkit.website.material import Material
from toolkit.website.page import Page, rule_page
from toolkit.website.paper import FILE, Item, Paper, Part
from toolkit.website.views import decision_view, standing_view

Ask = Callable[[str], Answer]


NAME = "paper.html"
NO_INTERVALS = "no intervals, as in the paper; the page of the probe has those that can be had"


def pages(material: Material) -> Iterator[Page]:
    """Yield the page of the paper; none where the project has no paper, or no study."""
    paper = material.paper
    if paper is None or not material.cases:
        return
    cases = sorted(
        (case for case in material.cases if paper.reads(case.study.name)),
        key=lambda case: case.study.name != paper.study,  # its own study first
    )
    with ExitStack() as opened:
        asks = [(case, opened.enter_context(asking(case.study))) for case in cases]
        items = [_item(paper, item, asks) for item in paper.items]
    studies = [{"name": c.study.name, "is_summary": c.study.is_summary} for c in cases]
    found = at(material.findings, "paper")
    context = {"paper": paper, "items": items, "studies": studies, "findings": found}
    yield Page(NAME, "paper.html", paper.title, "paper", context)


def _item(paper: Paper, item: Item, asks: Sequence[tuple[Case, Ask]]) -> dict[str, Any]:
    return {
        **vars(item),
        "id": item.id.replace(":", "-"),
        "label": item.id,
        "outcomes": [_outcomes(case, item) for case, _ in asks] if item.rules else [],
        "parts": [{**vars(part), "answers": _answers(paper, asks, item, part)} for part in item.parts],
    }


def _outcomes(case: Case, item: Item) -> dict[str, Any]:
    """Return what came of the rules that a table lists, and those that the study does not register."""
    held = [rule for rule in item.rules if rule in case.book.rules]
    decisions = [decision_view(d) for d in case.decide_all(held)] if held else []
    return {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "stands": standing_view(case),
        "decisions": [{**d, "page": rule_page(case.study.name, d["rule"])} for d in decisions],
        "lacks": [rule for rule in item.rules if rule not in held],
    }


def _answers(paper: Paper, asks: Sequence[tuple[Case, Ask]], item: Item, part: Part) -> list[dict[str, Any]]:
    """Return what every study answers, with drawings that stand side by side over the same range."""
    answers = [_answer(paper, case, ask, item, part) for case, ask in asks]
    if part.draw == "curves":
        curves = [_points(answer["rows"]) for answer in answers]
        rates = [point.success for points in curves for point in points]
        within = (min(rates), max(rates)) if rates else None
        for answer, points in zip(answers, curves, strict=True):
            what = _what(answer, item, part)
            answer["chart"] = learning_curves(points, what, "successes / episodes", within=within)
    elif part.draw == "ratios":
        for answer in answers:
            dots = tuple(Ratio(str(t), int(s), float(v), None, None) for t, s, v in answer["rows"])
            answer["chart"] = ratios(_what(answer, item, part), dots, NO_INTERVALS)
    return answers


def _what(answer: dict[str, Any], item: Item, part: Part) -> str:
    return f"{answer['study']}: {part.title or item.caption}"


def _answer(paper: Paper, case: Case, ask: Ask, item: Item, part: Part) -> dict[str, Any]:
    """Return what a study answers to a part's query, or why it cannot."""
    nothing: dict[str, Any] = {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "columns": (),
        "rows": (),
        "chart": None,
        "lacks": "",
    }
    absent = [name for name in part.needs if not case.study.has(name)]
    if absent:
        return {**nothing, "lacks": f"its registers have no table {', '.join(absent)}"}
    try:
        answer = ask(part.query)
    except UsageError as error:
        if case.study.name == paper.study:
            raise DamagedError(
                "a query of the paper's list is refused", found=error.found, where=f"{FILE}: {item.id}"
            ) from None
        return {**nothing, "lacks": "its registers lack columns that the paper's study has"}
    if not answer.rows:
        return {**nothing, "lacks": part.none}
    return {**nothing, "columns": answer.columns, "rows": answer.rows}


def _points(answered: Iterable[Sequence[Any]]) -> tuple[CurvePoint, ...]:
    """Return curves from rows of arm, seed, step, successes and episodes; an arm's mean follows its seeds."""
    rows = sorted(tuple(row) for row in answered)
    points = [CurvePoint(arm, f"seed {seed}", step, Fraction(k, n), k, n) for arm, seed, step, k, n in rows]
    seeds = {arm: {row[1] for row in rows if row[0] == arm} for arm in dict.fromkeys(row[0] for row in rows)}
    ordered = sorted(points, key=lambda p: (p.arm, p.step))
    for (arm, _), at_step in groupby(ordered, key=lambda p: (p.arm, p.step)):
        held = list(at_step)
        if len(held) == len(seeds[arm]):
            points.append(mean_point(held))
    return tuple(points)
