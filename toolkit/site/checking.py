"""Checking a site: against its registers, and as something that people load."""

import gzip
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from toolkit.errors import IncompleteError
from toolkit.files import read_bytes
from toolkit.site.page import POLICY
from toolkit.structs import Document, about

# A folder that the builder made carries this file; it deletes stale pages nowhere else.
MARK = ".toolkit-site"
# What browsers would show or run; other files that lie there are their owner's.
PAGE_FILES = (".html", ".js", ".css")


class Finding(Document, frozen=True):
    """One thing that is wrong with the site."""

    file: Annotated[str, about("Below the site's folder.")]
    kind: Annotated[str, about("As `differs`, `absent`, `unexpected`, `broken link`, `over budget`.")]
    what: Annotated[str, about("What was found there.")]

    def __str__(self) -> str:
        return f"{self.file}: {self.kind}: {self.what}"


def check_site(folder: Path, content: Mapping[str, bytes], addresses: Collection[str] = ()) -> list[Finding]:
    """Return everything that is wrong with a site; nothing is where it is as built."""
    check_is_site(folder)
    # 1. The pages are, byte for byte, what the registers give.
    present = {name: read_bytes(folder / name) for name in content if (folder / name).is_file()}
    findings = [
        Finding(name, "differs", "the registers give other bytes")
        if name in present
        else Finding(name, "absent", "the registers give it")
        for name in sorted(content)
        if present.get(name) != content[name]
    ]
    # 2. Nothing stands among them that a reader would take for one of them.
    findings += _unexpected(folder, content)
    # 3. Every reference leads somewhere, and none off the site but links to declared addresses.
    findings += check_links(present, addresses)
    # 4. Nobody waits longer than promised.
    findings += check_budgets(present)
    return findings


def check_is_site(folder: Path) -> None:
    """Check that a folder holds a site."""
    if not (folder / MARK).is_file():
        raise IncompleteError(
            "no site is here", expected=MARK, where=folder, remedy="toolkit site build --out FOLDER"
        )


def _unexpected(folder: Path, names: Collection[str]) -> Iterator[Finding]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in PAGE_FILES and name not in names:
            yield Finding(name, "unexpected", "the registers do not give it")


HOME = "index.html"
# Bytes, as a server sends them: gzipped.
HOME_WITHOUT_SCRIPTS = 150_000
HOME_WITH_SCRIPTS = 500_000
# Bytes as they are: what a phone has to hold and lay out.
LARGEST_PAGE = 1_500_000


def check_budgets(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield what is over its budget."""
    if HOME in files:
        for scripts, budget in ((False, HOME_WITHOUT_SCRIPTS), (True, HOME_WITH_SCRIPTS)):
            weight = sent(files, HOME, scripts=scripts)
            if weight >= budget:
                words = "with scripts" if scripts else "without scripts"
                yield Finding(HOME, "over budget", f"{weight:,} bytes gzipped {words}, under {budget:,}")
    for name, content in files.items():
        if name.endswith(".html") and len(content) >= LARGEST_PAGE:
            yield Finding(name, "over budget", f"{len(content):,} bytes, under {LARGEST_PAGE:,}")


def sent(files: Mapping[str, bytes], page: str, *, scripts: bool) -> int:
    """Return the bytes, gzipped, that reading a page at the root of the site takes."""
    named = {
        r.target
        for r in Markup(files[page].decode("utf-8", "replace")).references
        if r.tag in ("link", "script")
    }
    loaded = {name for name in named & set(files) if scripts or not name.endswith(".js")}
    if scripts:
        loaded |= _loaded_in_turn(files, {name for name in loaded if name.endswith(".js")})
    return sum(len(gzip.compress(files[name], 6, mtime=0)) for name in {page, *loaded})


def _loaded_in_turn(files: Mapping[str, bytes], scripts: Collection[str]) -> set[str]:
    """Return scripts with all that they name in quotes, as they do with what they load."""
    found, waiting = set(scripts), list(scripts)
    while waiting:
        text = files[waiting.pop()].decode("utf-8", "replace")
        new = {name for name in re.findall(r"[\"'`]([\w-]+\.js)[\"'`]", text) if name in files} - found
        found |= new
        waiting += new
    return found


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
    """What one page holds, read strictly: every element is closed by its own end."""

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
