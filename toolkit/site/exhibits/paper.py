"""The page of a paper: its tables and figures, for every study side by side, from the registers.

`cards/paper.toml` lists them: captions, and the queries that give their numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolkit.decisions.case import Case
from toolkit.decisions.measure import CurvePoint, mean_point
from toolkit.errors import DamagedError, UsageError
from toolkit.findings import at
from toolkit.registers.query import Answer, asking
from toolkit.site.charts.curves import learning_curves
from toolkit.site.charts.estimates import ratios
from toolkit.site.charts.plots import Dot
from toolkit.site.drawings import standing_view
from toolkit.site.material import Exhibit, Material, read_toml
from toolkit.site.page import Entry, Page
from toolkit.structs import Document, as_builtins

Ask = Callable[[str], Answer]

NAME = "paper.html"
NO_INTERVALS = "no intervals, as in the paper; the page of the probe has those that can be had"
FILE = "paper.toml"
NO_ROWS = "the study has no such rows"
Named = Annotated[tuple[str, ...], Meta(min_length=1)]


class Part(Document, frozen=True, kw_only=True):
    """A table within a table or figure of the paper."""

    title: str = ""  # what it holds; empty where it is all that there is
    needs: Named  # tables of registers that the query reads
    query: str  # a SELECT over a study's registers
    shared: tuple[str, ...] = msgspec.field(default=(), name="with")  # parts of queries that it begins with
    draw: Literal["", "curves", "ratios"] = ""  # how its answer is drawn; else it is shown as a table alone
    none: str = NO_ROWS  # why a study has no such rows, where its registers have the tables


class Item(Document, frozen=True, kw_only=True):
    """A table or figure of the paper."""

    id: str  # its label in the paper
    title: str  # what it is, in few words
    kind: Literal["table", "figure"]
    caption: str  # what it shows
    agrees: str = ""  # how far the registers give what is printed there, as far as tests hold it
    parts: tuple[Part, ...] = msgspec.field(default=(), name="part")  # queries that give its numbers
    rules: tuple[str, ...] = ()  # rules whose outcome it states, where it states outcomes
    lacks: str = ""  # what cannot be had for any study, and why


class Paper(Document, frozen=True, kw_only=True):
    """A paper."""

    title: str
    about: str  # which study is its own, and what the others are beside it
    study: str  # the name of the study that it reports
    items: tuple[Item, ...] = msgspec.field(name="item")  # its tables and figures, in order
    beside: tuple[str, ...] = ()  # studies of the same protocol, at the same steps; all where none is named
    shared: dict[str, str] = msgspec.field(default_factory=dict, name="with")  # parts of queries, by name

    def __post_init__(self) -> None:
        if len({item.id for item in self.items}) < len(self.items):
            raise ValueError("a table or figure is named twice")
        named = {name for item in self.items for part in item.parts for name in part.shared}
        if lacking := named - self.shared.keys():
            raise ValueError(f"no part of a query is called {', '.join(sorted(lacking))}")

    def reads(self, study: str) -> bool:
        """Whether its queries mean what they say in a study."""
        return not self.beside or study in (self.study, *self.beside)

    def query(self, part: Part) -> str:
        """Return a part's query with what it shares with others."""
        shared = ", ".join(self.shared[name].strip() for name in part.shared)
        return f"WITH {shared} {part.query.strip()}" if shared else part.query.strip()


def read_paper(cards: Path) -> Paper | None:
    """Read what a project says of its paper; None where it has none."""
    return read_toml(Paper, cards / FILE, "the list of the paper's tables and figures cannot be read")


def pages(material: Material) -> Iterator[Page]:
    """Yield the page of the paper; none where the project has no paper, or no study."""
    paper = read_paper(material.cards) if material.cards else None
    if paper and material.cases:
        yield page(material, paper)


def page(material: Material, paper: Paper) -> Page:
    """Return the page of a paper."""
    cases = sorted(
        (case for case in material.cases if paper.reads(case.study.name)),
        key=lambda case: case.study.name != paper.study,  # its own study first
    )
    with ExitStack() as opened:
        asks = [(case, opened.enter_context(asking(case.study))) for case in cases]
        items = [_shown(paper, item, asks) for item in paper.items]
    studies = [{"name": c.study.name, "is_summary": c.study.is_summary} for c in cases]
    found = at(material.findings, "paper")
    context = {"paper": paper, "items": items, "studies": studies, "findings": found}
    return Page(NAME, "paper.html", paper.title, "paper", context)


EXHIBIT = Exhibit("toolkit.site.exhibits", pages, Entry("paper", "Paper", NAME))


def _shown(paper: Paper, item: Item, asks: Sequence[tuple[Case, Ask]]) -> dict[str, Any]:
    return {
        **as_builtins(item),
        "id": item.id.replace(":", "-"),
        "label": item.id,
        "outcomes": [_outcomes(case, item) for case, _ in asks] if item.rules else [],
        "parts": [
            {
                "title": part.title,
                "query": paper.query(part),
                "answers": _answers(paper, asks, item, part),
            }
            for part in item.parts
        ],
    }


def _outcomes(case: Case, item: Item) -> dict[str, Any]:
    held = [rule for rule in item.rules if rule in case.book.rules]
    return {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "stands": standing_view(case),
        "decisions": case.decide_all(held) if held else (),
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
            dots = tuple(Dot((str(t), int(s)), float(v)) for t, s, v in answer["rows"])
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
        answer = ask(paper.query(part))
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
