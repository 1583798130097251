"""Whether a build would write the site that is there: from the same inputs, the bytes of the last build."""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from importlib.resources import files
from pathlib import Path

from toolkit.errors import ToolkitError
from toolkit.files import read_text, write_text
from toolkit.places import Home
from toolkit.site.build import MARK, Built
from toolkit.site.citation import FILE as CITATION

# It says where a site was built, not what it is: no zip holds it, and nobody publishes it.
RECORD = ".toolkit-built"
# Of the package's folder, what is not its source.
NO_SOURCE = ("__pycache__", "node_modules")


def inputs_of(home: Home) -> str:
    """Return the SHA-256 of all that a site is made of.

    These are the bytes of registers, registrations, cards, the citation and this package, and the versions of
    Python and of every installed package.
    """
    whole = hashlib.sha256()
    source = Path(str(files("toolkit")))
    for root in (home.registers, home.registrations, home.cards, source):
        whole.update(_digest(root, _files_below(root)))
    whole.update(_digest(home.root, (CITATION,)))
    installed = sorted(f"{each.name} {each.version}" for each in distributions())
    whole.update("\n".join((sys.version, *installed)).encode())
    return whole.hexdigest()


def _files_below(root: Path) -> list[str]:
    names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if not set(NO_SOURCE) & set(name.parts))


def _digest(root: Path, names: Iterable[str]) -> bytes:
    """Return a digest of files: their names and bytes; one that is gone differs from an empty one."""
    whole = hashlib.sha256()
    for name in names:
        path = root / name
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "gone"
        whole.update(f"{content} {name}\n".encode())
    return whole.digest()


def built_before(folder: Path, inputs: str) -> Built | None:
    """Return the site in a folder, if it was built from these inputs and is as it was written."""
    try:
        names = read_text(folder / MARK).splitlines()
        recorded = json.loads(read_text(folder / RECORD))
    except (ToolkitError, ValueError):
        return None
    if recorded != _record(folder, inputs, names):
        return None
    return Built(folder, tuple(sorted((MARK, *names))), ())


def record(folder: Path, inputs: str, names: Sequence[str]) -> None:
    """Note from what a site was built, and what its files were then."""
    write_text(folder / RECORD, json.dumps(_record(folder, inputs, [n for n in names if n != MARK])) + "\n")


def _record(folder: Path, inputs: str, names: Sequence[str]) -> dict[str, str]:
    return {"inputs": inputs, "outputs": _digest(folder, sorted((MARK, *names))).hex()}
