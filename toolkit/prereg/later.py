"""What is added after a freeze: amendments, which change rules, and deviations, which record events."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from datetime import date
from typing import Any

from toolkit.prereg.record import text, texts

AMENDMENTS = "amendments"
DEVIATIONS = "deviations"


@dataclass(frozen=True)
class Amendment:
    """A change of rules before the data it concerns.

    Args:
        id, dated, title, reason, changes, note: as it says itself.
        seen: what had been seen when it was made.
        replaces: the rules it changes.
        restates: rules that it leaves unchanged and that read what it changed.
        adds: rules that there were not before it.
        file: its file, relative to the registration.
        sha256: of that file.
        rules: its text.
    """

    id: str
    dated: date
    title: str
    seen: str
    reason: str
    changes: tuple[str, ...]
    replaces: tuple[str, ...]
    restates: tuple[str, ...]
    adds: tuple[str, ...]
    note: str
    file: str
    sha256: str
    rules: str


@dataclass(frozen=True)
class Deviation:
    """An event that departs from the protocol, or a disclosure; it changes no rule.

    Args:
        id, title, text: as it says itself.
        dated: when it happened, or None where no record gives a day.
        kind: `deviation` or `disclosure`.
        seen: what had been seen when it was recorded; empty where that is not told.
        concerns: the rules that it bears on.
    """

    id: str
    dated: date | None
    kind: str
    title: str
    text: str
    seen: str
    concerns: tuple[str, ...]


KINDS = ("deviation", "disclosure")


def read_amendment(name: str, content: bytes) -> Amendment:
    """Read an amendment file.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is none.
    """
    source = content.decode()
    head = tomllib.loads(source)["amendment"]
    return Amendment(
        id=_identifier(head, name),
        dated=date.fromisoformat(head["dated"]),
        title=text(head["title"]),
        seen=text(head["seen"]),
        reason=text(head["reason"]),
        changes=texts(head["changes"]),
        replaces=texts(head.get("replaces", [])),
        restates=texts(head.get("restates", [])),
        adds=texts(head.get("adds", [])),
        note=text(head["note"]) if "note" in head else "",
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        rules=source,
    )


def read_deviation(name: str, content: bytes) -> Deviation:
    """Read a deviation file.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is none.
    """
    entry = tomllib.loads(content.decode())["deviation"]
    deviation = Deviation(
        id=_identifier(entry, name),
        dated=date.fromisoformat(entry["dated"]) if "dated" in entry else None,
        kind=text(entry["kind"]),
        title=text(entry["title"]),
        text=text(entry["text"]),
        seen=text(entry["seen"]) if "seen" in entry else "",
        concerns=texts(entry["concerns"]),
    )
    if deviation.kind not in KINDS:
        raise ValueError(f"kind {deviation.kind!r} is none of {', '.join(KINDS)}")
    return deviation


def _identifier(entry: dict[str, Any], name: str) -> str:
    """Return the entry's id, which is its file's name, too."""
    found = text(entry["id"])
    if name.rpartition("/")[2] != f"{found}.toml":
        raise ValueError(f"{name} has the id {found!r}")
    return found
