"""A study on the Hub, read in place: a query fetches the columns and row groups that it needs."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.hub.answers import file_url, read_bytes_of
from toolkit.registers.hub.client import no_register, telling
from toolkit.registers.hub.revision import Reference, resolve
from toolkit.registers.hub.stated import Stated, check_size, content_at, stated_files
from toolkit.registers.manifest import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    Manifest,
    check_known,
    parse_manifest,
)
from toolkit.registers.origin import Origin

_DOING = "reading the study in place"


@dataclass(frozen=True)
class RemoteStudy:
    """A study at one commit of a repository on the Hub, its files stated by the Hub to be the manifest's.

    What is read of a file is a few ranges of it, and these are not hashed: that their bytes are those whose
    SHA-256 the Hub states is the Hub's word. `toolkit registers pull` fetches everything and hashes it.

    Args:
        origin: repository and commit.
        manifest: its manifest, the seal checked.
        traffic: what was read from the Hub so far.
    """

    origin: Origin
    manifest: Manifest
    traffic: Traffic
    _filesystem: Any = field(repr=False, compare=False)

    @property
    def place(self) -> str:
        """Repository and commit, as an error names them."""
        return self.origin.pinned

    @property
    def bytes(self) -> int:
        """Size of all files of all tables together."""
        files = {file for table in self.manifest.tables.values() for file in table.files}
        return sum(self.manifest.files[file].bytes for file in files)

    def datasets(self) -> Mapping[str, Any]:
        """Return an Arrow dataset a table, by name; it reads what a query needs when the query runs."""
        return {name: self._dataset(entry.files) for name, entry in self.manifest.tables.items()}

    def tell_failure(self) -> None:
        """Raise why the Hub could not be read: DuckDB passes on the words of an error alone."""
        with telling(self.place, _DOING):
            for failure in self.traffic.failures:
                raise failure

    def _dataset(self, files: Sequence[str]) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        with telling(self.place, _DOING):
            # One file says what the columns are: all of them have those of the table.
            schema = pq.read_schema(files[0], filesystem=self._filesystem)
        return ds.FileSystemDataset.from_paths(
            list(files), schema=schema, format=ds.ParquetFileFormat(), filesystem=self._filesystem
        )


def open_remote(reference: Reference, *, say: Callable[[str], None] = lambda _: None) -> RemoteStudy:
    """Open a study on the Hub without fetching it.

    1. The revision is resolved to a commit: what is read from now on cannot change.
    2. The manifest is read and its seal checked.
    3. The SHA-256 and the size that the Hub states for every Parquet file at that commit are compared with
       those of the manifest.

    The Hub is the one that `HF_ENDPOINT` names when this is called.
    """
    origin, is_online = resolve(reference, offline=False, accept_moved=False, say=say)  # 1
    pinned = origin.pinned
    if not is_online:
        raise IncompleteError(
            "a study is read in place only where the Hub can be asked",
            where=pinned,
            remedy="leave out --remote",
        )
    listing = stated_files(origin.repository, origin.commit)
    if MANIFEST_NAME not in listing:
        raise no_register(origin)
    check_size(listing[MANIFEST_NAME], MANIFEST_NAME, LARGEST_MANIFEST, pinned)
    raw = content_at(origin.repository, origin.commit, MANIFEST_NAME, listing[MANIFEST_NAME].bytes)
    manifest = parse_manifest(raw, f"{pinned}/{MANIFEST_NAME}")  # 2
    check_known(manifest, f"{pinned}/{MANIFEST_NAME}")
    for table in manifest.tables.values():  # 3
        for file in table.files:
            _check_stated(manifest, file, listing.get(file), pinned)
    traffic = Traffic()
    return RemoteStudy(origin, manifest, traffic, _filesystem(manifest, pinned, traffic))


def _check_stated(manifest: Manifest, file: str, stated: Stated | None, place: str) -> None:
    """Check that what the Hub states of a file is what the manifest says."""
    if stated is None:
        raise IncompleteError(
            f"{file} is not on the Hub", expected="the file that the manifest names", where=place
        )
    if stated.sha256 is None:
        raise IncompleteError(
            f"the Hub states no SHA-256 for {file}",
            expected="a Parquet file that was uploaded as a large file",
            where=place,
            remedy="fetch the study: toolkit registers pull",
        )
    entry = manifest.files[file]
    if (stated.sha256, stated.bytes) != (entry.sha256, entry.bytes):
        raise DamagedError(
            f"{file} on the Hub is not the file that the manifest names",
            expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
            found=f"SHA-256 {stated.sha256}, {stated.bytes} bytes",
            where=place,
            remedy="ask for another revision, or tell the study's authors",
        )


@dataclass
class Traffic:
    """What was read from the Hub so far, and what failed.

    Args:
        bytes: bytes received.
        failures: why ranges could not be read.
    """

    bytes: int = 0
    failures: list[Exception] = field(default_factory=list)


def _filesystem(manifest: Manifest, pinned: str, traffic: Traffic) -> Any:
    """Return the files of a commit as a file system of Arrow's, which reads nothing ahead."""
    import pyarrow as pa
    import pyarrow.fs

    class Handler(pa.fs.FSSpecHandler):  # type: ignore[misc]
        def get_type_name(self) -> str:
            return "hub"

        def open_input_file(self, path: str) -> Any:
            return pa.PythonFile(_File(file_url(pinned, path), manifest.files[path].bytes, traffic), mode="r")

        def open_input_stream(self, path: str) -> Any:
            return self.open_input_file(path)

    return pa.fs.PyFileSystem(Handler(None))


class _File(io.RawIOBase):
    """A file of the Hub, of which ranges are read. Arrow locks it: one range at a time."""

    def __init__(self, url: str, size: int, traffic: Traffic) -> None:
        super().__init__()
        self._url, self._size, self._traffic = url, size, traffic
        self._at = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read anywhere."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Say where the next read begins."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of those asked for."""
        left = max(0, self._size - self._at)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        try:
            content = self._exactly(wanted)
        except Exception as error:
            # DuckDB passes on the words of an error, and not what it is.
            self._traffic.failures.append(error)
            raise
        self._traffic.bytes += len(content)
        self._at += len(content)
        return content

    def _exactly(self, wanted: int) -> bytes:
        asked = {"Range": f"bytes={self._at}-{self._at + wanted - 1}"}
        content = read_bytes_of(self._url, wanted, headers=asked)
        if len(content) != wanted:
            raise IncompleteError(f"{len(content)} bytes of a file came where {wanted} were asked for")
        return content
