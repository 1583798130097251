"""The Hub's cache as its own client lays it out: content under its hash, links to it in a commit's folder.

What enters it has been hashed first: nothing that the Hub says is a part of a path, and what is not the file
that was asked for never has a name here.
"""

import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import file_sha256
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.answers import Digest, file_url, stream
from toolkit.registers.hub.stated import Stated, unlike_stated
from toolkit.registers.manifest import FileEntry
from toolkit.registers.origin import Origin


def download(
    origin: Origin,
    name: str,
    stated: Stated,
    entry: FileEntry | None,
    note: Callable[[bytes], object] = lambda _: None,
) -> None:
    """Have a file of a commit in the cache.

    1. Content that is there already, and is the file's, is not downloaded again.
    2. It is written beside its place, no more of it than the Hub stated, and hashed as it arrives.
    3. It gets its place where it is the file that was stated, and that the manifest names.
    """
    contents = hub.repository_cache(origin.repository) / "blobs"
    content = contents / (stated.sha256 or stated.blob)
    beside = contents / f"{content.name}.{os.getpid()}-{threading.get_ident()}.incomplete"
    with hub.telling(origin.pinned, f"the download of {name}"):
        if not _is_there(content, stated, entry):  # 1
            try:
                digest = _write(file_url(origin.pinned, name), stated.bytes, beside, note)  # 2
                _check(digest, origin, name, stated, entry)  # 3
                if content.is_dir():
                    _remove(content)
                beside.replace(content)
            finally:
                beside.unlink(missing_ok=True)
        _link(hub.snapshot(origin.repository, origin.commit) / name, content)


def check_room(wanted: int) -> None:
    """Check, before files are fetched, that the disk has room for them."""
    folder = hub.cache_folder()
    there = next((path for path in (folder, *folder.parents) if path.is_dir()), None)
    free = shutil.disk_usage(there).free if there else wanted
    if wanted > free:
        raise IncompleteError(
            "the disk has no room for the study",
            expected=f"{wanted} bytes",
            found=f"{free} bytes free",
            where=folder,
            remedy="make room, or set HF_HUB_CACHE to another disk",
        )


def _is_there(content: Path, stated: Stated, entry: FileEntry | None) -> bool:
    if not content.is_file() or content.is_symlink() or content.stat().st_size != stated.bytes:
        return False
    sha256 = file_sha256(content)
    return stated.is_file(content, sha256) and (entry is None or entry.sha256 == sha256)


def _write(url: str, size: int, beside: Path, note: Callable[[bytes], object]) -> Digest:
    digest = Digest(size)
    beside.parent.mkdir(parents=True, exist_ok=True)
    with beside.open("wb") as opened:

        def take(part: bytes) -> None:
            digest.update(part)
            opened.write(part)
            note(part)

        stream(url, size, take)
    return digest


def _check(digest: Digest, origin: Origin, name: str, stated: Stated, entry: FileEntry | None) -> None:
    if digest.count < stated.bytes:
        raise IncompleteError(
            f"the download of {name} failed: it broke off",
            expected=f"{stated.bytes} bytes",
            found=f"{digest.count} bytes",
            where=hub.place(origin.pinned),
            remedy="give the same command again: what has arrived whole is kept",
        )
    if entry is not None and digest.sha256 != entry.sha256:
        raise DamagedError(
            f"{name} is not the file that the manifest names",
            expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
            found=f"SHA-256 {digest.sha256}, {digest.count} bytes",
            where=origin.pinned,
        )
    if not stated.names(digest.sha256, digest.blob):
        raise unlike_stated(stated, name, digest.sha256, digest.blob, origin)


def _link(target: Path, content: Path) -> None:
    """Put a link to content in a file's place; a copy where the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        try:
            beside.symlink_to(os.path.relpath(content, target.parent))
        except OSError:
            shutil.copyfile(content, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


_CONTENT = re.compile(r"[0-9a-f]{40,64}", re.ASCII)
"""How the client names content: by git's hash, or by SHA-256."""


def make_way(origin: Origin, name: str) -> None:
    """Remove what the client would stop at."""
    folder = hub.snapshot(origin.repository, origin.commit)
    target = folder / name
    above = [folder, *reversed([parent for parent in target.parents if folder in parent.parents])]
    for path in above:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            _remove(path)
    if target.is_dir():
        _remove(target)


def take_out(origin: Origin, name: str) -> None:
    """Remove a file's entry in a commit's folder, so that it is downloaded anew.

    The content that it leads to stays: it may be another file's, or no content of the cache at all. Where it
    is the file's own, the download takes its place; a folder there would not give way, and is removed too.
    """
    entry = hub.snapshot(origin.repository, origin.commit) / name
    if entry.is_symlink():
        name_of_content = entry.readlink().name
        content = hub.repository_cache(origin.repository) / "blobs" / name_of_content
        if _CONTENT.fullmatch(name_of_content) and content.is_dir():
            _remove(content)
    _remove(entry)


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
