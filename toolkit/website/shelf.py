"""What takes long to make is kept in the reader's cache, by everything that it is made from."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError
from toolkit.files import write_all

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_LENGTH = 16


@dataclass(frozen=True)
class Shelf:
    """A folder of things made by one state of the code.

    Args:
        kind: what lies there.
        code: digest of the code that makes it.
    """

    kind: str
    code: str

    @property
    def folder(self) -> Path:
        """Where it lies; another state of the code has another folder."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "toolkit" / self.kind / self.code[:NAME_LENGTH]

    @property
    def is_empty(self) -> bool:
        """Whether this state of the code has kept nothing yet."""
        return not self.folder.is_dir()

    def take(self, said: str) -> bytes | None:
        """Return what was kept for an input; None where nothing was, or it is not what was put there.

        Args:
            said: everything that it is made from, beside the code.
        """
        place = self._place(said)
        try:
            digest, _, content = place.read_bytes().partition(b"\n")
        except OSError:
            return None
        return content if _seal(place.name, content) == digest else None

    def put(self, said: str, content: bytes) -> None:
        """Keep what was made from an input; a cache that cannot be written makes the next build slower."""
        name = self._place(said).name
        with suppress(IncompleteError, OSError):
            write_all(self.folder, {name: _seal(name, content) + b"\n" + content})

    def _place(self, said: str) -> Path:
        return self.folder / hashlib.sha256(f"{self.code}\n{said}".encode()).hexdigest()


def _seal(name: str, content: bytes) -> bytes:
    """Return the digest of what is kept under its own name: nothing else is taken for it."""
    return hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()


def code_digest(files: Iterable[Path], packages: Iterable[str]) -> str:
    """Return the digest of source files and of the versions of the packages that they use."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    for name in packages:
        digest.update(f"{name} {version(name)}".encode())
    return digest.hexdigest()
