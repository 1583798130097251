"""Checking a site: against its registers, against what was frozen, and as something that people load."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from toolkit.errors import IncompleteError
from toolkit.files import read_bytes
from toolkit.website.budgets import check_budgets
from toolkit.website.build import MARK
from toolkit.website.finding import Finding
from toolkit.website.frozen import Version, check_frozen
from toolkit.website.links import check_links

# What browsers would show or run; other files that lie there are their owner's.
SHOWN = (".html", ".js", ".css")


def check_site(folder: Path, content: Mapping[str, bytes], versions: Sequence[Version]) -> list[Finding]:
    """Return everything that is wrong with a site; nothing is where it is as built and frozen.

    Args:
        folder: of the site.
        content: what a build would write.
        versions: the frozen versions in the folder.

    Raises:
        IncompleteError: no site is there.
    """
    check_is_site(folder)
    # 1. The current pages are, byte for byte, what the registers give.
    present = {name: read_bytes(folder / name) for name in content if (folder / name).is_file()}
    findings = [
        Finding(name, "differs", "the registers give other bytes")
        if name in present
        else Finding(name, "absent", "the registers give it")
        for name in sorted(content)
        if present.get(name) != content[name]
    ]
    # 2. Nothing stands among them that a reader would take for one of them.
    frozen = {f"{version.name}/{name}" for version in versions for name in version.files}
    findings += _unexpected(folder, {*content, *frozen}, {version.name for version in versions})
    # 3. What was frozen is as it was. Its links lead to pages that stay, or leave a word behind.
    findings += [finding for version in versions for finding in check_frozen(folder, version)]
    # 4. Every reference leads somewhere, and none off the site.
    findings += check_links(present, {*frozen, *(f"{v.name}/{v.list_name}" for v in versions)})
    # 5. Nobody waits longer than promised.
    findings += check_budgets(present)
    return findings


def check_is_site(folder: Path) -> None:
    """Check that a folder holds a site.

    Raises:
        IncompleteError: it does not.
    """
    if not (folder / MARK).is_file():
        raise IncompleteError(
            "no site is here", expected=MARK, where=folder, remedy="toolkit site build --out FOLDER"
        )


def _unexpected(folder: Path, names: set[str], versions: set[str]) -> Iterator[Finding]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.partition("/")[0] not in versions and path.suffix in SHOWN and name not in names:
            yield Finding(name, "unexpected", "the registers do not give it")
