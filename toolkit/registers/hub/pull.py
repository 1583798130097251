"""Pulling a study: one commit, into the Hub's cache, and every file of it held against the manifest."""

import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.cached import check_room, download, make_way, take_out
from toolkit.registers.hub.revision import Reference, resolve
from toolkit.registers.hub.stated import (
    Stated,
    check_listed,
    check_size,
    check_stated,
    stated_file,
    stated_files,
)
from toolkit.registers.manifest import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    check_nothing_else,
    read_manifest,
)
from toolkit.registers.origin import Origin
from toolkit.registers.study import Study, open_study

T = TypeVar("T")

AT_ONCE = 8
"""Downloads at once, as the Hub's own client has it."""


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
    3. What the Hub states of its files is what the manifest says of them, and it has no other.
    4. The files. What the cache has is not downloaded again; what arrives is hashed before it enters it.
    5. Every file is hashed, those from the cache too; one that is not the manifest's is downloaded once more.
    6. Nothing else lies there.
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
        """Return the study (steps 2 to 6)."""
        manifest = self._manifest()  # 2
        missing = [name for name in manifest.files if not (self.folder / name).exists()]
        if self.is_online:
            self._check_listing(manifest, is_needed=bool(missing))  # 3
            self._download(manifest, missing)  # 4
        study = open_study(self.folder, self.origin)
        for name, entry in manifest.files.items():  # 5
            try:
                study.prove(name)
            except ToolkitError as error:
                self._replace(name, error, entry)
                self._settled(partial(study.prove, name))
        self._check_nothing_else(manifest)  # 6
        return study

    @cached_property
    def _listing(self) -> Mapping[str, Stated]:
        """The commit's visible files as the Hub states them."""
        return stated_files(self.origin.repository, self.origin.commit)

    def _manifest(self) -> Manifest:
        """Return the commit's manifest; one in the cache that is not that commit's is downloaded anew, once.

        Whoever can write the cache can write a manifest that fits other files: the Hub is asked which one it
        is.
        """
        path = self.folder / MANIFEST_NAME
        is_kept = path.exists()
        stated = self._stated_manifest(is_needed=not is_kept) if self.is_online else None
        if not is_kept:
            self._fetch(MANIFEST_NAME, stated, None)

        def read() -> Manifest:
            if stated is not None:
                check_stated(stated, path, self.origin)
            return read_manifest(self.folder)

        try:
            return read()
        except ToolkitError as error:
            if not is_kept:  # it is the commit's, and was compared as it arrived
                return self._settled(read)
            self._replace(MANIFEST_NAME, error, None, stated)
            return self._settled(read)

    def _stated_manifest(self, *, is_needed: bool) -> Stated | None:
        """Return what the Hub states of the manifest; None where it does not answer and need not."""
        try:
            stated = stated_file(self.origin, MANIFEST_NAME)
        except hub.NoFileError:
            raise hub.no_register(self.origin) from None
        except hub.UnreachableError as error:
            if is_needed:
                raise
            what = f"the manifest of {self.origin.pinned} was not compared with what it states"
            self.say(f"{error.problem}: {what}")
            return None
        check_size(stated, MANIFEST_NAME, LARGEST_MANIFEST, self.origin.pinned)
        return stated

    def _check_listing(self, manifest: Manifest, *, is_needed: bool) -> None:
        """Check, before anything is fetched, that the commit has the manifest's files and no other."""
        try:
            listing = self._listing
        except hub.UnreachableError as error:
            if is_needed:
                raise
            self.say(f"{error.problem}: the files of {self.origin.pinned} are taken from the cache")
            return
        self._settled(lambda: check_listed(manifest, listing, self.origin.pinned))

    def _download(self, manifest: Manifest, missing: Sequence[str]) -> None:
        """Have the missing files in the cache, a few at a time."""
        wanted = sum(manifest.files[name].bytes for name in missing)
        check_room(wanted)
        stopped = threading.Event()

        def fetch(name: str) -> None:
            if not stopped.is_set():
                self._fetch(name, self._listing[name], manifest.files[name], count)

        def count(part: bytes) -> None:
            if stopped.is_set():
                raise InterruptedError("another file failed")
            note(len(part))

        with hub.bar(wanted) as note, ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                for _ in pool.map(fetch, missing):
                    pass
            except BaseException:
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _fetch(
        self,
        name: str,
        stated: Stated | None,
        entry: FileEntry | None,
        note: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        """Download one file; one that arrives as another is downloaded once more."""
        if stated is None:
            raise IncompleteError(
                f"{name} of {self.origin.pinned} is not in the cache",
                where=self.folder,
                remedy="pull it once with a connection",
            )
        make_way(self.origin, name)
        try:
            download(self.origin, name, stated, entry, note)
        except DamagedError:
            self.say(f"{name}, as it arrived, is not what the manifest names: it is downloaded anew")
            self._settled(lambda: download(self.origin, name, stated, entry, note))

    def _replace(
        self, name: str, error: ToolkitError, entry: FileEntry | None, stated: Stated | None = None
    ) -> None:
        """Download a file anew that was found wrong in the cache."""
        if not self.is_online:
            raise error.restated(remedy="pull it once with a connection: it is downloaded anew")
        self.say(f"{name} in the cache is not what the manifest names: it is downloaded anew")
        take_out(self.origin, name)
        self._fetch(name, stated or self._listing[name], entry)

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
        """Check that nothing lies beside the manifest's files."""
        try:
            check_nothing_else(self.folder, manifest)
        except DamagedError as error:
            path = Path(str(error.where))
            raise error.restated(
                problem=f"{error.problem}: it was put into the cache",
                where=path,
                remedy=f"remove it: rm {shlex.quote(str(path))}",
            ) from None
