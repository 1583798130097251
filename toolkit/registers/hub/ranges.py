"""Ranges of files on the Hub: fetched as they are asked for, counted, and never half."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import IncompleteError


@dataclass
class Traffic:
    """What was read from the Hub so far, and what failed.

    Args:
        requests: ranges asked for.
        bytes: bytes received.
        failures: why ranges could not be read.
    """

    requests: int = 0
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
        self._traffic.requests += 1
        self._traffic.bytes += len(content)
        return content

    def _exactly(self, wanted: int) -> bytes:
        content = bytes(self._opened.read(wanted))
        if len(content) != wanted:
            raise IncompleteError(f"{len(content)} bytes of a file came where {wanted} were asked for")
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)
