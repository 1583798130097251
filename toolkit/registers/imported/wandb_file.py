"""A run's file of Weights & Biases (`run-ID.wandb`), read without its package, which has no reader of it.

It is a LevelDB log, blocks of 32 KiB with checked pieces of records, whose records are Protocol Buffers
(`wandb/proto/wandb_internal.proto`, whose numbers of fields never change).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.files import read_bytes
from toolkit.registers.imported.source import LARGEST_TABLE

HEADER = b":W&B\xe1\xbe\x00"
_BLOCK = 2**15
_PIECE = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_HISTORY, _SUMMARY, _CONFIG, _RUN = 2, 3, 5, 17
_OTHERS = {4: "console output", 13: "console output", 7: "system metrics", 8: "artifacts", 10: "alerts"}
_RUN_FIELDS = {
    1: "id",
    3: "project",
    6: "group",
    7: "job_type",
    8: "name",
    9: "notes",
    12: "sweep_id",
    13: "host",
}


@dataclass
class WandbRun:
    """A run as its file says it; numbers are the text that they were written as.

    Args:
        history: column → value, a row a call of `log`.
        summary: column → last value.
        config: dotted name → value.
        run: `id`, `name`, `project`, `group`, `job_type`, `notes`, `sweep_id` and `host`, as far as said.
        launched_at: when it was started, in UTC.
        others: what else the file has, in words.
        is_cut_off: whether it ends within a record, as that of a killed run does.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    launched_at: str | None = None
    others: set[str] = field(default_factory=set)
    is_cut_off: bool = False


def read_wandb(path: Path) -> WandbRun:
    """Read a run's file.

    Raises:
        IncompleteError: it cannot be read.
        DamagedError: it is no such file, or a record of it is damaged.
    """
    content = read_bytes(path, LARGEST_TABLE)
    found = WandbRun()
    try:
        if not content.startswith(HEADER):
            raise ValueError("another beginning than a W&B file's")  # noqa: TRY301
        for record in _records(content, found):
            for number, value in _fields(record):
                if number in _OTHERS:
                    found.others.add(_OTHERS[number])
                elif isinstance(value, bytes):
                    _take(number, value, found)
    except (ValueError, OverflowError, IndexError, RecursionError) as error:
        raise DamagedError(
            f"{path.name} is not a readable W&B file",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=path,
        ) from None
    return found


def _records(content: bytes, found: WandbRun) -> Iterator[bytes]:
    """Yield the records of a log, each put together from its pieces."""
    at, parts = len(HEADER), list[bytes]()
    while at < len(content):
        room = _BLOCK - at % _BLOCK
        if room < _PIECE.size:
            at += room
            continue
        if at + _PIECE.size > len(content):
            break
        checksum, length, kind = _PIECE.unpack_from(content, at)
        piece = content[at + _PIECE.size : at + _PIECE.size + length]
        at += _PIECE.size + length
        if len(piece) < length:
            break
        if zlib.crc32(piece, zlib.crc32(bytes([kind]))) != checksum or kind not in range(_FULL, _LAST + 1):
            raise ValueError(f"a damaged record before byte {at}")
        if (kind in {_FULL, _FIRST}) != (not parts):
            raise ValueError(f"a record without its beginning or end before byte {at}")
        parts.append(piece)
        if kind in {_FULL, _LAST}:
            yield b"".join(parts)
            parts = []
    found.is_cut_off = bool(parts) or at > len(content) or 0 < len(content) - at < _PIECE.size


def _take(number: int, value: bytes, found: WandbRun) -> None:
    if number == _HISTORY:
        row = dict(_item(item) for kind, item in _fields(value) if kind == 1 and isinstance(item, bytes))
        found.history.append(row)
    elif number in {_SUMMARY, _CONFIG}:
        target = found.summary if number == _SUMMARY else found.config
        for kind, item in _fields(value):
            if isinstance(item, bytes):
                name, told = _item(item)
                target.pop(name, None)
                if kind == 1:
                    target[name] = told
    elif number == _RUN:
        _take_run(value, found)


def _take_run(value: bytes, found: WandbRun) -> None:
    for kind, told in _fields(value):
        if not isinstance(told, bytes):
            continue
        if kind in _RUN_FIELDS and told:
            found.run[_RUN_FIELDS[kind]] = told.decode()
        elif kind == 4:  # noqa: PLR2004 - its config, a ConfigRecord
            _take(_CONFIG, told, found)
        elif kind == 17:  # noqa: PLR2004 - its start, a Timestamp
            parts = {number: part for number, part in _fields(told) if isinstance(part, int)}
            start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
                seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000
            )
            found.launched_at = start.isoformat()


def _item(item: bytes) -> tuple[str, Any]:
    """Return the dotted name of an item, and its JSON value with numbers as they are written."""
    key, nested, value = "", list[str](), None
    for kind, told in _fields(item):
        if not isinstance(told, bytes):
            continue
        if kind == 1:
            key = told.decode()
        elif kind == 2:  # noqa: PLR2004
            nested.append(told.decode())
        elif kind == 16:  # noqa: PLR2004
            value = json.loads(told, parse_int=str, parse_float=str)
    return ".".join(nested) or key, value


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message: their numbers, and bytes or whole numbers."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:  # noqa: PLR2004
            length, at = _varint(message, at)
        else:
            length = {1: 8, 5: 4}.get(kind, len(message) + 1)
        if at + length > len(message):
            raise ValueError("a message that is cut off")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004
            return value, at
        if shift > 63:  # noqa: PLR2004
            raise ValueError("a number of more than 64 bits")
