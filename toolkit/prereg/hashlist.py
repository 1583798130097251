"""Lists of files and their SHA-256, in the format of `sha256sum`, so that anybody can check them."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, VerificationError
from toolkit.files import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"([0-9a-f]{64})  (\w[\w./-]*)", re.ASCII)


def read_listed(folder: Path, list_name: str) -> tuple[str, dict[str, bytes]]:
    """Read the files that a hash list names and check each one.

    Args:
        folder: the folder that the names are relative to.
        list_name: file name of the list.

    Returns:
        SHA-256 of the list itself, and the files' bytes by name.

    Raises:
        IncompleteError: the list or a file is missing or cannot be read.
        DamagedError: the list is no hash list.
        VerificationError: a file was changed after its hash was recorded.
    """
    raw = read_bytes(folder / list_name)
    contents = {}
    for name, recorded in _entries(raw, folder / list_name).items():
        content = read_bytes(folder / name)
        found = hashlib.sha256(content).hexdigest()
        if found != recorded:
            raise VerificationError(
                f"{name} was changed after its hash was recorded",
                expected=f"SHA-256 {recorded}",
                found=f"SHA-256 {found}",
                where=folder / name,
                remedy="restore the recorded file; to change a frozen rule, amend it in a file of its own",
            )
        contents[name] = content
    return hashlib.sha256(raw).hexdigest(), contents


def _entries(raw: bytes, where: Path) -> dict[str, str]:
    entries: dict[str, str] = {}
    for number, line in enumerate(raw.decode("utf-8", errors="replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in entries or _leads_out(match[2]):
            raise DamagedError(
                "a hash list has a line that it cannot have",
                expected="64 hexadecimal digits, two spaces, a file name inside the folder, once each",
                found=line[:100],
                where=f"{where} line {number}",
            )
        entries[match[2]] = match[1]
    return entries


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts
