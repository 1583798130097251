"""Reading and writing files: errors that people understand, and no half-written file ever in place."""

from __future__ import annotations

import contextlib
import hashlib
import os
from errno import EISDIR
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, IncompleteError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        IncompleteError: the file is missing or cannot be read.
    """
    try:
        _check_regular(path)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_up_to(path: Path, limit: int) -> bytes:
    """Return a file's first bytes, and no more than `limit`.

    Raises:
        IncompleteError: the file is missing or cannot be read.
    """
    try:
        _check_regular(path)
        with path.open("rb") as stream:
            return stream.read(limit)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_text(path: Path) -> str:
    """Return a file's UTF-8 text.

    Raises:
        IncompleteError: the file is missing or cannot be read.
        DamagedError: it is not UTF-8.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path.name} is not UTF-8 text", found=error, where=path) from None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks.

    Raises:
        IncompleteError: the file is missing or cannot be read.
    """
    try:
        _check_regular(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it there.

    Raises:
        IncompleteError: the folder cannot be written.
    """
    place = path.resolve()
    write_all(place.parent, {place.name: content})


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text as `write_bytes` does."""
    write_bytes(path, content.encode())


def check_target(path: Path) -> None:
    """Check, before work whose result is to be written to a file, that it can be.

    Raises:
        UsageError: it names no file.
        IncompleteError: its folder is missing or cannot be written, or what is there is no file.
    """
    if path.name in {"", "-", ".."}:
        raise UsageError("a file is needed", found=str(path))
    problem = None
    if path.exists() and not path.is_file():
        problem = "it is there and is no file"
    elif not path.parent.is_dir():
        problem = "its folder is missing"
    else:
        try:
            _beside(path).write_bytes(b"")
            _beside(path).unlink()
        except OSError as error:
            problem = error.strerror
    if problem:
        raise IncompleteError(
            f"{path.name} cannot be written", found=problem, where=path, remedy="give another file"
        )


def write_all(folder: Path, contents: Mapping[str, bytes], first: Path | None = None) -> None:
    """Write files beside their places, and rename them only once all are written.

    Args:
        folder: where the names begin.
        contents: bytes by name.
        first: a file that vouches for the old ones; it is removed once the new ones are ready.

    Raises:
        IncompleteError: a file cannot be written.
    """
    staged: dict[Path, Path] = {}
    try:
        for name, content in contents.items():
            path = folder / name
            staged[_beside(path)] = path
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise IsADirectoryError(EISDIR, "is there and is no file", str(path))
            _beside(path).write_bytes(content)
        if first is not None:
            first.unlink(missing_ok=True)
        for beside, path in staged.items():
            beside.replace(path)
    except OSError as error:
        raise IncompleteError(
            f"{folder.name} cannot be written", found=error.strerror or error, where=error.filename or folder
        ) from None
    finally:
        for beside in staged:
            with contextlib.suppress(OSError):
                beside.unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _check_regular(path: Path) -> None:
    """Refuse what is there but is no file: a folder, and a pipe that would never end."""
    if path.exists() and not path.is_file():
        raise IsADirectoryError(EISDIR, "is no file", str(path))


def unreadable(path: Path, error: OSError | ValueError) -> IncompleteError:
    """Return the error for a file that is missing or cannot be read."""
    return IncompleteError(
        f"{path.name} cannot be read",
        expected="a readable file",
        found=getattr(error, "strerror", None) or error,
        where=path,
        remedy="restore the file, or give another path",
    )
