"""Building the site: the same registers, registrations and version give the same bytes."""

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.files import read_bytes, read_text, write_all, write_bytes, write_text
from toolkit.places import Home
from toolkit.site.checking import MARK
from toolkit.site.drawings import estimates, pictures
from toolkit.site.front import CITATION
from toolkit.site.material import Material
from toolkit.site.registers import frozen_file_content, played_files, register_files
from toolkit.site.render import render

PACKAGES = ("jinja2", "markdown_it")
STYLE = "style.css"


@dataclass(frozen=True)
class Built:
    """What a build wrote: all files, and those whose bytes changed."""

    folder: Path
    files: tuple[str, ...]
    changed: tuple[str, ...]


def site_content(material: Material, progress: Callable[[str], None]) -> dict[str, bytes]:
    """Return every file of the site by name."""
    lack = lacking_packages()
    if lack:
        raise lack
    pages = {name: text.encode() for name, text in render(material, progress).items()}
    cited = {CITATION: material.citation.text.encode()} if material.citation else {}
    content = {
        **pages,
        **register_files(material),
        **played_files(material),
        **frozen_file_content(material),
        **_pictures(material),
        **cited,
        **_assets(material),
    }
    material.wait()
    # The mark lists what a build wrote, so that the next one removes nothing else.
    return {MARK: "".join(f"{name}\n" for name in sorted(content)).encode(), **content}


def lacking_packages() -> IncompleteError | None:
    """Return that the `site` extra is not installed, or nothing."""
    absent = [name for name in PACKAGES if find_spec(name) is None]
    if not absent:
        return None
    return IncompleteError(
        "the site needs packages that are not installed",
        expected=", ".join(PACKAGES),
        found=f"without {', '.join(absent)}",
        remedy="pip install 'paired-rollouts-toolkit[site]'",
    )


def _pictures(material: Material) -> dict[str, bytes]:
    """Return every study's estimates and its registered pictures as files, for other pages to show."""
    return {
        f"{case.study.name}/{name}.svg": chart.alone.encode()
        for case in material.cases
        for name, chart in {"estimates": estimates(case), **pictures(case)}.items()
        if chart is not None
    }


def _assets(material: Material) -> dict[str, bytes]:
    """Return the browser's scripts by name, and one style sheet: the site's, of charts and of exhibits."""
    found: dict[str, bytes] = {}
    for package in ("toolkit.site", *material.packages):
        entries = files(package).joinpath("assets").iterdir()
        for entry in sorted(entries, key=lambda entry: (entry.name != STYLE, entry.name)):
            if entry.is_file():
                name = STYLE if entry.name.endswith(".css") else entry.name
                found[name] = found.get(name, b"") + entry.read_bytes()
    return found


def check_place(folder: Path) -> None:
    """Check that a site may be written to a folder: nothing else than a site is there."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise IncompleteError("the site needs a folder", found=f"{nearest} is a file", where=folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise IncompleteError(
            "the folder holds something else than a generated site",
            where=folder,
            remedy="give an empty folder, or one that `toolkit site build` made",
        )


def check_outside(target: Path, folder: Path) -> None:
    """Check that a file lies outside a site's folder, where it could take the place of a page."""
    if target.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            "a zip of the site cannot lie in the site",
            found=str(target),
            where=folder,
            remedy="give a file in another folder",
        )


def claim(folder: Path) -> None:
    """Mark a folder as a site's before anything is in it."""
    check_place(folder)
    if not (folder / MARK).is_file():
        write_all(folder, {MARK: b""})


def write_site(folder: Path, content: dict[str, bytes]) -> Built:
    """Write the site, and remove what an earlier build wrote and this one does not."""
    claim(folder)  # a build that is cut off has to be able to go on in its own folder
    before = read_text(folder / MARK).splitlines()
    changed = {n: c for n, c in content.items() if not (folder / n).is_file() or read_bytes(folder / n) != c}
    write_all(folder, changed)
    for name in set(before) - set(content):
        stale = folder / name
        if ".." not in Path(name).parts and not Path(name).is_absolute() and stale.is_file():
            stale.unlink()
    return Built(folder, tuple(sorted(content)), tuple(sorted(changed)))


FOLDER = "site"
# The earliest that the format can say, and the rights of a file that everybody may read.
EARLIEST = (1980, 1, 1, 0, 0, 0)
READABLE = 0o100644 << 16
UNIX = 3


def archive(content: Mapping[str, bytes]) -> bytes:
    """Return a zip of the site's files, below one folder; no times or rights of files enter."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as whole:
        for name in sorted(content):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", EARLIEST)
            entry.create_system, entry.external_attr = UNIX, READABLE
            whole.writestr(entry, content[name], zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def write_zip(target: Path, folder: Path, names: Sequence[str]) -> str:
    """Write the site as one file, and return that file's SHA-256."""
    packed = archive({name: read_bytes(folder / name) for name in names})
    write_bytes(target, packed)
    return hashlib.sha256(packed).hexdigest()


# It says where a site was built, not what it is: no zip holds it, and nobody publishes it.
RECORD = ".toolkit-built"
# Of the package's folder, what is not its source.
NO_SOURCE = ("__pycache__", "node_modules")


def inputs_of(home: Home) -> str:
    """Return the SHA-256 of all that a site is made of: files, Python and every installed package."""
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
