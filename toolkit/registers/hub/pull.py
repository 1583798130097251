"""Pulling a study: one commit, into the Hub's cache, and every file of it held against the manifest."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.registers.hub.client import (
    NoFileError,
    RefusedError,
    UnreachableError,
    bars,
    client,
    no_register,
    offering_cache,
    repository_cache,
    snapshot,
    telling,
)
from toolkit.registers.hub.revision import resolve
from toolkit.registers.hub.stated import check_stated, stated_file, stated_files
from toolkit.registers.manifest import MANIFEST_NAME, check_nothing_else, read_manifest
from toolkit.registers.study import Study, open_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.registers.hub.revision import Reference
    from toolkit.registers.manifest import Manifest
    from toolkit.registers.study import Origin

T = TypeVar("T")


def pull(
    reference: Reference,
    *,
    offline: bool = False,
    accept_moved: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Study:
    """Return a study of the Hub, every file of it checked against the manifest.

    1. The revision becomes a commit.
    2. The manifest of that commit, without which it is no register.
    3. The files. What the cache has is not downloaded again.
    4. Every file is hashed, those from the cache too; one that is not the manifest's is downloaded once more.
    5. Nothing else lies there.

    Args:
        reference: the repository and its revision.
        offline: whether to take everything from the cache.
        accept_moved: whether a tag may be another commit than when it was last asked.
        say: told what the reader of the figures has to know.

    Raises:
        IncompleteError: something cannot be had: repository, revision, manifest, a file, the connection.
        DamagedError: what the Hub has is not what the manifest names.
        VerificationError: the tag was moved.
    """
    origin, is_online = resolve(reference, offline=offline, accept_moved=accept_moved, say=say)  # 1
    try:
        return _pull(origin, is_online=is_online, say=say)
    except RefusedError as error:
        raise offering_cache(error, origin.repository, origin.commit) from None


def _pull(origin: Origin, *, is_online: bool, say: Callable[[str], None]) -> Study:
    manifest = _manifest(origin, is_online=is_online, say=say)  # 2
    folder = _snapshot(origin)
    kept = {name for name in manifest.files if (folder / name).exists()}
    if is_online:
        _download(origin, manifest)  # 3
    study = open_study(folder, origin)
    for name in manifest.files:  # 4
        _prove(study, origin, name, is_online=is_online, is_kept=name in kept, say=say)
    _check_nothing_else(origin, manifest, is_online=is_online)  # 5
    return study


def _manifest(origin: Origin, *, is_online: bool, say: Callable[[str], None]) -> Manifest:
    """Return a commit's manifest; one in the cache that is not that commit's is downloaded anew, once.

    Whoever can write the cache can write a manifest that fits other files: the Hub is asked which one it is.
    """
    folder = _snapshot(origin)
    is_kept = (folder / MANIFEST_NAME).exists()
    if not is_kept:
        _fetch(origin, MANIFEST_NAME, is_online=is_online)
    stated = None
    if is_online:
        try:
            stated = stated_file(origin, MANIFEST_NAME)
        except UnreachableError as error:
            say(f"{error.problem}: the manifest of {origin.pinned} was not compared with what it states")

    def read() -> Manifest:
        if stated is not None:
            check_stated(stated, folder / MANIFEST_NAME, origin)
        return read_manifest(folder)

    try:
        return read()
    except ToolkitError as error:
        _replace(origin, MANIFEST_NAME, error, is_online=is_online, is_kept=is_kept, say=say)
        return _settled(origin, read)


def _download(origin: Origin, manifest: Manifest) -> None:
    """Have a commit's files in the cache."""
    for name in manifest.files:
        make_way(origin, name)
    with bars(), telling(origin.pinned, "the download"):
        client().snapshot_download(
            origin.repository,
            repo_type="dataset",
            revision=origin.commit,
            cache_dir=repository_cache(origin.repository).parent,
        )


def _fetch(origin: Origin, name: str, *, is_online: bool, force: bool = False) -> None:
    """Download one file."""
    if not is_online:
        raise IncompleteError(
            f"{name} of {origin.pinned} is not in the cache",
            where=_snapshot(origin),
            remedy="pull it once with a connection",
        )
    if force:
        take_out(origin, name)
    make_way(origin, name)
    try:
        with bars(), telling(origin.pinned, f"the download of {name}"):
            client().hf_hub_download(
                origin.repository,
                name,
                repo_type="dataset",
                revision=origin.commit,
                cache_dir=repository_cache(origin.repository).parent,
                force_download=force,
            )
    except NoFileError:
        if name == MANIFEST_NAME:
            raise no_register(origin) from None
        raise


def _prove(
    study: Study, origin: Origin, name: str, *, is_online: bool, is_kept: bool, say: Callable[[str], None]
) -> None:
    """Check a file against the manifest, with one more download where it is missing or another."""
    try:
        study.prove(name)
    except ToolkitError as error:
        _replace(origin, name, error, is_online=is_online, is_kept=is_kept, say=say)
        _settled(origin, lambda: study.prove(name))


def _replace(
    origin: Origin,
    name: str,
    error: ToolkitError,
    *,
    is_online: bool,
    is_kept: bool,
    say: Callable[[str], None],
) -> None:
    """Download a file anew that was found wrong: in the cache, or as it had just arrived."""
    if not is_online:
        raise type(error)(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=error.where,
            remedy="pull it once with a connection: it is downloaded anew",
        )
    which = f"{name} in the cache" if is_kept else f"{name}, as it arrived,"
    say(f"{which} is not what the manifest names: it is downloaded anew")
    _fetch(origin, name, is_online=is_online, force=True)


def _settled(origin: Origin, check: Callable[[], T]) -> T:
    """Run a check for the last time: what is wrong now is wrong on the Hub."""
    try:
        return check()
    except DamagedError as error:
        raise DamagedError(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=f"{origin.pinned}, {error.where}",
            remedy="do not use it: ask its owner, or name another revision",
        ) from None


def _check_nothing_else(origin: Origin, manifest: Manifest, *, is_online: bool) -> None:
    """Check that nothing lies beside the manifest's files; what the commit does not have came from here.

    Raises:
        DamagedError: something does.
    """
    folder = _snapshot(origin)
    try:
        check_nothing_else(folder, manifest)
    except DamagedError as error:
        path = Path(str(error.where))
        if is_online and path.relative_to(folder).as_posix() in stated_files(
            origin.repository, origin.commit
        ):
            _settled(origin, lambda: check_nothing_else(folder, manifest))
        raise DamagedError(
            f"{error.problem}: it was put into the cache",
            expected=error.expected,
            where=path,
            remedy=f"remove it: rm {shlex.quote(str(path))}",
        ) from None


def _snapshot(origin: Origin) -> Path:
    return snapshot(origin.repository, origin.commit)


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
