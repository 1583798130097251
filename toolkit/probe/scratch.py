"""Arrays in files that are there for a while only: what memory cannot hold, and nobody keeps."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Kind: TypeAlias = tuple[str, tuple[int, ...]]


def scratch_bytes(arrays: Mapping[str, Kind]) -> int:
    """Return how many bytes the files of some arrays take."""
    return sum(math.prod(shape) * np.dtype(kind).itemsize for kind, shape in arrays.values())


@contextmanager
def scratch(folder: Path, arrays: Mapping[str, Kind]) -> Iterator[tuple[Any, ...]]:
    """Map files as arrays of zeros, and remove them at the end and on every error.

    They lie in a folder of their own, named `probe-…`; a process that is killed leaves it behind. Their space
    is taken at once: a disk that fills up under a mapped file ends the process.

    Args:
        folder: an existing folder.
        arrays: name of the file → type and shape of the array.

    Yields:
        The arrays, to be used inside only.

    Raises:
        UsageError: the folder does not exist or cannot be written, or has too little space.
    """
    if not folder.is_dir():
        raise UsageError(
            "the folder for the scores does not exist", where=folder, remedy="make it, or name another"
        )
    size, free = scratch_bytes(arrays), shutil.disk_usage(folder).free
    if free < size:
        raise _refused(folder, size, f"{free / 1e9:.1f} GB free")
    try:
        made = tempfile.TemporaryDirectory(prefix="probe-", dir=folder)
    except OSError as error:
        raise _refused(folder, size, error.strerror) from None
    with made as own:
        try:
            mapped = tuple(_mapped(Path(own, name), *array) for name, array in arrays.items())
        except OSError as error:
            raise _refused(folder, size, error.strerror) from None
        yield mapped


def _mapped(path: Path, kind: str, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape) * np.dtype(kind).itemsize
    with path.open("wb") as stream:
        stream.truncate(size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
    return np.memmap(path, kind, "r+", shape=shape)


def _refused(folder: Path, size: int, found: str | None) -> UsageError:
    return UsageError(
        "the folder does not take the scores",
        expected=f"a folder to write to, with {size / 1e9:.1f} GB of space",
        found=found,
        where=folder,
        remedy="name another folder, on a larger disk",
    )
