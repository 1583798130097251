"""Checking a site: against its registers, and as something that people load."""

import gzip
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from toolkit.errors import IncompleteError
from toolkit.files import read_bytes
from toolkit.site.build import MARK
from toolkit.site.links import Finding, Markup, check_links

# What browsers would show or run; other files that lie there are their owner's.
PAGE_FILES = (".html", ".js", ".css")


def check_site(
    folder: Path,
    content: Mapping[str, bytes],
    addresses: Collection[str] = (),
) -> list[Finding]:
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
