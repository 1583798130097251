"""Taking out of the cache what is in a file's way there: whatever it is, it can be downloaded again."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError
from toolkit.registers.hub.client import repository_cache, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.registers.origin import Origin

_CONTENT = re.compile(r"[0-9a-f]{40,64}", re.ASCII)
"""How the client names content: by git's hash, or by SHA-256."""


def make_way(origin: Origin, name: str) -> None:
    """Remove what the client would stop at: no folder in the place of one above a file, a folder in its own.

    Raises:
        IncompleteError: the cache cannot be written.
    """
    folder = snapshot(origin.repository, origin.commit)
    place = folder / name
    above = [folder, *reversed([parent for parent in place.parents if folder in parent.parents])]
    for path in above:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            _remove(path)
    if place.is_dir():
        _remove(place)


def take_out(origin: Origin, name: str) -> None:
    """Remove a file's entry in a commit's folder, so that it is downloaded anew.

    The content that it leads to stays: it may be another file's, or no content of the cache at all. Where it
    is the file's own, the download takes its place; a folder there would not give way, and is removed too.

    Raises:
        IncompleteError: the cache cannot be written.
    """
    place = snapshot(origin.repository, origin.commit) / name
    if place.is_symlink():
        name_of_content = place.readlink().name
        content = repository_cache(origin.repository) / "blobs" / name_of_content
        if _CONTENT.fullmatch(name_of_content) and content.is_dir():
            _remove(content)
    _remove(place)


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise IncompleteError(
            f"{path.name} in the cache is damaged, and cannot be removed",
            found=error.strerror or error,
            where=path,
            remedy="remove it, and give the same command again",
        ) from None
