"""A registration's own files beside its rules: freeze record, amendments, deviations, trust files."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta
from msgspec.structs import asdict, force_setattr

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.structs import Document, about, parse

SHIPPED = Path(__file__).parent
RECORD = "record.toml"
FROZEN = "FROZEN.sha256"
EVIDENCE = "evidence"
PUBLIC: Final = "public"
DEMONSTRATION: Final = "demonstration"
AMENDMENTS = "amendments"
DEVIATIONS = "deviations"
# Years between which a margin can be added to a moment; RFC 3161 is from 2001.
EARLIEST, LATEST = 1990, 9998
UNFILLED = "FILL IN"
INSIDE = r"(?!/)(?!(?s:.*/)?\.\.(?:/|\Z))"
"""What a path within a folder begins with."""

Text = Annotated[str, Meta(pattern=r"\S")]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
FrozenStanding = Literal["public", "demonstration"]
Moment = Annotated[datetime, Meta(tz=True)]
Place = Annotated[str, Meta(pattern=rf"\A{EVIDENCE}/\w[\w.-]*\Z")]
Path_ = Annotated[str, Meta(pattern=rf"\A{INSIDE}(?s:.)*\S")]
T = TypeVar("T")


def parse_toml(kind: type[T], content: bytes, where: object, table: str = "") -> T:
    """Return a TOML file, or one table of it, as its type has it."""
    problem = "a file of a registration is invalid"
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise DamagedError(problem, found=error, where=where) from None
    part = document.get(table) if table else document
    if isinstance(part, dict):
        for key, value in part.items():
            for held in value if isinstance(value, list) else [value]:
                if isinstance(held, str) and held.startswith(UNFILLED):
                    found = f"{held!r} of {key!r} was left as in the template"
                    raise DamagedError(problem, found=found, where=where)
    return parse(kind, part, problem, where)


def decoded(content: bytes, where: object) -> str:
    """Return a file's text."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DamagedError("a file is not UTF-8 text", found=error, where=where) from None


class Authority(Document, frozen=True):
    """One time-stamping authority of the freeze."""

    name: Annotated[Text, about("Its name in the trust file.")]
    address: Annotated[Text, about("Where it was asked.")]
    recorded_time: Annotated[Moment, about("The time that it gave, as recorded; the token has its own.")]
    token_place: Place
    request_place: Annotated[
        str,
        Meta(pattern=rf"\A({EVIDENCE}/\w[\w.-]*)?\Z"),
        about("File of the request that the token answers, or nothing."),
    ] = ""

    def __post_init__(self) -> None:
        _to_utc(self, "recorded_time")


class Checkout(Document, frozen=True):
    """Where a checkout of the repository of a frozen document keeps its proof; paths are relative to it."""

    document: Path_
    digest: Annotated[Path_, about("The file with the document's SHA-256.")]
    freeze: Annotated[Path_, about("The authors' own record of the freeze, JSON.")]
    request: Annotated[Path_, about("The request that the tokens answer.")]
    certificates: Annotated[tuple[Path_, ...], about("Files with certificates of the authorities.")]
    tokens: Annotated[dict[Text, Path_], about("Authority → its token.")]
    manifest: Annotated[Path_, about("The list of the task pools, JSON.")]
    pools: Annotated[dict[Path_, Text], about("File of a task pool → its SHA-256 in that list.")]
    runs: Annotated[Path_, about("Folder of the runs' registers, a JSON file a run.")]


class FreezeRecord(Document, frozen=True, kw_only=True):
    """What was timestamped, when, and where a reader puts or finds the evidence."""

    standing: Annotated[
        FrozenStanding,
        about("`demonstration`: its authorities were made for the occasion."),
    ]
    document: Annotated[Text, about("What was timestamped, in words.")]
    document_sha256: Sha256
    document_place: Annotated[
        str,
        Meta(pattern=rf"\A({re.escape(FROZEN)}|{EVIDENCE}/\w[\w.-]*)\Z"),
        about("The list of frozen files, or a document that a reader provides."),
    ]
    frozen_at: Annotated[Moment, about("By the clock of whoever froze it.")]
    freeze_commit: str = ""
    source: Annotated[Text, about("Where the evidence comes from.")]
    authorities: Annotated[tuple[Authority, ...], Meta(min_length=1)]
    checkout: Checkout | None = None

    def __post_init__(self) -> None:
        _to_utc(self, "frozen_at")
        places = [self.document_place]
        places += [place for a in self.authorities for place in (a.token_place, a.request_place) if place]
        if len(set(places)) != len(places):
            raise ValueError("one file is named twice")

    @property
    def is_restated(self) -> bool:
        """Whether the rules here restate a document that was timestamped elsewhere."""
        return self.document_place != FROZEN


def _to_utc(document: Authority | FreezeRecord, name: str) -> None:
    moment = getattr(document, name)
    if not EARLIEST <= moment.year <= LATEST:
        raise ValueError(f"{moment} is out of range")
    force_setattr(document, name, moment.astimezone(UTC))


def write_record(record: FreezeRecord) -> bytes:
    """Return a freeze record as TOML."""
    lines = ["# The freeze: what was timestamped, by whom, when, and where the evidence is.", ""]
    lines += _lines(record, "authorities", "checkout")
    for authority in record.authorities:
        lines += ["", "[[authorities]]", *_lines(authority)]
    return ("\n".join(lines) + "\n").encode()


def _lines(document: Document, *but: str) -> list[str]:
    """Return fields as lines of TOML; JSON's escapes and lists are TOML's."""
    return [
        f"{name} = {value:%Y-%m-%dT%H:%M:%SZ}"
        if isinstance(value, datetime)
        else f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in asdict(document).items()
        if name not in but
    ]


