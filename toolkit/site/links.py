"""Whether references lead into the site or to declared addresses, and pages keep their policy."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolkit.site.page import POLICY

if TYPE_CHECKING:
    from toolkit.documents.site import FindingDocument


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong."""

    file: str  # where, below the site's folder
    kind: str  # of what kind, in words
    what: str  # what was found there

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.file}: {self.kind}: {self.what}"

    def as_dict(self) -> FindingDocument:
        """Return the finding as `--json` prints it."""
        return {"file": self.file, "kind": self.kind, "what": self.what}


REFERRING = (
    *("href", "src", "srcset", "action", "formaction", "poster", "data", "cite", "background"),
    "xlink:href",
)
# Elements without an end, and those whose ends a build leaves out, as HTML allows.
VOID = ("meta", "link", "br", "img", "hr", "input", "source", "wbr", "col", "td", "th", "tr")
# Browsers take a block of another type for data, and never run it.
DATA_BLOCKS = ("application/json",)
POLICY_NAME = "content-security-policy"


@dataclass(frozen=True)
class Reference:
    """A reference out of a page: the element and attribute that make it, and what it names, as written."""

    tag: str
    attribute: str
    target: str
    is_download: bool
    """Whether the browser saves what it names, and shows nothing."""
    relation: tuple[str, ...]
    """How the page stands to it, in HTML's words."""


class Markup(HTMLParser):
    """What one page holds, read strictly: every element is closed by its own end.

    Args:
        text: of the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.references: list[Reference] = []
        self.ids: set[str] = set()
        self.faults: list[str] = []
        self.policies: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open[-1:]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to, and what the policy would keep from working."""
        named = {name: value or "" for name, value in attrs}
        relation = tuple(named.get("rel", "").split())
        self.references += [
            Reference(tag, name, named[name], "download" in named, relation)
            for name in REFERRING
            if name in named
        ]
        self.faults += self._faults(tag, named)
        if len(named) < len(attrs):  # a browser takes the first, and this reader the last
            self.faults.append(f"an attribute stands twice on <{tag}>")
        if identifier := named.get("id"):
            self.ids.add(identifier)
        if tag == "meta" and named.get("http-equiv", "").lower() == POLICY_NAME:
            self.policies.append(named.get("content", ""))
        if tag not in VOID:
            self._open.append(tag)

    def _faults(self, tag: str, named: Mapping[str, str]) -> Iterator[str]:
        if named.get("id") in self.ids:
            yield f"the id {named['id']!r} stands twice"
        if tag in ("script", "link") and not self.policies:
            yield f"<{tag}> stands before the policy"
        if tag == "meta" and named.get("http-equiv", POLICY_NAME).lower() != POLICY_NAME:
            yield f"a page has no <meta http-equiv={named['http-equiv']!r}>"
        if tag == "style":
            yield "a style stands in the text"
        if tag == "script" and "src" not in named and named.get("type") not in DATA_BLOCKS:
            yield "a script stands in the text"
        if tag in ("base", "iframe", "object", "embed"):
            yield f"a page has no <{tag}>"
        yield from (f"{name} on <{tag}>" for name in named if name == "style" or name.startswith("on"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that ends where it starts."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Note what an end leaves open."""
        if tag not in self._open:
            self.faults.append(f"</{tag}> closes nothing")
            return
        while (last := self._open.pop()) != tag:
            self.faults.append(f"<{last}> is not closed before </{tag}>")


# What a page carries in itself is no reference off the site: an icon, a picture, a file to be saved.
_CARRIED = {("link", "href"), ("img", "src"), ("image", "href"), ("image", "xlink:href")}
# A link that leaves the site says so: readers see a mark, and what is opened gets no hold of the page.
_LEAVING = {"external", "noopener"}
# One reading alone: no user, port, query, fragment or escape, and no segment that leads upwards.
_ADDRESS = re.compile(r"https://[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/(?!\.\.?(?:/|\Z))[\w.~@-]+)*/?", re.ASCII)
_CSS_REFERENCE = re.compile(r"@import\s+['\"]?([^'\";]+)|url\(\s*['\"]?([^'\")]+)")


def is_address(text: str) -> bool:
    """Whether a text is an https address that everybody reads alike."""
    return bool(_ADDRESS.fullmatch(text))


def _is_below(target: str, addresses: Iterable[str]) -> bool:
    """Whether a target is one of some addresses, or lies below one of them."""
    return is_address(target) and any(f"{target}/".startswith(f"{a.rstrip('/')}/") for a in addresses)


def check_links(files: Mapping[str, bytes], addresses: Collection[str] = ()) -> Iterator[Finding]:
    """Yield what is wrong with the references of a site's pages and style sheets."""
    pages = {name: Markup(_text(content)) for name, content in files.items() if name.endswith(".html")}
    for name, page in pages.items():
        yield from (Finding(name, "markup", fault) for fault in dict.fromkeys(page.faults))
        if page.policies != [POLICY]:
            yield Finding(name, "policy", "the page does not carry the site's Content-Security-Policy, once")
        for reference in dict.fromkeys(page.references):
            leaves = reference.tag == "a" and _LEAVING.issubset(reference.relation)
            if leaves and reference.attribute == "href" and _is_below(reference.target, addresses):
                continue
            if problem := _problem(name, reference, pages, files):
                yield Finding(name, *problem)
    for name, content in files.items():
        if name.endswith(".css"):
            for groups in _CSS_REFERENCE.findall(_text(content)):
                target = "".join(groups)
                if not target.startswith("data:") and _resolved(name, target) not in files:
                    yield Finding(name, "broken link", target)


def _problem(
    name: str, reference: Reference, pages: Mapping[str, Markup], there: Collection[str]
) -> tuple[str, str] | None:
    """Return the kind of what is wrong with a reference, and what; None where nothing is."""
    target = reference.target
    if target.startswith("data:"):
        carried = (reference.tag, reference.attribute) in _CARRIED or reference.is_download
        return None if carried else ("off the site", target[:80])
    if _is_outside(target):
        return "off the site", target
    path, _, fragment = target.partition("#")
    if reference.attribute == "srcset" or (not path and not fragment):
        return "broken link", f"{reference.attribute}={target!r}"
    file = _resolved(name, path) if path else name
    if file not in there:
        return "broken link", target
    # A fragment with an equals sign is a question to a page's script, such as #phase=…&task=….
    is_id = fragment and "=" not in fragment
    if is_id and file in pages and unquote(fragment) not in pages[file].ids:
        return "no such id", target
    return None


def _is_outside(target: str) -> bool:
    """Whether a browser would look for a target elsewhere than below the site's own folder."""
    try:
        has_scheme = bool(urlsplit(target).scheme)
    except ValueError:
        return True
    return has_scheme or target.startswith(("/", "\\"))  # browsers take one for the other


def _resolved(name: str, target: str) -> str:
    path = unquote(target.partition("?")[0].partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
