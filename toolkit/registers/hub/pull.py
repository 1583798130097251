"""Studies and logs on the Hub: downloaded by commit into a scratch folder, checked, then moved into place.

The Hub's own client downloads. What it brings is not trusted: every path has to lie in the scratch folder,
every file is hashed, and only then does a study get its place.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.files import LARGEST_ROWS, file_sha256, in_turn, read_bytes, replacing
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.client import NoFileError, Reference, Stated, list_files, too_much
from toolkit.registers.manifest import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    Manifest,
    Origin,
    check_file,
    check_known,
    check_nothing_else,
    parse_manifest,
    read_manifest,
)
from toolkit.registers.study import Study, open_study

LARGEST_LOG = LARGEST_ROWS
"""Bytes of a log's files."""


def _check_listed(manifest: Manifest, listing: Mapping[str, Stated], pinned: str) -> None:
    """Check, before they are downloaded, that a commit has the files of its manifest and no other."""
    for name, entry in manifest.files.items():
        if name not in listing:
            raise NoFileError(
                f"the download of {name} failed: the Hub does not have a file", where=pinned, remedy=hub.AGAIN
            )
        stated = listing[name]
        if stated.bytes != entry.bytes or stated.sha256 not in {None, entry.sha256}:
            raise DamagedError(
                f"{name} is not the file that the manifest names",
                expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
                found=(f"SHA-256 {stated.sha256}, " if stated.sha256 else "") + f"{stated.bytes} bytes",
                where=f"{pinned}, as the Hub states it",
                remedy=hub.NOT_TRUSTED,
            )
    for name in sorted(set(listing) - set(manifest.files) - {MANIFEST_NAME}):
        raise DamagedError(
            f"{name} is not in the manifest",
            expected="only files that the manifest names",
            found=f"{listing[name].bytes} bytes that were not downloaded",
            where=f"{pinned}, as the Hub states it",
            remedy=hub.NOT_TRUSTED,
        )


# Downloading: into a scratch folder, which is held to be one.


def check_held(folder: Path, name: str) -> Path:
    """Return where a file of a folder lies: in the folder itself, whatever links and names there are."""
    plain, path = PurePosixPath(name), folder / name
    is_plain = plain.as_posix() == name and not plain.is_absolute()
    # A name that ends with a dot could continue as `..` within the client's own names.
    is_plain = is_plain and not any(part.endswith(".") for part in plain.parts)
    if not is_plain or "\\" in name or os.path.realpath(path) != os.path.realpath(folder) + f"{os.sep}{name}":
        raise DamagedError(
            f"{name} leads out of its folder",
            expected=f"a file in {folder}",
            found=os.path.realpath(path) if is_plain else repr(name),
            where=folder,
            remedy=hub.NOT_TRUSTED,
        )
    if not path.is_file():
        raise IncompleteError(f"{name} is missing", where=folder, remedy=hub.RESUME)
    return path


def check_stated(stated: Stated, folder: Path, name: str, pinned: str) -> None:
    """Check that a file of a folder is the one that the Hub states."""
    if not stated.is_file(check_held(folder, name)):
        raise DamagedError(
            f"{name} is not the file of the commit",
            expected=f"SHA-256 {stated.sha256}" if stated.sha256 else f"git blob {stated.blob}",
            found=f"SHA-256 {file_sha256(folder / name)}",
            where=pinned,
            remedy=hub.NOT_TRUSTED,
        )


def _download(origin: Origin, names: Collection[str], listing: Mapping[str, Stated], folder: Path) -> None:
    """Download files of a commit into a folder, no more bytes of them than the Hub states."""
    from huggingface_hub import snapshot_download

    if not names:
        return
    size = sum(listing[name].bytes for name in names)
    _check_room(size)
    which = next(iter(names)) if len(names) == 1 else f"{len(names)} files"

    def download() -> object:
        return snapshot_download(
            origin.repository,
            repo_type="dataset",
            revision=origin.commit,
            allow_patterns=[glob.escape(name) for name in names],
            local_dir=folder,
            cache_dir=folder / ".cache" / "hub",
            endpoint=hub.endpoint(),
            library_name=hub.LIBRARY,
            tqdm_class=_bounded_bar(size, origin.pinned),
        )

    with hub.bars():
        hub.ask(origin.pinned, f"the download of {which}", download, size)
    for name in names:
        check_held(folder, name)


