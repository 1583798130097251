"""Files of a dataset repository that is no register: a log, fetched by commit into the Hub's cache."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import LARGEST_ROWS
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.cached import check_room, download, make_way
from toolkit.registers.hub.revision import SCHEME, Reference, parse_reference, resolve
from toolkit.registers.hub.stated import stated_files
from toolkit.registers.origin import Origin

LARGEST = LARGEST_ROWS
"""Bytes of a log's files."""


def parse_source(text: str) -> tuple[Reference, str]:
    """The repository that a source names, and the path or pattern within it, or nothing for all of it."""
    owner, _, rest = text.removeprefix(SCHEME).partition("/")
    name, _, path = rest.partition("/")
    if not text.startswith(SCHEME) or ".." in path.split("/"):
        raise UsageError(f"{text!r} names no files on the Hub", expected=f"{SCHEME}OWNER/NAME@REVISION/PATH")
    return parse_reference(f"{SCHEME}{owner}/{name}"), path.strip("/")


def fetch_log(text: str, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return where the files of a log on the Hub lie here; what the cache has is not downloaded again."""
    reference, path = parse_source(text)
    origin, is_online = resolve(reference, offline=False, accept_moved=False, say=say)
    folder = hub.snapshot(origin.repository, origin.commit)
    if is_online:
        _download(origin, path)
    found = sorted(folder.glob(path)) if path else [folder]
    if not path or not (folder / path).exists():
        found = [one for one in found if one.exists()]
    else:
        found = [folder / path]
    if not found:
        raise IncompleteError(
            "the cache has no such file of the repository",
            where=f"{origin.pinned}/{path}",
            remedy="give the same command once with a connection",
        )
    return found


def _download(origin: Origin, path: str) -> None:
    """Have the files of a commit that a path names in the cache."""
    stated = {
        name: one
        for name, one in stated_files(origin.repository, origin.commit).items()
        if not path or name == path or name.startswith(f"{path}/") or fnmatchcase(name, path)
    }
    odd = [name for name in stated if not _is_plain(name)]
    size = sum(one.bytes for one in stated.values())
    if odd or size > LARGEST:
        raise DamagedError(
            "the repository has a file that no folder can have"
            if odd
            else "the files are more than a log has",
            expected="paths within the repository" if odd else f"{LARGEST} bytes at most",
            found=repr(odd[0]) if odd else f"{size} bytes",
            where=origin.pinned,
            remedy=f"name the files of the log: {SCHEME}{origin.pinned}/PATH",
        )
    if not stated:
        raise IncompleteError("the repository has no such file", found=path or "nothing", where=origin.pinned)
    folder = hub.snapshot(origin.repository, origin.commit)
    missing = {name: one for name, one in stated.items() if not (folder / name).exists()}
    wanted = sum(one.bytes for one in missing.values())
    check_room(wanted)
    with hub.bar(wanted) as note:
        for name, one in missing.items():
            make_way(origin, name)
            download(origin, name, one, None, lambda part: note(len(part)))


def _is_plain(name: str) -> bool:
    path = PurePosixPath(name)
    return path.as_posix() == name and not path.is_absolute() and ".." not in path.parts and "\\" not in name
