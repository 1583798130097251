"""Pages made by one maker alone, and read strictly."""

from html.parser import HTMLParser
from typing import Any

import pytest

from toolkit.website import render as rendering
from toolkit.website.material import Material

CELLS = {"td", "th", "li", "dt", "dd", "p"}
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Read(HTMLParser):
    """A page: tags balance, ids are unique, no handler is inline; links and text are collected."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.parts: list[str] = []
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
        # Inside a drawing, styles are those of the one that draws; the site's build takes them out.
        assert not any(key.startswith("on") or (key == "style" and "svg" not in self._open) for key in named)
        if identifier := named.get("id"):
            assert identifier not in self.ids
            self.ids.add(identifier)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in CELLS:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if "script" not in self._open:
            self.parts.append(data)


def pages_of(monkeypatch: pytest.MonkeyPatch, material: Material, *makers: Any) -> dict[str, str]:
    """Return the text of every page that these makers give, by name."""
    monkeypatch.setattr(rendering, "MAKERS", makers)
    return rendering.render(material, lambda _: None)
