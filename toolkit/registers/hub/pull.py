"""Pulling a study: one commit, into the Hub's cache, and every file of it held against the manifest."""

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.revision import Reference, resolve
from toolkit.registers.hub.stated import check_stated, stated_file, stated_files
from toolkit.registers.manifest import MANIFEST_NAME, Manifest, check_nothing_else, read_manifest
from toolkit.registers.study import Origin, Study, open_study

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
        return _Pull(origin, is_online, say).study()
    except hub.RefusedError as error:
        raise hub.offering_cache(error, origin.repository, origin.commit) from None


@dataclass(frozen=True)
class _Pull:
    """A pull of one commit; `is_online` says whether the Hub can be asked for its files."""

    origin: Origin
    is_online: bool
    say: Callable[[str], None]

    @property
    def folder(self) -> Path:
        """The commit's folder in the cache."""
        return hub.snapshot(self.origin.repository, self.origin.commit)

    def study(self) -> Study:
        """Return the study (steps 2 to 5)."""
        manifest = self._manifest()  # 2
        kept = {name for name in manifest.files if (self.folder / name).exists()}
        if self.is_online:
            self._download(manifest)  # 3
        study = open_study(self.folder, self.origin)
        for name in manifest.files:  # 4
            try:
                study.prove(name)
            except ToolkitError as error:
                self._replace(name, error, is_kept=name in kept)
                self._settled(partial(study.prove, name))
        self._check_nothing_else(manifest)  # 5
        return study

    def _manifest(self) -> Manifest:
        """Return the commit's manifest; one in the cache that is not that commit's is downloaded anew, once.

        Whoever can write the cache can write a manifest that fits other files: the Hub is asked which one it
        is.
        """
        path = self.folder / MANIFEST_NAME
        is_kept = path.exists()
        if not is_kept:
            self._fetch(MANIFEST_NAME)
        stated = None
        if self.is_online:
            try:
                stated = stated_file(self.origin, MANIFEST_NAME)
            except hub.UnreachableError as error:
                what = f"the manifest of {self.origin.pinned} was not compared with what it states"
                self.say(f"{error.problem}: {what}")

        def read() -> Manifest:
            if stated is not None:
                check_stated(stated, path, self.origin)
            return read_manifest(self.folder)

        try:
            return read()
        except ToolkitError as error:
            self._replace(MANIFEST_NAME, error, is_kept=is_kept)
            return self._settled(read)

    def _download(self, manifest: Manifest) -> None:
        """Have the commit's files in the cache."""
        for name in manifest.files:
            make_way(self.origin, name)
        with hub.bars(), hub.telling(self.origin.pinned, "the download"):
            hub.client().snapshot_download(
                self.origin.repository,
                repo_type="dataset",
                revision=self.origin.commit,
                cache_dir=hub.repository_cache(self.origin.repository).parent,
            )

    def _fetch(self, name: str, *, force: bool = False) -> None:
        """Download one file."""
        if not self.is_online:
            raise IncompleteError(
                f"{name} of {self.origin.pinned} is not in the cache",
                where=self.folder,
                remedy="pull it once with a connection",
            )
        if force:
            take_out(self.origin, name)
        make_way(self.origin, name)
        try:
            with hub.bars(), hub.telling(self.origin.pinned, f"the download of {name}"):
                hub.client().hf_hub_download(
                    self.origin.repository,
                    name,
                    repo_type="dataset",
                    revision=self.origin.commit,
                    cache_dir=hub.repository_cache(self.origin.repository).parent,
                    force_download=force,
                )
        except hub.NoFileError:
            if name == MANIFEST_NAME:
                raise hub.no_register(self.origin) from None
            raise

    def _replace(self, name: str, error: ToolkitError, *, is_kept: bool) -> None:
        """Download a file anew that was found wrong: in the cache, or as it had just arrived."""
        if not self.is_online:
            raise error.restated(remedy="pull it once with a connection: it is downloaded anew")
        which = f"{name} in the cache" if is_kept else f"{name}, as it arrived,"
        self.say(f"{which} is not what the manifest names: it is downloaded anew")
        self._fetch(name, force=True)

    def _settled(self, check: Callable[[], T]) -> T:
        """Run a check for the last time: what is wrong now is wrong on the Hub."""
        try:
            return check()
        except DamagedError as error:
            raise error.restated(
                where=f"{self.origin.pinned}, {error.where}",
                remedy="do not use it: ask its owner, or name another revision",
            ) from None

    def _check_nothing_else(self, manifest: Manifest) -> None:
        """Check that nothing lies beside the manifest's files; what the commit does not have came from here.

        Raises:
            DamagedError: something does.
        """
        try:
            check_nothing_else(self.folder, manifest)
        except DamagedError as error:
            path = Path(str(error.where))
            name = path.relative_to(self.folder).as_posix()
            if self.is_online and name in stated_files(self.origin.repository, self.origin.commit):
                self._settled(lambda: check_nothing_else(self.folder, manifest))
            raise error.restated(
                problem=f"{error.problem}: it was put into the cache",
                where=path,
                remedy=f"remove it: rm {shlex.quote(str(path))}",
            ) from None


_CONTENT = re.compile(r"[0-9a-f]{40,64}", re.ASCII)
"""How the client names content: by git's hash, or by SHA-256."""


def make_way(origin: Origin, name: str) -> None:
    """Remove what the client would stop at: no folder in the place of one above a file, a folder in its own.

    Raises:
        IncompleteError: the cache cannot be written.
    """
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

    Raises:
        IncompleteError: the cache cannot be written.
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