def _bounded_bar(most: int, pinned: str) -> type[Any]:
    """Return a progress bar that stops a download which brings more bytes than there are."""
    from huggingface_hub import utils

    base: Any = utils.tqdm

    class Bounded(base):  # type: ignore[misc]
        def __init__(self, *args: object, **options: Any) -> None:
            self._counts, self._count = options.get("unit") == "B", 0
            super().__init__(*args, **options)

        def update(self, n: float | None = 1) -> object:
            self._count += int(n or 0)
            if self._counts and self._count > most:
                raise too_much("a download has no end", f"{most} bytes at most", pinned)
            return super().update(n)

    return Bounded


def _check_room(wanted: int) -> None:
    folder = hub.cache_folder()
    there = next((path for path in (folder, *folder.parents) if path.is_dir()), None)
    free = shutil.disk_usage(there).free if there else wanted
    if wanted > free:
        raise IncompleteError(
            "the disk has no room for the study",
            expected=f"{wanted} bytes",
            found=f"{free} bytes free",
            where=folder,
            remedy="make room, or set HF_HOME to another disk",
        )


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _keep_whole(scratch: Path, listing: Mapping[str, Stated]) -> set[str]:
    """Remove everything from a scratch folder but whole files of a commit; return their names."""
    if scratch.is_symlink() or not scratch.is_dir():
        _remove(scratch)
    kept = set()
    for path in sorted(scratch.rglob("*"), reverse=True):
        name = path.relative_to(scratch).as_posix()
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # it holds something that is kept
                path.rmdir()
        elif name in listing and not path.is_symlink() and listing[name].is_file(path):
            kept.add(name)
        else:
            path.unlink()
    return kept


@contextmanager
def _scratch(origin: Origin) -> Iterator[Path]:
    """Give the scratch folder of a commit to one command at a time; it stays where something failed."""
    folder = hub.repository_folder(origin.repository)
    scratch = folder / f"{origin.commit}.part"
    with in_turn(folder / "toolkit-pull.lock"), _writing(folder):
        yield scratch
        _remove(scratch)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IncompleteError(
            "the cache cannot be written",
            found=error.strerror or error,
            where=error.filename or folder,
            remedy="make the folder writable, or set HF_HOME to another disk",
        ) from None


def read_file(origin: Origin, name: str, listing: Mapping[str, Stated], most: int) -> bytes:
    """Return a file of a commit, downloaded now and compared with what the Hub states of it."""
    if listing[name].bytes > most:
        what = f"{listing[name].bytes} bytes"
        raise too_much(f"{name} on the Hub is too long", f"{most} bytes at most", origin.pinned, what)
    with tempfile.TemporaryDirectory() as folder:
        _download(origin, [name], listing, Path(folder))
        check_stated(listing[name], Path(folder), name, origin.pinned)
        return read_bytes(Path(folder) / name, most)


# A study.


