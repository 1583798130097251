"""How much a reader may have to wait for, and what the site asks them to."""

import gzip
import re
from collections.abc import Collection, Iterator, Mapping

from toolkit.website.finding import Finding
from toolkit.website.markup import read_markup

HOME = "index.html"
# Bytes, as a server sends them: gzipped.
HOME_WITHOUT_SCRIPTS = 150_000
HOME_WITH_SCRIPTS = 500_000
# Bytes as they are: what a phone has to hold and lay out.
LARGEST_PAGE = 1_500_000


def check_budgets(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield what is over its budget.

    Args:
        files: every file of the site by name.
    """
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
    """Return the bytes, gzipped, that reading a page at the root of the site takes.

    Args:
        files: every file of the site by name.
        page: its name.
        scripts: whether scripts count: those that the page names, and those that they load in turn.
    """
    named = {
        r.target
        for r in read_markup(files[page].decode("utf-8", "replace")).references
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
