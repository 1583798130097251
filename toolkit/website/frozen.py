"""Frozen versions: copies of the whole site in folders of their own, which no later build changes.

Each carries the list of its files with their hashes, in the form that `sha256sum --check` reads.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.files import file_sha256, read_bytes, replacing, write_all
from toolkit.prereg.hashlist import entries, write_list
from toolkit.website.links import Finding

LIST = "FROZEN.sha256"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True)
class Version:
    """A frozen version.

    Args:
        name: of its folder, right below the site's.
        files: SHA-256 by name below that folder, sorted.
        sha256: of the list itself, which stands for all of them.
    """

    name: str
    files: Mapping[str, str]
    sha256: str

    @property
    def list_name(self) -> str:
        """The name of its list, below its folder."""
        return LIST

    @property
    def pages(self) -> tuple[str, ...]:
        """The names of its pages."""
        return tuple(name for name in self.files if name.endswith(".html"))


def read_versions(site: Path) -> tuple[Version, ...]:
    """Return the frozen versions of a site, the newest name first.

    Raises:
        IncompleteError, DamagedError: a list cannot be read.
    """
    if not site.is_dir():
        return ()
    folders = [entry for entry in site.iterdir() if (entry / LIST).is_file() and _NAME.fullmatch(entry.name)]
    return tuple(_read(folder) for folder in sorted(folders, key=lambda f: _order(f.name), reverse=True))


def freeze(site: Path, name: str, content: Mapping[str, bytes], taken: Collection[str]) -> Version:
    """Write a frozen version, or find that the same one is there.

    Args:
        site: the folder of the site.
        name: of the version, and of its folder.
        content: its files by name.
        taken: names that the current site has below its root.

    Raises:
        UsageError: the name is none for a folder of its own.
        VerificationError: it is there, with other bytes, or is not as it was frozen.
        IncompleteError: something else is in its place, or the folder cannot be written.
    """
    check_name(name, taken)
    folder, hash_list = site / name, write_list(content)
    version = _version(folder, hash_list)
    if (folder / LIST).is_file():
        differing = sorted({file for file, _ in version.files.items() ^ _read(folder).files.items()})
        if differing:
            raise VerificationError(
                "a version of this name is frozen with other bytes",
                found=f"{len(differing)} files differ: {_first(differing, ', ')}",
                where=folder,
                remedy="give another name: --freeze NAME; what was frozen stays",
            )
        check_whole(site, version)
        return version
    if folder.exists():
        raise IncompleteError(
            "something else than a frozen version is in its place",
            expected=f"{LIST} in the folder",
            where=folder,
            remedy="give another name: --freeze NAME",
        )
    with replacing(folder) as new:
        write_all(new, {**content, LIST: hash_list})
    return version


def check_name(name: str, taken: Collection[str]) -> None:
    """Check that a name can be that of a frozen version's folder.

    Raises:
        UsageError: it cannot.
    """
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            "this is no name for a frozen version",
            expected="letters, digits, '.', '_', '+' and '-', a letter or digit first, such as v1.0.0",
            found=name,
        )
    if name.casefold() in {other.casefold() for other in taken}:
        raise UsageError("the site itself has a folder or file of this name", found=name)


def check_frozen(site: Path, version: Version) -> Iterator[Finding]:
    """Yield where a frozen version's files are not those that were frozen."""
    folder = site / version.name
    for name, digest in version.files.items():
        path = folder / name
        if not path.is_file():
            yield Finding(f"{version.name}/{name}", "absent", f"{LIST} lists it")
        elif file_sha256(path) != digest:
            yield Finding(f"{version.name}/{name}", "differs", f"it is not what {LIST} lists")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != LIST and name not in version.files:
            yield Finding(f"{version.name}/{name}", "unexpected", f"{LIST} does not list it")


def check_whole(site: Path, version: Version) -> None:
    """Check that a frozen version is as it was frozen, before anything rests on it.

    Raises:
        VerificationError: a file is absent, differs, or is not of it.
    """
    findings = list(check_frozen(site, version))
    if findings:
        raise VerificationError(
            "a frozen version is not as it was frozen",
            expected=f"what {LIST} lists",
            found=_first([f"{finding.file} {finding.kind}" for finding in findings], "; "),
            where=site / version.name,
            remedy="put its files back, from a zip or from version control, or remove the folder",
        )


def _first(named: Sequence[str], between: str) -> str:
    return between.join([*named[:5], *(["…"] if named[5:] else [])])


def _read(folder: Path) -> Version:
    return _version(folder, read_bytes(folder / LIST))


def _version(folder: Path, hash_list: bytes) -> Version:
    listed = entries(hash_list, folder / LIST)
    return Version(folder.name, listed, hashlib.sha256(hash_list).hexdigest())


def _order(name: str) -> list[tuple[int, int, str]]:
    """Return what sorts v1.10.0 after v1.9.0."""
    return [(1, int(p), "") if p.isdecimal() else (0, 0, p) for p in re.split(r"(\d+)", name)]
