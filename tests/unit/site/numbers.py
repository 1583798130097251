"""A page as a tree, its tables by their headings."""

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import pytest

from tests.unit.site.reading import VOID, rendered
from toolkit.site.page import Page

NONE = "\N{EN DASH}"
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
INTERVAL = re.compile(r"([\d.]+)% (?:interval )?\[(\S+), (\S+)\]")


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tree = TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {key: value or "" for key, value in attrs})
        if tag in VOID:
            self.tree.end(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {key: value or "" for key, value in attrs})
        self.tree.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tree.end(tag)

    def handle_data(self, data: str) -> None:
        self.tree.data(data)


def tree(page: Page, names: Iterable[str] = (), *, drawn: bool = False) -> Element:
    """Return a page's main part, as if the site had these pages beside it; without drawings, or with them."""
    builder = _Builder()
    builder.feed(rendered(page, names, drawn=drawn).partition("<!doctype html>")[2])
    (main,) = builder.tree.close().iter("main")
    return main


def text(element: Element | None) -> str:
    """Return what stands in an element, with a hyphen for every minus."""
    assert element is not None
    return " ".join("".join(element.itertext()).split()).replace("\N{MINUS SIGN}", "-")


def numbers(words: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(words)]


def intervals(words: str) -> list[tuple[float, float, float]]:
    """Return level, lower and upper end of every interval; the level as a fraction."""
    return [(float(level) / 100, float(low), float(high)) for level, low, high in INTERVAL.findall(words)]


def classed(element: Element, name: str) -> list[Element]:
    return [part for part in element.iter() if name in part.get("class", "").split()]


def section(page: Element, identifier: str) -> Element:
    """Return the section that a heading names."""
    (part,) = (part for part in page.iter("section") if part.get("aria-labelledby") == identifier)
    return part


def table(page: Element, label: str) -> list[dict[str, Element]]:
    """Return the rows of all tables so labelled, a cell under each heading; groups' headings left out."""
    rows = []
    regions = [part for part in page.iter("div") if part.get("aria-label") == label]
    assert regions, label
    for region in regions:
        headings = [text(cell) for cell in region.findall("table/thead/tr/th")]
        cells = (list(row) for row in region.findall("table/tbody/tr") if len(row) == len(headings))
        rows += [dict(zip(headings, row, strict=True)) for row in cells]
    return rows


def near(number: float, digits: int) -> Any:
    return pytest.approx(number, abs=0.51 * 10**-digits, rel=0)


def shows_estimate(words: str, document: dict[str, Any], digits: int = 4) -> None:
    """Hold the estimate that words begin with, and the interval that follows it, to a decision."""
    estimate, interval = document["estimate"], document["interval"]
    mean = estimate and estimate["mean"]
    assert numbers(words)[:1] == ([] if mean is None else [near(mean, digits)])
    expected = [] if interval is None else [tuple(interval[key] for key in ("level", "low", "high"))]
    assert [tuple(map(near, ends, (4, 4, 4))) for ends in expected] == intervals(words)


def check_outcomes(page: Element, label: str, decisions: Mapping[str, Any]) -> set[str]:
    """Hold a table of outcomes to the decisions by rule, and return the rules that it shows."""
    rows = table(page, label)
    for row in rows:
        document = decisions[text(row["Rule"]).split()[0]]
        assert text(row["Verdict"]).startswith(document["verdict"].replace("_", " "))
        named = [name for name in ("Estimate, interval", "Estimate", "Interval") if name in row]
        shows_estimate(" ".join(text(row[name]) for name in named), document)
    return {text(row["Rule"]).split()[0] for row in rows}
