"""Lists of files and their SHA-256, in the format of `sha256sum`, so that anybody can check them.

Of the same files there is one list: sorted by name, a line each. Its own SHA-256 therefore names their exact
bytes.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from toolkit.errors import DamagedError, VerificationError
from toolkit.files import read_bytes
from toolkit.line_ends import refuse_converted, refuse_converted_list

LARGEST_FROZEN = 8 * 2**20
"""Bytes of a frozen file: a thousand times the longest protocol here is text of a thousand pages."""
LARGEST_LIST = 2**20
"""Bytes of a list or a chain: ten thousand lines."""
LARGEST_REGISTRATION = 256 * 2**20
"""Bytes of all files that a list names: they are held at once."""
CACHED = "blobs"  # what the Hub's cache calls the folder of all contents

_LINE = re.compile(r"([0-9a-f]{64})  (\w[\w./-]*)", re.ASCII)


def write_list(contents: Mapping[str, bytes]) -> bytes:
    """Return the list of files, given their bytes by name."""
    lines = [f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents)]
    raw = "".join(lines).encode()
    entries(raw, "the list of files")
    return raw


def read_listed(folder: Path, list_name: str) -> tuple[str, dict[str, bytes]]:
    """Read the files that a hash list names and check each one."""
    raw = read_bytes(folder / list_name, LARGEST_LIST)
    refuse_converted_list(raw, VerificationError, folder / list_name)
    recorded = entries(raw, folder / list_name)
    contents: dict[str, bytes] = {}
    for name, sha256 in recorded.items():
        contents[name] = read_recorded(folder, name, sha256)
        if sum(map(len, contents.values())) > LARGEST_REGISTRATION:
            raise DamagedError(
                "the files of the list are too long to be read",
                expected=f"{LARGEST_REGISTRATION} bytes together at most",
                where=folder / list_name,
                remedy="keep data out of the registration, and name its SHA-256 in the protocol",
            )
    return hashlib.sha256(raw).hexdigest(), contents


def read_recorded(folder: Path, name: str, recorded: str) -> bytes:
    """Read a file and check its hash."""
    # The Hub's cache keeps every file as a link to its content, which is held against its hash here.
    is_cached = (folder / name).resolve().parent.name == CACHED
    if (folder / name).is_symlink() and not is_cached:
        raise VerificationError(
            f"{name} is a link: what it leads to is not part of the registration",
            expected="a file",
            where=folder / name,
            remedy="put the recorded file there",
        )
    content = read_bytes(folder / name, LARGEST_FROZEN)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != recorded:
        refuse_converted(name, content, recorded, VerificationError, folder / name)
        raise VerificationError(
            f"{name} was changed after its hash was recorded",
            expected=f"SHA-256 {recorded}",
            found=f"SHA-256 {sha256}",
            where=folder / name,
            remedy="restore the recorded file; to change a frozen rule, amend it in a file of its own",
        )
    return content


def leads_out(name: str) -> bool:
    """Whether a name leads out of its folder."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def entries(raw: bytes, where: Path | str) -> dict[str, str]:
    """Return the hashes of a list by name."""
    hashes: dict[str, str] = {}
    text = raw.decode("utf-8", errors="replace")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in hashes or leads_out(match[2]):
            raise DamagedError(
                "a hash list has a line that it cannot have",
                expected="64 hexadecimal digits, two spaces, a file name inside the folder, once each",
                found=line[:100],
                where=f"{where} line {number}",
            )
        hashes[match[2]] = match[1]
    if not text.endswith("\n") or list(hashes) != sorted(hashes):
        raise DamagedError(
            "a hash list is not written the one way that it has",
            expected="lines sorted by file name, each with its end",
            where=where,
        )
    return hashes
