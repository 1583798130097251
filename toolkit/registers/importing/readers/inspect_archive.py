"""Archives of Inspect, examined before anything else opens them: what is read of one is copied, checked."""

from __future__ import annotations

import re
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import DamagedError
from toolkit.registers.importing.readers.cells import bounded
from toolkit.registers.importing.source import LARGEST_TABLE

MOST_MEMBERS = 2**20
"""Members: a sample is one, or some."""
LARGEST_DIRECTORY = 2**28
"""Bytes of an archive's list of members, a few hundred each."""
MOST_RATIO = 500
"""Bytes unpacked from one: JSON of samples gives ten to fifty."""
SMALL = 2**20
"""Bytes below which a ratio says nothing."""
_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)(?:\.json|/.+\.json)", re.DOTALL)
_TAIL = 2**16 + 22 + 76  # the longest comment, and the ends of the two sorts of archive
_ZSTANDARD = 93
_ENCRYPTED = 1


def checked_copy(path: Path, into: Path) -> tuple[Path, set[tuple[str, int]]]:
    """Copy what describes a log and its samples to an archive of its own.

    1. The list of members is of a size that one can have, and names JSON documents at places of their own.
    2. Header and summaries are unpacked: to the sizes that are written, whose sum and ratios are bounded.
    3. They are packed again, alone. Samples with all their messages are not opened.
    """
    _check_directory(path)
    try:
        with zipfile.ZipFile(path) as opened, path.open("rb") as raw:
            listed = opened.infolist()
            bounded("members", len(listed), MOST_MEMBERS, path)
            for member in listed:
                _check_name(member.filename, path)
            members = {member.filename: member for member in listed}
            samples = {(m["id"], int(m["epoch"])) for m in map(_SAMPLE.fullmatch, members) if m}
            wanted = _wanted(set(members))
            bounded("bytes", sum(members[name].file_size for name in wanted), LARGEST_TABLE, path)
            with zipfile.ZipFile(into / "log.eval", "w") as copy:
                for name in wanted:
                    copy.writestr(name, _unpacked(members[name], raw, path))
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from None
    return into / "log.eval", samples


def _damaged(path: Path, found: str) -> DamagedError:
    return DamagedError(
        f"{path.name} is not a readable archive of Inspect",
        expected="a zip archive of JSON documents, whole",
        found=found,
        where=path,
        remedy="copy the log again; `inspect log recover` mends one whose program was interrupted",
    )


def _check_directory(path: Path) -> None:
    with path.open("rb") as opened:
        opened.seek(max(0, path.stat().st_size - _TAIL))
        tail = opened.read()
    end, wide = tail.rfind(b"PK\x05\x06"), tail.rfind(b"PK\x06\x06")
    if end < 0:
        raise _damaged(path, "no end of an archive")
    size = int.from_bytes(tail[end + 12 : end + 16], "little")
    if wide >= 0:
        size = int.from_bytes(tail[wide + 40 : wide + 48], "little")
    bounded("bytes in its list of members", size, LARGEST_DIRECTORY, path)


def _check_name(name: str, path: Path) -> None:
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or ":" in parts[0] or ".." in parts or not name.endswith(".json"):
        raise DamagedError(
            "the archive has a member that Inspect does not write",
            expected="JSON documents below the archive's own folder",
            found=repr(name),
            where=path,
            remedy="whoever gave you the log changed it: ask for what Inspect wrote",
        )


def _wanted(names: set[str]) -> list[str]:
    """Return the members that are read: the journal where a log was not finished."""
    finished = {"header.json", "summaries.json"}
    journal = {name for name in names if name.startswith("_journal/")}
    return sorted(finished if finished <= names else (finished & names) | journal)


def _unpacked(member: zipfile.ZipInfo, raw: BinaryIO, path: Path) -> bytes:
    """Return a member's bytes: as many as are written, whatever its packed bytes would give."""
    if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
        raise DamagedError(
            "the archive has a member that unpacks to more than one can",
            expected=f"{MOST_RATIO} times its packed bytes at most",
            found=f"{member.filename}: {member.compress_size} bytes to {member.file_size}",
            where=path,
        )
    if member.flag_bits & _ENCRYPTED:
        raise zipfile.BadZipFile(f"{member.filename} is encrypted")
    raw.seek(member.header_offset)
    head = raw.read(30)
    raw.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    packed, most = raw.read(member.compress_size), member.file_size + 1
    if member.compress_type == zipfile.ZIP_STORED:
        content = packed
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
    elif member.compress_type == _ZSTANDARD:
        import zstandard

        try:
            unpacker = zstandard.ZstdDecompressor()
            content = unpacker.stream_reader(BytesIO(packed), read_across_frames=True).read(most)
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(f"{member.filename}: {error}") from None
    else:
        raise zipfile.BadZipFile(f"{member.filename} is packed in another way ({member.compress_type})")
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile(f"{member.filename} is not what the archive says of it")
    return content
