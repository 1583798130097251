"""Pages made by some makers alone, and pages read strictly."""

import html
import re
from collections.abc import Iterable
from contextlib import nullcontext
from html.parser import HTMLParser
from typing import Any
from unittest.mock import patch

from toolkit.site.charts.svg import Chart
from toolkit.site.environment import environment
from toolkit.site.material import Material
from toolkit.site.page import POLICY, Page

CELLS = {"li", "dt", "dd", "p"}
UNENDED = {"td", "th", "tr"}  # a build leaves their ends out, as HTML allows
VOID = {"meta", "link", "br", "img", "hr", "input"}
# As the issue asks: nothing from anywhere but the site, and no code or style in a page's text.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
SHARED: dict[str, Any] = {
    "version": "0",
    "policy": POLICY,
    "menu": (),
    "explained": {},
    "site_title": "A site",
    "description": "",
    "links": {},
    "datasets": {},
    "citation": None,
}
PACKAGES = ("toolkit.site.exhibits",)


class Read(HTMLParser):
    """A page: tags balance, ids are unique, no style or handler is inline; everything else is collected."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.parts: list[str] = []
        self.scripts: list[tuple[str | None, str | None]] = []
        self.policies: list[str | None] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append(tag)
        self.links += [value for key in ("href", "src") if (value := named.get(key))]
        assert tag != "style"
        assert not any(key.startswith("on") or key == "style" for key in named)
        if tag == "script":
            self.scripts.append((named.get("src"), named.get("type")))
        if tag == "meta" and named.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(named["content"])
        if identifier := named.get("id"):
            assert identifier not in self.ids
            self.ids.add(identifier)
        if tag in UNENDED:
            self.parts.append(" ")
        elif tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in UNENDED or self._open.pop() == tag
        if tag in CELLS | UNENDED:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
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


def page_of(material: Material, name: str, *makers: Any) -> Read:
    """Return one of the pages that these makers give."""
    page = next(page for maker in makers for page in maker.pages(material) if page.name == name)
    return Read(rendered(page))


def words(text: str) -> str:
    """Return what a reader sees of a page, every element apart from the next."""
    bare = re.sub(r"<script.*?</script>|<svg.*?</svg>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())
