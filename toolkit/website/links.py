"""Whether every reference of the site leads somewhere in the site, and every page keeps its own policy."""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import unquote, urlsplit

from toolkit.website.markup import Markup, Reference, read_markup
from toolkit.website.page import POLICY


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong.

    Args:
        file: where, below the site's folder.
        kind: of what kind, in words.
        what: what was found there.
    """

    file: str
    kind: str
    what: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.file}: {self.kind}: {self.what}"

    def as_dict(self) -> dict[str, str]:
        """Return the finding as `--json` prints it."""
        return asdict(self)


# What a page carries in itself is no reference off the site: an icon, a picture, a file to be saved.
_CARRIED = {("link", "href"), ("img", "src"), ("image", "href"), ("image", "xlink:href")}
_CSS_REFERENCE = re.compile(r"@import\s+['\"]?([^'\";]+)|url\(\s*['\"]?([^'\")]+)")


def check_links(files: Mapping[str, bytes], others: Collection[str] = ()) -> Iterator[Finding]:
    """Yield what is wrong with the references of a site's pages and style sheets.

    Args:
        files: what is checked, by name.
        others: names of further files that may be referred to.
    """
    pages = {name: read_markup(_text(content)) for name, content in files.items() if name.endswith(".html")}
    there = {*files, *others}
    for name, page in pages.items():
        yield from (Finding(name, "markup", fault) for fault in dict.fromkeys(page.faults))
        if page.policies != [POLICY]:
            yield Finding(name, "policy", "the page does not carry the site's Content-Security-Policy, once")
        for reference in dict.fromkeys(page.references):
            if problem := _problem(name, reference, pages, there):
                yield Finding(name, *problem)
    for name, content in files.items():
        if name.endswith(".css"):
            for groups in _CSS_REFERENCE.findall(_text(content)):
                target = "".join(groups)
                if not target.startswith("data:") and _resolved(name, target) not in there:
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
    # A fragment with an equals sign is a question to a page's script, such as #study=…&sql=….
    is_id = fragment and "=" not in fragment
    if is_id and file in pages and unquote(fragment) not in pages[file].ids:
        return "no such id", target
    return None


def _is_outside(target: str) -> bool:
    """Whether a browser would look for a target elsewhere than below the site's own folder."""
    try:
        return bool(urlsplit(target).scheme) or target.startswith(
            ("/", "\\")
        )  # browsers take one for the other
    except ValueError:
        return True


def _resolved(name: str, target: str) -> str:
    path = unquote(target.partition("?")[0].partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