class AmendmentHead(Document, frozen=True, kw_only=True):
    """What an amendment, a change of rules before the data that it concerns, says of itself."""

    id: Annotated[Text, about("Its name, and that of its file.")]
    dated: Annotated[date, about("The day of its writing, YYYY-MM-DD.")]
    title: Annotated[Text, about("What it is about, in a few words.")]
    seen: Annotated[Text, about("What had been seen when it was made.")]
    reason: Annotated[Text, about("Why the frozen text cannot stand.")]
    changes: Annotated[tuple[Text, ...], about("What is different now, in words.")]
    replaces: Annotated[tuple[Text, ...], about("Rules that it changes.")] = ()
    restates: Annotated[tuple[Text, ...], about("Rules that it leaves, and that read what it changed.")] = ()
    adds: Annotated[tuple[Text, ...], about("Rules that there were not before it.")] = ()
    note: Annotated[Text, about("What else there is to say.")] = ""
    document: Annotated[Text, about("The document that it restates.")] = ""
    after_runs: Annotated[bool, about("Whether it was made after runs: it binds nothing then.")] = False


class Amendment(AmendmentHead, frozen=True, kw_only=True):
    """An amendment's file."""

    rules: Annotated[str, about("Its text.")]

    @property
    def file(self) -> str:
        """Its place, relative to the registration."""
        return f"{AMENDMENTS}/{self.id}.toml"

    @property
    def sha256(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.rules.encode()).hexdigest()


class Deviation(Document, frozen=True, kw_only=True):
    """An event that departs from the protocol, or a disclosure; it changes no rule."""

    id: Text
    dated: Annotated[date | None, about("When it happened; absent where no record gives a day.")] = None
    kind: Literal["deviation", "disclosure"]
    title: Text
    text: Text
    seen: Annotated[Text, about("What had been seen when it was recorded.")] = ""
    concerns: Annotated[tuple[Text, ...], about("The rules that it bears on.")]

    @property
    def file(self) -> str:
        """Its place, relative to the registration."""
        return f"{DEVIATIONS}/{self.id}.toml"


def read_amendment(content: bytes, where: object) -> Amendment:
    """Read an amendment file."""
    head = parse_toml(AmendmentHead, content, where, "amendment")
    return Amendment(**asdict(head), rules=content.decode())


def read_deviation(content: bytes, where: object) -> Deviation:
    """Read a deviation file."""
    return parse_toml(Deviation, content, where, "deviation")


TRUST = "trust.toml"
PILOTS = "pilots.json"
"""What was seen before the freeze, which the freeze puts there itself."""
Plain = Annotated[str, Meta(pattern=r'\A[^"\\]+\Z')]


class Trusted(Document, frozen=True):
    """An authority."""

    name: Annotated[Plain, about("As people know it.")]
    operator: Annotated[Plain, about("Who runs it; two authorities of one operator count as one.")]
    address: Annotated[str, Meta(pattern=r"\A(https?://\S+|demonstration)\Z")]
    roots: Annotated[
        tuple[Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{64}\Z")], ...],
        about("SHA-256 of its pinned certificates.", min_length=1),
    ]
    policies: Annotated[
        tuple[Plain, ...], about("Object identifiers of the policies accepted; any where none is named.")
    ] = ()
    certificates: Annotated[str, about("Where its root certificate can be had.")] = ""

    def __post_init__(self) -> None:
        if not all(map(str.isprintable, (self.name, self.operator, *self.policies))):
            raise ValueError(f"{self.name!r} has characters that cannot be printed")
        if not self.slug:
            raise ValueError(f"{self.name!r} has no letter or digit")
        force_setattr(self, "roots", tuple(map(str.lower, self.roots)))

    @property
    def slug(self) -> str:
        """Its name as file names have it."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:40].strip("-")


class TrustFile(Document, frozen=True):
    """Authorities that are trusted."""

    authorities: tuple[Trusted, ...]

    def __post_init__(self) -> None:
        slugs = [authority.slug for authority in self.authorities]
        if len(set(slugs)) != len(slugs):
            raise ValueError(f"an authority is named twice: {', '.join(slugs)}")


def known_authorities(*more: Path) -> tuple[Trusted, ...]:
    """Return the authorities that this version ships, and those of a reader's own trust files."""
    files = (SHIPPED / "authorities.toml", *more)
    return tuple(authority for path in files for authority in parse_trust(read_text(path), path))


def known_restatements(more: Iterable[str] = ()) -> frozenset[str]:
    """Return the restatements that somebody stands for, by the last link of their chain."""
    shipped = tomllib.loads(read_text(SHIPPED / "restatements.toml"))
    return frozenset((*(entry["link"] for entry in shipped["restatements"]), *more))


def parse_trust(text: str, where: object) -> tuple[Trusted, ...]:
    """Read a trust file."""
    return parse_toml(TrustFile, text.encode(), where).authorities


def write_trust(authorities: Iterable[Trusted], comment: str) -> str:
    """Return a trust file."""
    lines = [f"# {comment}"]
    for authority in authorities:
        absent = (name for name, value in asdict(authority).items() if not value)
        lines += ["", "[[authorities]]", *_lines(authority, *absent)]
    return "\n".join(lines) + "\n"


def operator_of(root_sha256: str, known: Iterable[Trusted]) -> str | None:
    """Return the operator of a pinned root, or None where no known authority has it."""
    return next((authority.operator for authority in known if root_sha256 in authority.roots), None)
