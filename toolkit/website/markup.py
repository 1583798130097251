"""A page read as a browser reads it: what it refers to, what can be referred to, what its policy forbids."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

REFERRING = (
    "href",
    "src",
    "srcset",
    "action",
    "formaction",
    "poster",
    "data",
    "cite",
    "xlink:href",
    "background",
)
VOID = ("meta", "link", "br", "img", "hr", "input", "source", "wbr", "col")
# Browsers take a block of another type for data, and never run it.
DATA_BLOCKS = ("application/json",)


@dataclass(frozen=True)
class Reference:
    """A reference out of a page.

    Args:
        tag: the element that makes it.
        attribute: where it stands.
        target: as written.
        is_download: whether the browser saves what it names, and shows nothing.
    """

    tag: str
    attribute: str
    target: str
    is_download: bool


@dataclass
class Markup:
    """What one page holds."""

    references: list[Reference] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def read_markup(text: str) -> Markup:
    """Read a page strictly: every element is closed by its own end."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    if reader.open:
        reader.markup.faults.append(f"<{reader.open[-1]}> is not closed")
    return reader.markup


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.markup = Markup()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.markup.tags.append(tag)
        self._refer(tag, named)
        self._forbid(tag, named)
        if identifier := named.get("id"):
            if identifier in self.markup.ids:
                self.markup.faults.append(f"the id {identifier!r} stands twice")
            self.markup.ids.add(identifier)
        if len(named) < len(attrs):  # a browser takes the first, and this reader the last
            self.markup.faults.append(f"an attribute stands twice on <{tag}>")
        if tag in ("script", "link") and not self.markup.policies:
            self.markup.faults.append(f"<{tag}> stands before the policy")
        if tag == "meta" and "http-equiv" in named:
            if named["http-equiv"].lower() == "content-security-policy":
                self.markup.policies.append(named.get("content", ""))
            else:
                self.markup.faults.append(f"a page has no <meta http-equiv={named['http-equiv']!r}>")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.open:
            self.markup.faults.append(f"</{tag}> closes nothing")
            return
        while (last := self.open.pop()) != tag:
            self.markup.faults.append(f"<{last}> is not closed before </{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.markup.text.append(data)

    def _refer(self, tag: str, named: dict[str, str]) -> None:
        for attribute in REFERRING:
            if attribute in named:
                self.markup.references.append(
                    Reference(tag, attribute, named[attribute], "download" in named)
                )

    def _forbid(self, tag: str, named: dict[str, str]) -> None:
        """Note what the policy would keep from working."""
        if tag == "style":
            self.markup.faults.append("a style stands in the text")
        if tag == "script" and "src" not in named and named.get("type") not in DATA_BLOCKS:
            self.markup.faults.append("a script stands in the text")
        if tag in ("base", "iframe", "object", "embed"):
            self.markup.faults.append(f"a page has no <{tag}>")
        self.markup.faults += [
            f"{name} on <{tag}>" for name in named if name == "style" or name.startswith("on")
        ]
