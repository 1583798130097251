"""What a registration's own files say beside its rules: freeze record, amendments, deviations, trust file."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from toolkit.documents.verification import OwnStanding
from toolkit.errors import DamagedError
from toolkit.files import read_text

SHIPPED = Path(__file__).parent
RECORD = "record.toml"
FROZEN = "FROZEN.sha256"
EVIDENCE = "evidence"
PUBLIC: Final = "public"
DEMONSTRATION: Final = "demonstration"
STANDINGS = (PUBLIC, DEMONSTRATION)
AMENDMENTS = "amendments"
DEVIATIONS = "deviations"
KINDS = ("deviation", "disclosure")
# Years between which a margin can be added to a moment; RFC 3161 is from 2001.
EARLIEST, LATEST = 1990, 9998
UNFILLED = "FILL IN"
AFTER_RUNS = "after_runs"


@dataclass(frozen=True)
class Authority:
    """One time-stamping authority of the freeze."""

    name: str  # its name in the trust file
    address: str  # where it was asked
    recorded_time: datetime  # the time it gave, as recorded; the token says it itself
    token_place: str  # file of the token
    request_place: str = ""  # file of the request that it answers, or nothing


@dataclass(frozen=True)
class Checkout:
    """Where a checkout of the repository of a frozen document keeps its proof; paths are relative to it."""

    document: str  # the document
    digest: str  # the file with its SHA-256
    freeze: str  # the authors' own record of the freeze, JSON
    request: str  # the request that the tokens answer
    certificates: tuple[str, ...]  # files with certificates of the authorities
    tokens: Mapping[str, str]  # authority → its token
    manifest: str  # the list of the task pools, JSON
    pools: Mapping[str, str]  # file of a task pool → its SHA-256, as transcribed from that list
    runs: str  # folder of the runs' registers, a JSON file a run


@dataclass(frozen=True)
class FreezeRecord:
    """What was timestamped, when, and where a reader puts or finds the evidence."""

    standing: OwnStanding  # `public`, or `demonstration` where the authorities were made for the occasion
    document: str  # what was timestamped, in words
    document_sha256: str  # its hash
    document_place: str  # its file: the list of frozen files, or one that a reader provides
    frozen_at: datetime  # when it was frozen, by the clock of whoever did it
    freeze_commit: str  # the commit that it was frozen at, or nothing
    source: str  # where the evidence comes from
    authorities: tuple[Authority, ...]  # who timestamped it
    checkout: Checkout | None = None  # where a checkout of its authors' repository keeps it, if it is said

    @property
    def is_restated(self) -> bool:
        """Whether the rules here restate a document that was timestamped elsewhere."""
        return self.document_place != FROZEN


def read_record(content: bytes) -> FreezeRecord:
    """Read a freeze record."""
    document = tomllib.loads(content.decode())
    record = FreezeRecord(
        standing=cast("OwnStanding", text(document["standing"])),
        frozen_at=utc(document["frozen_at"]),
        freeze_commit=document.get("freeze_commit", ""),
        authorities=tuple(
            Authority(
                recorded_time=utc(entry["recorded_time"]),
                request_place=entry.get("request_place", ""),
                **_texts_of(entry, "name", "address", "token_place"),
            )
            for entry in document["authorities"]
        ),
        checkout=_checkout(document["checkout"]) if "checkout" in document else None,
        **_texts_of(document, "document", "document_sha256", "document_place", "source"),
    )
    if record.standing not in STANDINGS:
        raise ValueError(f"standing {record.standing!r} is none of {', '.join(STANDINGS)}")
    if not re.fullmatch(r"[0-9a-f]{64}", record.document_sha256):
        raise ValueError("document_sha256 is no SHA-256")
    if not record.authorities:
        raise ValueError("a freeze has authorities")
    places = [path for a in record.authorities for path in (a.token_place, a.request_place) if path]
    if record.is_restated:
        places.append(record.document_place)
    for path in places:
        if not re.fullmatch(rf"{EVIDENCE}/\w[\w.-]*", path):
            raise ValueError(f"{path!r} is no file under {EVIDENCE}/")
    if len(set(places)) != len(places):
        raise ValueError("one file is named twice")
    return record


def write_record(record: FreezeRecord) -> bytes:
    """Return a freeze record as TOML."""
    lines = [
        "# The freeze: what was timestamped, by whom, when, and where the evidence is.",
        "",
        *(f"{name} = {_toml(getattr(record, name))}" for name in _STATED),
    ]
    for authority in record.authorities:
        stated = (f"{field.name} = {_toml(getattr(authority, field.name))}" for field in fields(authority))
        lines += ["", "[[authorities]]", *stated]
    return ("\n".join(lines) + "\n").encode()


_STATED = tuple(f.name for f in fields(FreezeRecord) if f.name not in {"authorities", "checkout"})


def _checkout(entry: dict[str, Any]) -> Checkout:
    checkout = Checkout(
        certificates=texts(entry["certificates"]),
        tokens={text(name): text(path) for name, path in entry["tokens"].items()},
        pools={text(path): text(sha256) for path, sha256 in entry["pools"].items()},
        **_texts_of(entry, "document", "digest", "freeze", "request", "manifest", "runs"),
    )
    paths = (checkout.document, checkout.digest, checkout.freeze, checkout.request, checkout.manifest)
    for path in (*paths, checkout.runs, *checkout.certificates, *checkout.tokens.values(), *checkout.pools):
        if leads_out(path):
            raise ValueError(f"{path!r} leads out of a checkout")
    return checkout


def _toml(value: str | tuple[str, ...] | datetime) -> str:
    """Return a value as TOML; JSON's escapes and lists are TOML's."""
    is_time = isinstance(value, datetime)
    return f"{value:%Y-%m-%dT%H:%M:%SZ}" if is_time else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Amendment:
    """A change of rules before the data it concerns."""

    id: str  # id, dated, title, reason, changes, note: as it says itself
    dated: date
    title: str
    seen: str  # what had been seen when it was made
    reason: str
    changes: tuple[str, ...]
    replaces: tuple[str, ...]  # the rules it changes
    restates: tuple[str, ...]  # rules that it leaves unchanged and that read what it changed
    adds: tuple[str, ...]  # rules that there were not before it
    note: str
    file: str  # its file, relative to the registration
    sha256: str  # of that file
    rules: str  # its text
    after_runs: bool = False  # whether it says that it was made after runs: it binds nothing then


@dataclass(frozen=True)
class Deviation:
    """An event that departs from the protocol, or a disclosure; it changes no rule."""

    id: str  # id, title, text: as it says itself
    dated: date | None  # when it happened, or None where no record gives a day
    kind: str  # `deviation` or `disclosure`
    title: str
    text: str
    seen: str  # what had been seen when it was recorded; empty where that is not told
    concerns: tuple[str, ...]  # the rules that it bears on


def read_amendment(name: str, content: bytes) -> Amendment:
    """Read an amendment file."""
    source = content.decode()
    head = tomllib.loads(source)["amendment"]
    return Amendment(
        id=_identifier(head, name),
        dated=date.fromisoformat(head["dated"]),
        changes=texts(head["changes"]),
        replaces=texts(head.get("replaces", [])),
        restates=texts(head.get("restates", [])),
        adds=texts(head.get("adds", [])),
        note=text(head["note"]) if "note" in head else "",
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        rules=source,
        after_runs=_flag(head.get(AFTER_RUNS, False)),
        **_texts_of(head, "title", "seen", "reason"),
    )


def read_deviation(name: str, content: bytes) -> Deviation:
    """Read a deviation file."""
    entry = tomllib.loads(content.decode())["deviation"]
    deviation = Deviation(
        id=_identifier(entry, name),
        dated=date.fromisoformat(entry["dated"]) if "dated" in entry else None,
        seen=text(entry["seen"]) if "seen" in entry else "",
        concerns=texts(entry["concerns"]),
        **_texts_of(entry, "kind", "title", "text"),
    )
    if deviation.kind not in KINDS:
        raise ValueError(f"kind {deviation.kind!r} is none of {', '.join(KINDS)}")
    return deviation


def _identifier(entry: dict[str, Any], name: str) -> str:
    """Return the entry's id, which is its file's name, too."""
    identifier = text(entry["id"])
    if name.rpartition("/")[2] != f"{identifier}.toml":
        raise ValueError(f"{name} has the id {identifier!r}")
    return identifier


# Fields of a registration's own files: whatever is wrong with one is a TypeError or ValueError.


def text(value: object) -> str:
    """Return text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"expected text, found {value!r}")
    if value.startswith(UNFILLED):
        raise ValueError(f"{value!r} was left as in the template")
    return value


