"""Pages made by some makers alone, and pages read strictly: as a tree, its tables by their headings."""

import html
import re
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest.mock import patch
from xml.etree.ElementTree import Element, TreeBuilder

import pytest

from toolkit.decisions.case import Case
from toolkit.site.charts.svg import Chart
from toolkit.site.checking import Markup
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.page import POLICY, Page, rule_page, run_page
from toolkit.site.pages import data, home, luck, probe, registration, rule, run, study

UNENDED = {"td", "th", "tr"}  # a build leaves their ends out, as HTML allows
VOID = {"meta", "link", "br", "img", "hr", "input"}
# As the issue asks: nothing from anywhere but the site, and no code or style in a page's text.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
NAMED = ("version", "site_title", "description")
SHARED: dict[str, Any] = {**dict.fromkeys(NAMED, "A site"), "policy": POLICY, "menu": (), "citation": None}
SHARED |= {name: {} for name in ("explained", "links", "datasets")}
PACKAGES = ("toolkit.site.exhibits",)
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
BY_FILE = {"probe.html": probe, "luck.html": luck, "data.html": data}


class Read(Markup):
    """A page without a fault, its text, and its tree."""

    def __init__(self, text: str) -> None:
        self.tags: list[str] = []
        self.parts: list[str] = []
        self.tree = TreeBuilder()
        super().__init__(text)
        assert self.faults == []
        self.links = [r.target for r in self.references if r.attribute in ("href", "src")]

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        self.tree.start(tag, {key: value or "" for key, value in attrs})
        self.tags.append(tag)
        if tag in VOID:
            self.tree.end(tag)
        elif tag in UNENDED:
            self.parts.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in UNENDED:
            super().handle_endtag(tag)
        self.tree.end(tag)
        if tag in UNENDED | {"li", "dt", "dd", "p"}:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        self.tree.data(data)
        if "script" not in self._open:
            self.parts.append(data)


def rendered(page: Page, names: Iterable[str] = (), *, drawn: bool = False) -> str:
    """Return a page's text, as if the site had these pages beside it; its charts without their drawings."""
    template = environment(PACKAGES).get_template(page.template)
    shown = {**SHARED, **page.context, "page": page, "root": page.root, "names": {page.name, *names}}
    with nullcontext() if drawn else patch.object(Chart, "svg", "<svg></svg>"):
        return template.render(**shown)


def made_by(material: Material, *makers: Any) -> dict[str, Page]:
    """Return every page that these makers give, by name."""
    return {page.name: page for maker in makers for page in maker.pages(material)}


def pages_of(material: Material, *makers: Any) -> dict[str, str]:
    """Return the text of every page that these makers give, by name."""
    pages = made_by(material, *makers)
    return {name: rendered(page, pages) for name, page in pages.items()}


def one(material: Material, name: str) -> tuple[Page, set[str]]:
    """Return a page by its name, which says who makes it, and the names that it links to.

    A rule's is made by itself, and without charts.
    """
    folder, _, file = name.rpartition("/")
    maker = {"registrations": registration, "": home}.get(folder) or BY_FILE.get(file, rule)
    maker = run if folder.endswith("/runs") else study if file == "index.html" and folder else maker
    names = {rule_page(case.study.name, of) for case in material.cases for of in case.book.rules}
    names |= {run_page(c.study.name, row["run_id"]) for c in material.cases for row in c.study.rows("runs")}
    with patch.object(rule, "rule_charts", lambda *_: ()), ExitStack() as alone:
        if maker is rule:
            decided = lambda case: [case.decide(file.removesuffix(".html"))]  # noqa: E731
            alone.enter_context(patch.object(Case, "decide_all", decided))
        return next(page for page in maker.pages(material) if page.name == name), names


def page_of(material: Material, name: str) -> Read:
    """Return a page by its name."""
    return Read(rendered(*one(material, name)))


def words(text: str) -> str:
    """Return what a reader sees of a page, every element apart from the next."""
    bare = re.sub(r"<script.*?</script>|<svg.*?</svg>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def tree(page: Page, names: Iterable[str] = (), *, drawn: bool = False) -> Element:
    """Return a page's main part, as if the site had these pages beside it; without drawings, or with them."""
    (main,) = Read(rendered(page, names, drawn=drawn)).tree.close().iter("main")
    return main


def text(element: Element | None) -> str:
    """Return what stands in an element, with a hyphen for every minus."""
    assert element is not None
    return " ".join("".join(element.itertext()).split()).replace("\N{MINUS SIGN}", "-")


def numbers(said: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(said)]


def near(number: float, digits: int) -> Any:
    return pytest.approx(number, abs=0.51 * 10**-digits, rel=0)


def classed(element: Element, name: str) -> list[Element]:
    return [part for part in element.iter() if name in part.get("class", "").split()]


def section(page: Element, identifier: str) -> Element:
    """Return the section that a heading names."""
    (part,) = (part for part in page.iter("section") if part.get("aria-labelledby") == identifier)
    return part


def table(page: Element, label: str) -> list[dict[str, Element]]:
    """Return the rows of all tables so labelled, a cell under each heading; groups' headings left out."""
    regions = [part for part in page.iter("div") if part.get("aria-label") == label]
    assert regions, label
    rows = []
    for region in regions:
        headings = [text(cell) for cell in region.findall("table/thead/tr/th")]
        cells = (list(row) for row in region.findall("table/tbody/tr") if len(row) == len(headings))
        rows += [dict(zip(headings, row, strict=True)) for row in cells]
    return rows
