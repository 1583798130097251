"""Reading and writing files: errors that people understand, and no half-written file ever in place."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError

if TYPE_CHECKING:
    from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        IncompleteError: the file is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks.

    Raises:
        IncompleteError: the file is missing or cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it there.

    Raises:
        IncompleteError: the folder cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise IncompleteError(
            f"{path.name} cannot be written", found=error.strerror or error, where=path
        ) from None


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text as `write_bytes` does."""
    write_bytes(path, content.encode())


def unreadable(path: Path, error: OSError) -> IncompleteError:
    """Return the error for a file that is missing or cannot be read."""
    return IncompleteError(
        f"{path.name} cannot be read",
        expected="a readable file",
        found=error.strerror or type(error).__name__,
        where=path,
        remedy="restore the file, or give another path",
    )