def pull(
    reference: Reference,
    *,
    offline: bool = False,
    accept_moved: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Study:
    """Return a study of the Hub, every file of it checked against the manifest.

    1. The revision becomes a commit, whose files the Hub lists.
    2. A study in its place is checked whole: its manifest is the commit's, every file is the manifest's,
       no path leads elsewhere, nothing else lies there.
    3. Where it is not, what is whole of it is kept, and the rest is downloaded into a scratch folder: the
       manifest first, and nothing more unless the commit has its files and no other.
    4. The scratch folder is checked as in 2, and moved into place.
    """
    origin, is_online = hub.resolve(reference, offline=offline, accept_moved=accept_moved, say=say)
    place = hub.study_folder(origin.repository, origin.commit)
    try:
        listing = _listing(origin, say) if is_online else None  # 1
        try:
            return _checked(place, origin, listing)  # 2
        except ToolkitError as error:
            if listing is None:
                remedy = "pull it once with a connection: it is downloaded anew"
                if not hub.is_cached(origin.repository, origin.commit):
                    problem = f"{MANIFEST_NAME} of {origin.pinned} is not in the cache"
                    raise IncompleteError(problem, where=place, remedy=remedy) from None
                raise error.restated(remedy=remedy) from None
        return _fetch(origin, listing, place, say)
    except hub.RefusedError as error:
        raise hub.offering_cache(error, origin.repository, origin.commit) from None


def _listing(origin: Origin, say: Callable[[str], None]) -> Mapping[str, Stated] | None:
    """Return what the Hub states of a commit's files; None where it does not answer and need not."""
    try:
        listing = list_files(origin.repository, origin.commit)
    except hub.UnreachableError as error:
        if not hub.is_cached(origin.repository, origin.commit):
            raise
        say(f"{error.problem}: {origin.pinned} is taken from the cache, and not compared with what it states")
        return None
    check_register(listing, origin.pinned)
    return listing


def check_register(listing: Mapping[str, Stated], pinned: str) -> None:
    """Check that a commit has a manifest, and one that can be read."""
    if MANIFEST_NAME not in listing:
        raise IncompleteError(
            f"{pinned.partition('@')[0]} is no register of this toolkit",
            expected=f"a dataset repository with {MANIFEST_NAME}",
            where=pinned,
            remedy="use `load_dataset` for it, or `toolkit registers import` to make a study of it",
        )
    size = listing[MANIFEST_NAME].bytes
    if size > LARGEST_MANIFEST:
        what = f"{MANIFEST_NAME} on the Hub is too long"
        raise too_much(what, f"{LARGEST_MANIFEST} bytes at most", pinned, f"{size} bytes")


def _checked(folder: Path, origin: Origin, listing: Mapping[str, Stated] | None) -> Study:
    """Return the study in a folder, all of it checked.

    Whoever can write the cache can write a manifest that fits other files: it has to be the one that the Hub
    states.
    """
    check_held(folder, MANIFEST_NAME)
    if listing is not None:
        check_stated(listing[MANIFEST_NAME], folder, MANIFEST_NAME, origin.pinned)
    study = open_study(folder, origin)
    for name in study.manifest.files:
        check_held(folder, name)
        study.prove(name)
    check_nothing_else(folder, study.manifest)
    return study


def _fetch(origin: Origin, listing: Mapping[str, Stated], place: Path, say: Callable[[str], None]) -> Study:
    """Download a study, and put it in its place."""
    with _scratch(origin) as scratch:
        if place.is_symlink() or place.exists():
            try:
                return _checked(place, origin, listing)  # somebody else was quicker
            except ToolkitError as error:
                say(f"{error.problem}, in the cache: it is downloaded anew")
            _remove(scratch)
            place.rename(scratch)
        whole = _keep_whole(scratch, listing)
        _download(origin, {MANIFEST_NAME} - whole, listing, scratch)
        check_stated(listing[MANIFEST_NAME], scratch, MANIFEST_NAME, origin.pinned)
        manifest = read_manifest(scratch)
        _check_listed(manifest, listing, origin.pinned)
        _download(origin, [name for name in manifest.files if name not in whole], listing, scratch)
        _remove(scratch / ".cache")
        try:
            _checked(scratch, origin, listing)
        except DamagedError as error:
            raise error.restated(where=f"{origin.pinned}, {error.where}", remedy=hub.NOT_TRUSTED) from None
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch.rename(place)
    return _checked(place, origin, listing)


# A copy of a pulled study in a folder of one's own.


def check_into(folder: Path, study: Study) -> None:
    """Check that a folder may be written: it is missing, empty, or a copy that can be had again.

    A copy that can be had again has the manifest of a commit in the cache, and nothing that is not as that
    manifest says. Rows of one's own, `.git` and notes are in no commit: they would be lost.
    """
    try:
        lost = _lost(folder, study)
    except OSError as error:
        lost = str(error.strerror or error)
    if lost is not None:
        raise IncompleteError(
            f"{folder} holds something that would be lost",
            expected="no folder, an empty one, or one that was pulled from this repository and not changed",
            found=lost,
            where=folder,
            remedy="give another folder, or move this one away",
        )


def copy_into(folder: Path, study: Study, say: Callable[[str], None] = lambda _: None) -> Study:
    """Copy a study into a folder and check the copy; `say` is given each file's name."""
    folder = folder.resolve()
    with replacing(folder) as new:
        for name in (MANIFEST_NAME, *study.manifest.files):
            say(name)
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(study.folder / name, new / name)
        copied = open_study(new)
        for name in copied.manifest.files:
            copied.prove(name)
    return open_study(folder, study.origin)


def _lost(folder: Path, study: Study) -> str | None:
    """Return the first thing in a folder that is not a pulled study's; None where there is none."""
    if not folder.exists() and not folder.is_symlink():
        return None
    if not folder.is_dir():
        return "a file"
    there = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    if MANIFEST_NAME not in there:
        return next(iter(there), None)
    known = {path.read_bytes() for path in study.folder.parent.glob(f"*/{MANIFEST_NAME}")}
    if there[MANIFEST_NAME].read_bytes() not in known:
        return f"{MANIFEST_NAME}, which is of no commit of the repository that was pulled"
    manifest = read_manifest(folder)
    for name, path in there.items():
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        is_folder = path.is_dir() and not path.is_symlink()
        if name == MANIFEST_NAME or (is_folder and not is_hidden):
            continue
        if name not in manifest.files or not _is_proven(folder, name, manifest):
            return name
    return None


def _is_proven(folder: Path, name: str, manifest: Manifest) -> bool:
    try:
        check_file(folder, name, manifest.files[name])
    except ToolkitError:
        return False
    return True


# A log: files of a repository that is no register.


def fetch_log(text: str, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return where the files of a log on the Hub lie here; what the cache has is not downloaded again."""
    reference, path = hub.parse_log(text)
    origin, is_online = hub.resolve(reference, offline=False, accept_moved=False, say=say)
    folder = hub.repository_folder(origin.repository) / "snapshots" / origin.commit
    if is_online:
        _fetch_log(origin, path, folder)
    is_one = not path or (folder / path).exists()
    found = [folder / path] if is_one else sorted(folder.glob(path))
    if not all(one.exists() for one in found) or not found:
        raise IncompleteError(
            "the cache has no such file of the repository",
            where=f"{origin.pinned}/{path}",
            remedy="give the same command once with a connection",
        )
    return found


def _fetch_log(origin: Origin, path: str, folder: Path) -> None:
    """Download the files that a path names, and put each that is the commit's in its place."""
    stated = {
        name: one
        for name, one in list_files(origin.repository, origin.commit).items()
        if not path or name == path or name.startswith(f"{path}/") or fnmatchcase(name, path)
    }
    if not stated:
        raise IncompleteError("the repository has no such file", found=path or "nothing", where=origin.pinned)
    size = sum(one.bytes for one in stated.values())
    if size > LARGEST_LOG:
        raise DamagedError(
            "the files are more than a log has",
            expected=f"{LARGEST_LOG} bytes at most",
            found=f"{size} bytes",
            where=origin.pinned,
            remedy=f"name the files of the log: {hub.SCHEME}{origin.pinned}/PATH",
        )
    missing = {name: one for name, one in stated.items() if not _is_held(folder, name, one)}
    if not missing:
        return
    with _scratch(origin) as scratch:
        _download(origin, missing.keys() - _keep_whole(scratch, missing), missing, scratch)
        for name, one in missing.items():
            check_stated(one, scratch, name, origin.pinned)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).replace(folder / name)


def _is_held(folder: Path, name: str, stated: Stated) -> bool:
    try:
        return stated.is_file(check_held(folder, name))
    except IncompleteError:
        return False


# A study that is read in place.


@dataclass(frozen=True)
class RemoteStudy:
    """A study at one commit of a repository on the Hub, its files stated by the Hub to be the manifest's.

    What is read of a file is a few ranges of it, and these are not hashed: that their bytes are those whose
    SHA-256 the Hub states is the Hub's word. `toolkit registers pull` fetches everything and hashes it.
    `failures` has why ranges could not be read.
    """

    origin: Origin
    manifest: Manifest
    failures: list[Exception] = field(default_factory=list, compare=False)

    @property
    def place(self) -> str:
        """Repository and commit, as an error names them."""
        return self.origin.pinned

    def datasets(self) -> Mapping[str, Any]:
        """Return an Arrow dataset a table, by name; it reads what a query needs when the query runs."""
        files = self._filesystem()
        return {name: self._dataset(entry.files, files) for name, entry in self.manifest.tables.items()}

    def tell_failure(self) -> None:
        """Raise why the Hub could not be read: DuckDB passes on the words of an error alone."""
        with hub.telling(self.place, "reading the study in place"):
            for failure in self.failures:
                raise failure

    def _dataset(self, names: Sequence[str], files: Any) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        doing = "reading the study in place"
        # One file says what the columns are: all of them have those of the table.
        schema = hub.ask(self.place, doing, lambda: pq.read_schema(names[0], filesystem=files))
        return ds.FileSystemDataset.from_paths(
            list(names), schema=schema, format=ds.ParquetFileFormat(), filesystem=files
        )

    def _filesystem(self) -> Any:
        """Return the files of the commit as a file system of Arrow's, which reads nothing ahead."""
        import pyarrow as pa
        import pyarrow.fs
        from huggingface_hub import HfFileSystem

        files = HfFileSystem(endpoint=hub.endpoint(), skip_instance_cache=True)
        failures, root = self.failures, f"datasets/{self.origin.pinned}"

        class Handler(pa.fs.FSSpecHandler):  # type: ignore[misc]
            def open_input_file(self, path: str) -> Any:
                with _noted(failures):
                    opened = files.open(f"{root}/{path}", "rb", cache_type="none")
                return pa.PythonFile(_Ranges(opened, failures), mode="r")

            def open_input_stream(self, path: str) -> Any:
                return self.open_input_file(path)

        return pa.fs.PyFileSystem(Handler(files))


@contextmanager
def _noted(failures: list[Exception]) -> Iterator[None]:
    """Note an error, of which DuckDB passes on the words alone."""
    try:
        yield
    except Exception as error:
        failures.append(error)
        raise


class _Ranges:
    """A file of the Hub whose ranges are whole, or fail."""

    def __init__(self, opened: Any, failures: list[Exception]) -> None:
        self._opened, self._failures = opened, failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of those asked for."""
        left = max(0, self._opened.size - self._opened.tell())
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        with _noted(self._failures):
            content = bytes(self._opened.read(wanted))
            if len(content) != wanted:
                raise IncompleteError(f"{len(content)} bytes of a file came where {wanted} were asked for")
        return content


def open_remote(reference: Reference, *, say: Callable[[str], None] = lambda _: None) -> RemoteStudy:
    """Open a study on the Hub without fetching it.

    1. The revision is resolved to a commit: what is read from now on cannot change.
    2. The manifest is read and its seal checked.
    3. The SHA-256 and the size that the Hub states for every Parquet file at that commit are compared with
       those of the manifest.
    """
    origin, is_online = hub.resolve(reference, offline=False, accept_moved=False, say=say)  # 1
    if not is_online:
        raise IncompleteError(
            "a study is read in place only where the Hub can be asked",
            where=origin.pinned,
            remedy="leave out --remote",
        )
    listing = list_files(origin.repository, origin.commit)
    check_register(listing, origin.pinned)
    raw, where = (
        read_file(origin, MANIFEST_NAME, listing, LARGEST_MANIFEST),
        f"{origin.pinned}/{MANIFEST_NAME}",
    )
    manifest = parse_manifest(raw, where)  # 2
    check_known(manifest, where)
    for name in (file for table in manifest.tables.values() for file in table.files):  # 3
        stated, entry = listing.get(name), manifest.files[name]
        if stated is None:
            raise NoFileError(
                f"{name} is not on the Hub", expected="the manifest's file", where=origin.pinned
            )
        if stated.sha256 is None:
            raise IncompleteError(
                f"the Hub states no SHA-256 for {name}",
                expected="a Parquet file that was uploaded as a large file",
                where=origin.pinned,
                remedy="fetch the study: toolkit registers pull",
            )
        if (stated.sha256, stated.bytes) != (entry.sha256, entry.bytes):
            raise DamagedError(
                f"{name} on the Hub is not the file that the manifest names",
                expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
                found=f"SHA-256 {stated.sha256}, {stated.bytes} bytes",
                where=origin.pinned,
                remedy="ask for another revision, or tell the study's authors",
            )
    return RemoteStudy(origin, manifest)
