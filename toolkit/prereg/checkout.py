"""Reading what somebody else keeps in a folder: nothing outside it, nothing endless, nothing but files."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.files import file_sha256, read_bytes

# A run's register has 40 kB; a pool of tasks 9 MB.
MAX_JSON = 8 << 20
MAX_POOL = 256 << 20
DEEPEST = 40


class Folder:
    """A checkout of somebody's repository.

    Args:
        root: its folder.

    Raises:
        UsageError: it is no folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError("a checkout is a folder", found=root, remedy="git clone the repository first")
        self.root = root.resolve()

    def has(self, name: str) -> bool:
        """Whether there is something under a name, whatever it is."""
        path = self.root / name
        return path.exists() or path.is_symlink()

    def read(self, name: str, limit: int) -> bytes:
        """Return a file's bytes."""
        return read_bytes(self._inside(name), limit)

    def sha256(self, name: str, limit: int = MAX_POOL) -> str:
        """Return the SHA-256 of a file, read in blocks; errors as `read`."""
        path = self._inside(name)
        size = path.stat().st_size
        if size > limit:
            raise DamagedError(
                f"{name} is too long to be read", expected=f"{limit} bytes at most", found=f"{size} bytes"
            )
        return file_sha256(path)

    def json(self, name: str) -> Any:
        """Return a JSON document, its numbers exactly as they are written; further errors as `read`."""
        raw = self.read(name, MAX_JSON)
        try:
            if _depth(raw) > DEEPEST:
                raise ValueError(f"nested more than {DEEPEST} deep")  # noqa: TRY301 - one message
            return json.loads(raw, parse_float=Decimal, parse_int=Decimal)
        except (ValueError, ArithmeticError, RecursionError) as error:
            raise DamagedError(f"{name} is not JSON", found=error, where=self.root / name) from None

    def _inside(self, name: str) -> Path:
        try:
            path = (self.root / name).resolve()
            if path.is_symlink():  # newer versions of Python leave a loop as it is
                raise RuntimeError("a link that leads to itself")  # noqa: TRY301 - one message
        except (OSError, RuntimeError, ValueError) as error:
            raise DamagedError(f"{name} cannot be followed", found=error, where=self.root) from None
        if not path.is_relative_to(self.root):
            raise VerificationError(
                f"{name} leads out of the checkout",
                expected="a file in it",
                found=path,
                where=self.root / name,
                remedy="take a checkout without such a link; nothing outside one is read",
            )
        if not path.exists():
            raise IncompleteError(
                f"the checkout has no {name}",
                where=self.root,
                remedy="take a checkout of the whole repository, at a commit after the freeze",
            )
        return path


def _depth(raw: bytes) -> int:
    """Return how deeply brackets are nested at most, those in strings counted, too."""
    depth = deepest = 0
    for byte in raw:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