def _texts_of(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: text(table[name]) for name in names}


def texts(values: object) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(values, list):
        raise TypeError(f"expected a list of texts, found {values!r}")
    return tuple(text(value) for value in values)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is refused."""
    if moment.tzinfo is None:
        raise TypeError(f"{moment} has no time zone")
    in_utc = moment.astimezone(UTC)
    if not EARLIEST <= in_utc.year <= LATEST:
        raise ValueError(f"{moment} is out of range")
    return in_utc


def leads_out(name: str) -> bool:
    """Whether a name leads out of its folder."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


TRUST = "trust.toml"
PILOTS = "pilots.json"
"""What was seen before the freeze, which the freeze puts there itself."""
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"https?://\S+|demonstration", re.ASCII)
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class Trusted:
    """An authority."""

    name: str  # as people know it
    slug: str  # as file names have it
    operator: str  # who runs it; two authorities of one operator count as one
    address: str  # where it answers
    roots: tuple[str, ...]  # SHA-256 fingerprints of its pinned certificates, hexadecimal
    policies: tuple[str, ...] = ()  # object identifiers of the policies accepted; any where none is named
    certificates: str = ""  # where its root certificate can be had


def known_authorities(*more: Path) -> tuple[Trusted, ...]:
    """Return the authorities that this version ships, and those of a reader's own trust files."""
    shipped = (SHIPPED / "authorities.toml").read_text(encoding="utf-8")
    authorities = list(parse_trust(shipped, "authorities.toml"))
    for path in more:
        authorities += parse_trust(read_text(path), path)
    return tuple(authorities)


