"""A registration: a folder whose frozen files, and whose later ones, are exactly the recorded bytes."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, VerificationError
from toolkit.prereg.hashlist import read_listed

if TYPE_CHECKING:
    from pathlib import Path

FROZEN = "FROZEN.sha256"
LATER = "LATER.sha256"
EVIDENCE = "evidence"
STANDINGS = ("public", "demonstration")


@dataclass(frozen=True)
class Authority:
    """One time-stamping authority of the freeze, as recorded."""

    name: str
    address: str
    recorded_time: datetime
    token_place: str


@dataclass(frozen=True)
class FreezeRecord:
    """What was timestamped, when, and where a reader puts the evidence."""

    standing: str
    document: str
    document_sha256: str
    frozen_at: datetime
    freeze_commit: str
    source: str
    document_place: str
    authorities: tuple[Authority, ...]


@dataclass(frozen=True)
class Amendment:
    """A change of rules before the data it concerns.

    Args:
        id, dated, title, reason, changes, note: as it says itself.
        seen: what had been seen when it was made.
        replaces: the rules it changes.
        restates: rules that it leaves unchanged and that read what it changed.
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
    note: str
    file: str
    sha256: str
    rules: str


@dataclass(frozen=True)
class Deviation:
    """A deviation from the protocol, or a disclosure; it changes no rule."""

    id: str
    dated: date | None
    kind: str
    title: str
    text: str
    concerns: tuple[str, ...]


@dataclass(frozen=True)
class DisclosedException:
    """A run that may precede the freeze because the frozen document names it."""

    run: str
    reason: str


@dataclass(frozen=True)
class Registration:
    """A registration whose every file matched its recorded hash.

    Args:
        folder: where it lies.
        name: its name.
        title: its title.
        sha256: digest of the frozen files: the SHA-256 of their hash list.
        protocol: the protocol's text.
        rules: the frozen rules, as TOML text.
        record: the freeze.
        amendments: in the order in which they were recorded.
        deviations: in order.
        exceptions: runs disclosed in the frozen rules.
    """

    folder: Path
    name: str
    title: str
    sha256: str
    protocol: str
    rules: str
    record: FreezeRecord
    amendments: tuple[Amendment, ...]
    deviations: tuple[Deviation, ...]
    exceptions: tuple[DisclosedException, ...]


def load_registration(folder: Path) -> Registration:
    """Load a registration, checking every file against its recorded hash.

    Raises:
        IncompleteError: a file is missing or cannot be read.
        VerificationError: a file was changed after its hash was recorded, or was never recorded.
        DamagedError: a file is not what it has to be.
    """
    digest, frozen = read_listed(folder, FROZEN)
    _, later = read_listed(folder, LATER)
    _refuse_unlisted(folder, {*frozen, *later, FROZEN, LATER})
    try:
        rules = frozen["rules.toml"].decode()
        head = tomllib.loads(rules)
        amendments = tuple(
            _amendment(name, content) for name, content in later.items() if name.startswith("amendments/")
        )
        _refuse_one_id_twice(amendments)
        return Registration(
            folder=folder,
            name=_text(head["name"]),
            title=_text(head["title"]),
            sha256=digest,
            protocol=frozen["protocol.md"].decode(),
            rules=rules,
            record=_record(tomllib.loads(later["record.toml"].decode())),
            amendments=amendments,
            deviations=tuple(
                _deviation(entry) for entry in tomllib.loads(later["deviations.toml"].decode())["entries"]
            ),
            exceptions=tuple(
                DisclosedException(_text(e["run"]), _text(e["reason"])) for e in head.get("exceptions", [])
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedError(
            f"registration {folder.name!r} has a file that does not say what it has to",
            found=f"{type(error).__name__}: {error}",
            where=folder,
        ) from None


def _refuse_one_id_twice(amendments: tuple[Amendment, ...]) -> None:
    if len({amendment.id for amendment in amendments}) != len(amendments):
        raise ValueError("two amendments have one id")


def _refuse_unlisted(folder: Path, listed: set[str]) -> None:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in listed and not name.startswith((f"{EVIDENCE}/", ".")):
            raise VerificationError(
                f"{name} belongs to no hash list of the registration",
                expected=f"only files that {FROZEN} or {LATER} names, and those under {EVIDENCE}/",
                where=path,
                remedy="remove the file, or record it",
            )


def _record(document: dict[str, Any]) -> FreezeRecord:
    authorities = tuple(
        Authority(_text(a["name"]), _text(a["address"]), _utc(a["recorded_time"]), _text(a["token_place"]))
        for a in document["authorities"]
    )
    fields = ("standing", "document", "document_sha256", "freeze_commit", "source", "document_place")
    record = FreezeRecord(
        **{name: _text(document[name]) for name in fields},
        frozen_at=_utc(document["frozen_at"]),
        authorities=authorities,
    )
    if record.standing not in STANDINGS:
        raise ValueError(f"standing {record.standing!r} is none of {', '.join(STANDINGS)}")
    if not re.fullmatch(r"[0-9a-f]{64}", record.document_sha256):
        raise ValueError("document_sha256 is no SHA-256")
    if not authorities:
        raise ValueError("a freeze has authorities")
    for place in (record.document_place, *(authority.token_place for authority in authorities)):
        if not re.fullmatch(rf"{EVIDENCE}/\w[\w.-]*", place):
            raise ValueError(f"{place!r} is no file under {EVIDENCE}/")
    return record


def _amendment(name: str, content: bytes) -> Amendment:
    text = content.decode()
    head = tomllib.loads(text)["amendment"]
    return Amendment(
        id=_text(head["id"]),
        dated=date.fromisoformat(head["dated"]),
        title=_text(head["title"]),
        seen=_text(head["seen"]),
        reason=_text(head["reason"]),
        changes=_texts(head["changes"]),
        replaces=_texts(head["replaces"]),
        restates=_texts(head.get("restates", [])),
        note=head.get("note", ""),
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        rules=text,
    )


def _deviation(entry: dict[str, Any]) -> Deviation:
    return Deviation(
        id=_text(entry["id"]),
        dated=date.fromisoformat(entry["dated"]) if "dated" in entry else None,
        kind=_text(entry["kind"]),
        title=_text(entry["title"]),
        text=_text(entry["text"]),
        concerns=_texts(entry["concerns"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected text, found {value!r}")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list of texts, found {values!r}")
    return tuple(_text(value) for value in values)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise TypeError(f"{moment} has no time zone")
    return moment.astimezone(UTC)
