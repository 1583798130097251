"""A study on the Hub, read in place: a query fetches the columns and row groups that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.hub.client import endpoint, no_register, telling
from toolkit.registers.hub.revision import Reference, resolve
from toolkit.registers.manifest import MANIFEST_NAME, Manifest, check_known, parse_manifest
from toolkit.registers.study import Origin

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
        """Raise why the Hub could not be read, if it could not: DuckDB passes on the words of an error alone.

        Raises:
            IncompleteError: a range could not be read.
        """
        with telling(self.place, _DOING):
            for failure in self.traffic.failures:
                raise failure

    def _dataset(self, files: Sequence[str]) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        paths = [f"{_root(self.origin)}/{file}" for file in files]
        with telling(self.place, _DOING):
            # One file says what the columns are: all of them have those of the table.
            schema = pq.read_schema(paths[0], filesystem=self._filesystem)
        return ds.FileSystemDataset.from_paths(
            paths, schema=schema, format=ds.ParquetFileFormat(), filesystem=self._filesystem
        )


def open_remote(reference: Reference, *, say: Callable[[str], None] = lambda _: None) -> RemoteStudy:
    """Open a study on the Hub without fetching it.

    1. The revision is resolved to a commit: what is read from now on cannot change.
    2. The manifest is read and its seal checked.
    3. The SHA-256 and the size that the Hub states for every Parquet file at that commit are compared with
       those of the manifest.

    The Hub is the one that `HF_ENDPOINT` names when this is called.

    Args:
        reference: the repository and its revision.
        say: told what a reader of the answer has to know.

    Raises:
        IncompleteError: the Hub cannot be reached, or has no such repository, revision or file.
        DamagedError: the manifest was changed, or the Hub states other bytes than the manifest.
        VerificationError: a tag was moved.
    """
    from huggingface_hub import HfFileSystem

    origin, is_online = resolve(reference, offline=False, accept_moved=False, say=say)  # 1
    root, pinned = _root(origin), origin.pinned
    if not is_online:
        raise IncompleteError(
            "a study is read in place only where the Hub can be asked",
            where=pinned,
            remedy="leave out --remote",
        )
    with telling(pinned, _DOING):
        hub = HfFileSystem(endpoint=endpoint(), skip_instance_cache=True)
        # One listing answers for the sizes of all files later on.
        entries: Any = hub.find(root, detail=True)
        if f"{root}/{MANIFEST_NAME}" not in entries:
            raise no_register(origin)
        raw = hub.cat_file(f"{root}/{MANIFEST_NAME}")
    manifest = parse_manifest(raw, f"{pinned}/{MANIFEST_NAME}")  # 2
    check_known(manifest, f"{pinned}/{MANIFEST_NAME}")
    for table in manifest.tables.values():  # 3
        for file in table.files:
            _check_stated(manifest, file, entries.get(f"{root}/{file}"), pinned)
    traffic = Traffic()
    return RemoteStudy(origin, manifest, traffic, hub_filesystem(hub, traffic))


def _root(origin: Origin) -> str:
    return f"datasets/{origin.pinned}"


def _check_stated(manifest: Manifest, file: str, stated: Mapping[str, Any] | None, place: str) -> None:
    """Check that what the Hub states of a file is what the manifest says."""
    if stated is None:
        raise IncompleteError(
            f"{file} is not on the Hub", expected="the file that the manifest names", where=place
        )
    if stated.get("lfs") is None:
        raise IncompleteError(
            f"the Hub states no SHA-256 for {file}",
            expected="a Parquet file that was uploaded as a large file",
            where=place,
            remedy="fetch the study: toolkit registers pull",
        )
    entry, stated_bytes = manifest.files[file], (stated["lfs"]["sha256"], stated["size"])
    if stated_bytes != (entry.sha256, entry.bytes):
        raise DamagedError(
            f"{file} on the Hub is not the file that the manifest names",
            expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
            found="SHA-256 {}, {} bytes".format(*stated_bytes),
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


def hub_filesystem(hub: Any, traffic: Traffic) -> Any:
    """Return a Hub's file system as one of Arrow's, without reading ahead.

    Args:
        hub: a `huggingface_hub.HfFileSystem`, or another of fsspec's.
        traffic: where ranges are counted.
    """
    import pyarrow as pa
    import pyarrow.fs

    class Handler(pa.fs.FSSpecHandler):  # type: ignore[misc]
        def open_input_file(self, path: str) -> Any:
            return pa.PythonFile(_File(self.fs.open(path, "rb", cache_type="none"), traffic), mode="r")

        def open_input_stream(self, path: str) -> Any:
            return self.open_input_file(path)

    return pa.fs.PyFileSystem(Handler(hub))


class _File:
    """An open file that counts what is read of it. Arrow locks it: one range at a time."""

    def __init__(self, opened: Any, traffic: Traffic) -> None:
        self._opened = opened
        self._traffic = traffic

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of those asked for.

        Raises:
            IncompleteError: fewer came, or more.
        """
        left = self._opened.size - self._opened.tell()
        wanted = left if size < 0 else min(size, left)
        try:
            content = self._exactly(wanted)
        except Exception as error:
            # DuckDB passes on the words of an error, and not what it is.
            self._traffic.failures.append(error)
            raise
        self._traffic.bytes += len(content)
        return content

    def _exactly(self, wanted: int) -> bytes:
        content = bytes(self._opened.read(wanted))
        if len(content) != wanted:
            raise IncompleteError(f"{len(content)} bytes of a file came where {wanted} were asked for")
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)