def known_restatements(more: Iterable[str] = ()) -> frozenset[str]:
    """Return the restatements that somebody stands for, by the last link of their chain."""
    shipped = tomllib.loads((SHIPPED / "restatements.toml").read_text(encoding="utf-8"))
    return frozenset((*(entry["link"] for entry in shipped["restatements"]), *more))


def parse_trust(text: str, where: Path | str) -> tuple[Trusted, ...]:
    """Read a trust file."""
    try:
        authorities = tuple(_trusted(entry) for entry in tomllib.loads(text)["authorities"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(
            "a trust file does not say what it has to",
            expected="[[authorities]] with name, operator, address and roots (SHA-256 fingerprints)",
            found=f"{type(error).__name__}: {error}",
            where=where,
        ) from None
    slugs = [authority.slug for authority in authorities]
    if len(set(slugs)) != len(slugs):
        raise DamagedError("a trust file names an authority twice", found=", ".join(slugs), where=where)
    return authorities


def write_trust(authorities: Iterable[Trusted], comment: str) -> str:
    """Return a trust file."""
    lines = [f"# {comment}"]
    for authority in authorities:
        stated = ((f.name, getattr(authority, f.name)) for f in fields(authority) if f.name != "slug")
        lines += ["", "[[authorities]]", *(f"{name} = {_toml(value)}" for name, value in stated if value)]
    return "\n".join(lines) + "\n"


def operator_of(root_sha256: str, known: Iterable[Trusted]) -> str | None:
    """Return the operator of a pinned root, or None where no known authority has it."""
    return next((authority.operator for authority in known if root_sha256 in authority.roots), None)


def slug_of(name: str) -> str:
    """Return a name as file names have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")


def _trusted(entry: dict[str, Any]) -> Trusted:
    authority = Trusted(
        name=_text(entry["name"]),
        slug=slug_of(_text(entry["name"])),
        operator=_text(entry["operator"]),
        address=_text(entry["address"]),
        roots=tuple(_text(root).lower() for root in entry["roots"]),
        policies=tuple(_text(policy) for policy in entry.get("policies", [])),
        certificates=entry.get("certificates", ""),
    )
    if not authority.roots or not all(_FINGERPRINT.fullmatch(root) for root in authority.roots):
        raise ValueError(f"{authority.name}: roots are SHA-256 fingerprints, 64 hexadecimal digits each")
    if not _ADDRESS.fullmatch(authority.address):
        raise ValueError(f"{authority.name}: {authority.address!r} is no http(s) address")
    if not _SLUG.fullmatch(authority.slug):
        raise ValueError(f"{authority.name!r} has no letter or digit")
    return authority


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value or '"' in value or "\\" in value:
        raise TypeError(f"expected plain text, found {value!r}")
    return value
