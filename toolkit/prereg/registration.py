"""A registration: a folder whose frozen files, and whose later ones, are exactly the recorded bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.files import file_sha256, read_up_to
from toolkit.line_ends import refuse_converted
from toolkit.prereg.chain import CHAIN, LARGEST_FROZEN, Entry, is_left_over, promised, read_chain, read_listed
from toolkit.prereg.record import (
    AMENDMENTS,
    DEVIATIONS,
    EVIDENCE,
    FROZEN,
    RECORD,
    TRUST,
    Amendment,
    Deviation,
    FreezeRecord,
    Text,
    Trusted,
    TrustFile,
    decoded,
    parse_toml,
    read_amendment,
    read_deviation,
)
from toolkit.prereg.spans import UNRESTATED, Unrestated
from toolkit.structs import Document

A = TypeVar("A", Amendment, Deviation)
RULES = "rules.toml"
PROTOCOL = "protocol.md"
ADDED_TRUST = "trust"


class DisclosedException(Document, frozen=True, forbid_unknown_fields=False):
    """A run that may precede the freeze because the frozen document names it."""

    run: Text
    reason: Text


class RulesHead(Document, frozen=True, forbid_unknown_fields=False):
    """What a registration's frozen rules say of it."""

    name: Text
    title: Text
    exceptions: tuple[DisclosedException, ...] = ()


@dataclass(frozen=True)
class Registration:
    """A registration whose every file matched its recorded hash."""

    folder: Path  # where it lies
    name: str  # its name
    title: str  # its title
    sha256: str  # digest of the frozen files: the SHA-256 of their hash list
    protocol: str  # the protocol's text
    rules: str  # the frozen rules, as TOML text
    record: FreezeRecord  # the freeze
    trust: Mapping[str, tuple[Trusted, ...]]  # authorities by trust file: its own, and those of later entries
    entries: tuple[Entry, ...]  # what was added after the freeze, the record itself included, in order
    amendments: tuple[Amendment, ...]  # in the order in which they were recorded
    deviations: tuple[Deviation, ...]  # likewise
    exceptions: tuple[DisclosedException, ...]  # runs disclosed in the frozen rules
    unrestated: Unrestated | None = None  # sentences that no rule restates; None where no list names them

    def __repr__(self) -> str:
        added = f"amendments: {len(self.amendments)}, deviations: {len(self.deviations)}"
        return f"<Registration {self.name!r} {self.sha256}: {self.record.standing}, {added}>"

    def trust_in(self, entry: Entry | None = None) -> tuple[Trusted, ...]:
        """Return the authorities of the freeze, or of a later entry, which may have others."""
        own = self.trust[TRUST]
        return own if entry is None else self.trust.get(f"{ADDED_TRUST}/{entry.id}.toml", own)

    def document(self) -> bytes | None:
        """Return the bytes that were timestamped, if they are at hand; None where others lie there."""
        path = self.folder / self.record.document_place
        if not path.is_file():
            return None
        content = read_up_to(path, LARGEST_FROZEN + 1)
        return content if sha256(content).hexdigest() == self.record.document_sha256 else None


def is_draft(folder: Path) -> bool:
    """Whether a registration has not been frozen yet."""
    return (folder / RULES).is_file() and not (folder / FROZEN).exists() and not (folder / CHAIN).exists()


def load_registration(folder: Path) -> Registration:
    """Load a registration, checking every file against its recorded hash."""
    if is_draft(folder):
        raise IncompleteError(
            f"registration {folder.name!r} is a draft: it is not frozen",
            expected=FROZEN,
            where=folder,
            remedy=f"freeze it: toolkit freeze {folder.name}",
        )
    if (folder / FROZEN).exists() and not (folder / CHAIN).exists():
        raise IncompleteError(
            f"the freeze of {folder.name!r} was cut short, or {CHAIN} is missing",
            expected=CHAIN,
            where=folder,
            remedy=f"restore the file, or run `toolkit freeze {folder.name}` again",
        )
    digest, frozen = read_listed(folder, FROZEN)
    entries, later = read_chain(folder, digest)
    chain = entries[-1].text if entries else b""
    _refuse_unlisted(folder, {*frozen, *later, FROZEN, CHAIN}, promised(folder, digest, chain))
    files = {**frozen, **later}
    absent = [name for name in (RULES, PROTOCOL, RECORD, TRUST) if name not in files]
    if absent:
        raise DamagedError(
            "a registration does not list a file that it needs", expected=absent[0], where=folder
        )
    head = parse_toml(RulesHead, frozen[RULES], folder / RULES)
    registration = Registration(
        folder=folder,
        name=head.name,
        title=head.title,
        sha256=digest,
        protocol=decoded(frozen[PROTOCOL], folder / PROTOCOL),
        rules=frozen[RULES].decode(),
        record=parse_toml(FreezeRecord, later[RECORD], folder / RECORD),
        trust={
            name: parse_toml(TrustFile, raw, folder / name).authorities
            for name, raw in files.items()
            if name == TRUST or name.startswith(f"{ADDED_TRUST}/")
        },
        entries=entries,
        amendments=_added(folder, AMENDMENTS, later, read_amendment),
        deviations=_added(folder, DEVIATIONS, later, read_deviation),
        exceptions=head.exceptions,
        unrestated=parse_toml(Unrestated, frozen[UNRESTATED], folder / UNRESTATED)
        if UNRESTATED in frozen
        else None,
    )
    _check_record(registration)
    return registration


def _added(
    folder: Path, kind: str, later: Mapping[str, bytes], read: Callable[[bytes, object], A]
) -> tuple[A, ...]:
    """Return the amendments or the deviations, each in the file of its id."""
    found = {name: read(raw, folder / name) for name, raw in later.items() if name.startswith(f"{kind}/")}
    for name, entry in found.items():
        if entry.file != name:
            raise DamagedError(
                "a file has another name than its id", expected=entry.file, where=folder / name
            )
    return tuple(found.values())


def _check_record(registration: Registration) -> None:
    freeze = registration.record
    names = [authority.name for authority in registration.trust.get(TRUST, ())]
    problem = stated = None
    if not freeze.is_restated and freeze.document_sha256 != registration.sha256:
        problem, stated = "the record's hash is not that of the frozen files", freeze.document_sha256
    unnamed = [authority.name for authority in freeze.authorities if authority.name not in names]
    if unnamed:
        problem, stated = "the record has an authority that the trust file does not name", ", ".join(unnamed)
    if problem:
        raise DamagedError(problem, expected=registration.sha256, found=stated, where=registration.folder)


def _refuse_unlisted(folder: Path, listed: set[str], waiting: Mapping[str, str]) -> None:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_known = name in listed or name.startswith((f"{EVIDENCE}/", ".")) or is_left_over(name)
        if is_known or not path.is_file():
            continue
        if name not in waiting or file_sha256(path) != waiting[name]:
            if name in waiting:
                refuse_converted(name, path, waiting[name], VerificationError, path)
            raise VerificationError(
                f"{name} belongs to no hash list of the registration",
                expected=f"only files that {FROZEN} or {CHAIN} names, and those under {EVIDENCE}/",
                where=path,
                remedy="remove the file; what is new is recorded with `toolkit amend` or `toolkit deviate`",
            )
