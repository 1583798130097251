"""Freezing a registration: from then on its files are these bytes, and others can tell since when.

1. It is a draft: nothing frozen, nothing added, every file committed, names that a list can hold.
2. Its rules are rules: they parse, what they name is declared, and each can pass and can miss.
3. The list of its files and their hashes is timestamped, each token verified completely.
4. The authorities are independent of each other and agree on the time.
5. Tokens, record, list and chain are written, the chain last: without it nothing is frozen.

An amendment, which changes rules, and a deviation, which records an event, are added likewise: checked, the
chain with its new line timestamped, file and tokens written and the chain last.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.files import read_bytes, write_all
from toolkit.prereg import record
from toolkit.prereg.authority import Source, timestamp
from toolkit.prereg.chain import (
    CHAIN,
    LARGEST_FROZEN,
    LARGEST_LIST,
    PENDING,
    begin,
    discard,
    extend_chain,
    is_left_over,
    locked,
    pending_document,
    write_list,
)
from toolkit.prereg.demonstration import ADDRESS
from toolkit.prereg.evidence import Judged, places
from toolkit.prereg.git import clean_commit
from toolkit.prereg.record import EVIDENCE, FROZEN, PILOTS, RECORD, TRUST, FrozenStanding, Trusted, decoded
from toolkit.prereg.registration import ADDED_TRUST, PROTOCOL, RULES, Registration, load_registration
from toolkit.prereg.verification import agreement, independence
from toolkit.structs import UNSET, Document, UnsetType, about

PREFIX = "freeze"
_NAME = re.compile(r"\w[\w./-]*", re.ASCII)
_LATER = (f"{record.AMENDMENTS}/", f"{record.DEVIATIONS}/", f"{ADDED_TRUST}/")


@dataclass(frozen=True)
class Frozen:
    """What a freeze gave.

    Args:
        registration: its name.
        sha256: digest of its frozen files.
        files: their names.
        standing: `public` or `demonstration`.
        commit: the commit it was frozen at, or nothing.
        tokens: the tokens, verified.
    """

    registration: str
    sha256: str
    files: tuple[str, ...]
    standing: FrozenStanding
    commit: str
    tokens: tuple[Judged, ...]

    def __repr__(self) -> str:
        return f"<Frozen {self.registration!r} {self.sha256}: {self.standing}, {len(self.tokens)} tokens>"


@dataclass(frozen=True)
class Draft:
    """What is to be frozen."""

    name: str  # the registration's name
    contents: dict[str, bytes]  # its files' bytes by name
    commit: str  # the commit it stands at, or nothing


def open_draft(folder: Path, check_rules: Callable[[str], None]) -> Draft:
    """Read a draft and check that it can be frozen (steps 1 and 2)."""
    _refuse_frozen(folder)
    contents = _contents(folder)
    for needed in (RULES, PROTOCOL):
        if needed not in contents:
            raise IncompleteError(
                f"{needed} is missing",
                where=folder,
                remedy=f"write it; `toolkit freeze {folder.name} --template` prints rules to fill in",
            )
    rules = decoded(contents[RULES], RULES)
    if not decoded(contents[PROTOCOL], PROTOCOL).strip():
        raise UsageError("the protocol is empty", where=PROTOCOL, remedy="say in words what will be done")
    check_rules(rules)
    name = tomllib.loads(rules).get("name")
    if name != folder.resolve().name:
        expected = folder.resolve().name
        raise UsageError(
            "a registration lies in a folder of its name", expected=expected, found=name, where=RULES
        )
    own = {PILOTS, *({TRUST} if _is_cut_short(folder) else ())}
    commit = clean_commit(folder, {name: raw for name, raw in contents.items() if name not in own})
    return Draft(str(name), contents, commit)


def freeze(
    folder: Path,
    draft: Draft,
    sources: Sequence[Source],
    known: Sequence[Trusted],
    *,
    standing: FrozenStanding,
    say: Callable[[str], None] = lambda _: None,
) -> Frozen:
    """Freeze a draft (steps 3 to 5)."""
    with locked(folder):
        _check_unchanged(folder, draft)
        trusted = tuple(source.trusted for source in sources)
        check_slugs(trusted)
        contents = {**draft.contents, TRUST: _trust_file(draft, trusted, standing)}
        hashes = write_list(contents)
        digest = hashlib.sha256(hashes).hexdigest()
        if _is_cut_short(folder) and pending_document(folder) != hashes:
            # What a freeze that was cut short had put in its place: this one is of other bytes.
            for path in (folder / FROZEN, folder / RECORD, *(folder / EVIDENCE).glob(f"{PREFIX}.*")):
                path.unlink(missing_ok=True)
        evidence, tokens = timestamp(folder, PREFIX, hashes, sources, say)  # 3
        require(folder, tokens, trusted if standing == record.DEMONSTRATION else known)  # 4
        written = record.write_record(_record(digest, draft, standing, tokens))
        chain = extend_chain(b"", digest, RECORD, written)
        files = {FROZEN: hashes, **evidence, TRUST: contents[TRUST], RECORD: written, CHAIN: chain}
        _check_unchanged(folder, draft)
        write_all(folder, files)  # 5
        discard(folder)
    return Frozen(draft.name, digest, tuple(sorted(contents)), standing, draft.commit, tokens)


def require(folder: Path, tokens: tuple[Judged, ...], trust: Sequence[Trusted]) -> None:
    """Check that tokens stand together; if not, others have to be obtained."""
    for check in (independence(tokens, trust), agreement(tokens)):
        if check.outcome != "passed":
            discard(folder)
            raise VerificationError(
                f"the tokens do not stand together: {check.name}",
                found=check.detail,
                remedy="ask again, or other authorities; nothing was written",
            )


def check_slugs(authorities: Sequence[Trusted]) -> None:
    """Check that authorities can be told apart by the names of their files."""
    slugs = [authority.slug for authority in authorities]
    if len(set(slugs)) != len(slugs):
        raise UsageError(
            "two authorities have names too much alike for their files",
            found=", ".join(authority.name for authority in authorities),
            remedy="give one of them another name in the trust file",
        )


def refuse_waiting(folder: Path) -> None:
    """Refuse where tokens of public authorities wait: a demonstration would discard them."""
    waiting = [path.name for path in (folder / PENDING / EVIDENCE).glob("*.tsr") if ADDRESS not in path.name]
    if waiting:
        raise UsageError(
            "a public freeze was begun here, and its tokens wait to be completed",
            found=", ".join(waiting),
            where=folder / PENDING,
            remedy="complete it, or remove that folder",
        )


def _refuse_frozen(folder: Path) -> None:
    if (folder / CHAIN).exists():
        remedy = "change a rule with `toolkit amend`, record an event with `toolkit deviate`"
        if b'standing = "demonstration"' in read_bytes(folder / RECORD, LARGEST_FROZEN):
            remedy += (
                f"; or, since it is a demonstration, remove {FROZEN}, {CHAIN}, {RECORD}, {TRUST} and "
                f"{EVIDENCE}/, and freeze it for real"
            )
        raise UsageError(f"registration {folder.name!r} is frozen already", where=folder, remedy=remedy)
    if (folder / FROZEN).exists() and not _is_cut_short(folder):
        raise UsageError(
            f"registration {folder.name!r} was frozen, and its {CHAIN} is missing",
            where=folder,
            remedy=f"restore {CHAIN}; freezing anew would destroy the evidence of the first freeze",
        )


def _is_cut_short(folder: Path) -> bool:
    """Whether a freeze was cut short while it put its files in their places."""
    frozen = folder / FROZEN
    return frozen.is_file() and read_bytes(frozen, LARGEST_LIST) == pending_document(folder)


def _check_unchanged(folder: Path, draft: Draft) -> None:
    _refuse_frozen(folder)
    if _contents(folder) != draft.contents:
        raise UsageError(
            "a file of the registration changed while it was being frozen",
            where=folder,
            remedy="let nothing write there, and freeze again",
        )


def _contents(folder: Path) -> dict[str, bytes]:
    return {name: read_bytes(folder / name, LARGEST_FROZEN) for name in _names(folder)}


def _record(
    digest: str, draft: Draft, standing: FrozenStanding, tokens: tuple[Judged, ...]
) -> record.FreezeRecord:
    return record.FreezeRecord(
        standing=standing,
        document="The list of the frozen files and their hashes",
        document_sha256=digest,
        document_place=FROZEN,
        frozen_at=datetime.now(UTC),
        freeze_commit=draft.commit,
        source="this folder",
        authorities=tuple(
            record.Authority(
                judged.authority.name,
                judged.authority.address,
                judged.verdict.gen_time or datetime.now(UTC),
                *places(PREFIX, judged.authority),
            )
            for judged in tokens
        ),
    )


def _trust_file(draft: Draft, trusted: tuple[Trusted, ...], standing: str) -> bytes:
    """Return the trust file: the draft's own where it has one, else one that names whom we ask."""
    own = draft.contents.get(TRUST)
    authorities = record.parse_trust(decoded(own, TRUST), TRUST) if own is not None else ()
    if own is not None and standing == record.PUBLIC and set(authorities) == set(trusted):
        return own
    if any(authority.address != ADDRESS for authority in authorities):
        raise UsageError(
            "the draft's trust file names other authorities than those to be asked",
            expected=", ".join(authority.name for authority in authorities),
            found=", ".join(authority.name for authority in trusted),
            where=TRUST,
            remedy="ask those, or remove the file",
        )
    return record.write_trust(trusted, "The authorities that were to timestamp this.").encode()


def _names(folder: Path) -> list[str]:
    """Return the names of the files to freeze; record and list of a freeze that was cut short are its own."""
    names = []
    cut_short = _is_cut_short(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".") or is_left_over(name) or (path.is_dir() and not path.is_symlink()):
            continue
        if cut_short and (name in {FROZEN, RECORD} or name.startswith(f"{EVIDENCE}/")):
            continue
        if name == RECORD or name.startswith(f"{EVIDENCE}/"):
            raise UsageError("a draft has no freeze record and no evidence", found=name, where=folder)
        if path.is_symlink() or not path.is_file():
            raise UsageError("only plain files can be frozen", found=name, where=folder)
        if name.startswith(_LATER):
            raise UsageError("a draft has nothing that comes after a freeze", found=name, where=folder)
        if not _NAME.fullmatch(name):
            raise UsageError(
                "a file has a name that a list cannot hold",
                expected="letters, digits, underscores, hyphens and points",
                found=name,
                where=folder,
            )
        names.append(name)
    return names


_IDENTIFIER = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)
_A_DAY = timedelta(days=1)


class Added(Document, frozen=True, kw_only=True):
    """An amendment or a deviation that was added to a registration."""

    registration: Annotated[str, about("Name of the registration.")]
    id: Annotated[str, about("Of the amendment or the deviation.")]
    file: Annotated[str, about("Relative to the registration.")]
    link: Annotated[str, about("The last link of the registration's chain.")]
    exploratory: Annotated[
        bool | UnsetType, about("Only of an amendment: whether it was made after runs, and binds nothing.")
    ] = UNSET
    authorities: Annotated[tuple[Judged, ...], about("None where the registration was frozen elsewhere.")]


def read_addition(
    registration: Registration, path: Path, *, after_runs: bool = False
) -> tuple[record.Amendment | record.Deviation, bytes]:
    """Read a file that is to be added (step 1)."""
    content = read_bytes(path, LARGEST_FROZEN)
    if after_runs:
        content = _with_after_runs(content)
    entry: record.Amendment | record.Deviation
    if "amendment" in record.parse_toml(dict[str, object], content, path):
        entry = record.read_amendment(content, path)
    else:
        entry = record.read_deviation(content, path)
    _check_entry(registration, entry)
    return entry, content


def _with_after_runs(content: bytes) -> bytes:
    """Return an amendment's file that says of itself that it was made after runs."""
    if re.search(rb"^\s*after_runs\s*=", content, re.MULTILINE):
        return content
    return re.sub(
        rb"^([ \t]*\[amendment\].*)$", rb"\1\nafter_runs = true", content, count=1, flags=re.MULTILINE
    )


def add(
    registration: Registration,
    entry: record.Amendment | record.Deviation,
    content: bytes,
    sources: Sequence[Source],
    known: Sequence[Trusted],
    *,
    check: Callable[[Registration], None],
    say: Callable[[str], None] = lambda _: None,
) -> Added:
    """Add a file to a registration (steps 2 to 4)."""
    folder = registration.folder
    with locked(folder):
        fresh = load_registration(folder)
        _check_entry(fresh, entry)
        check(fresh)  # 2
        trusted = tuple(source.trusted for source in sources)
        check_slugs(trusted)
        files = {**_added_trust(fresh, entry, trusted), entry.file: content}
        chain = read_bytes(folder / CHAIN, LARGEST_LIST)
        for added, raw in files.items():
            chain = extend_chain(chain, fresh.sha256, added, raw)
        evidence: dict[str, bytes] = {}
        tokens: tuple[Judged, ...] = ()
        if fresh.record.is_restated:
            begin(folder, chain)
        else:
            evidence, tokens = timestamp(folder, entry.id, chain, sources, say)  # 3
            require(folder, tokens, trusted if fresh.record.standing == record.DEMONSTRATION else known)  # 4
        write_all(folder, {**evidence, **files, CHAIN: chain})
        discard(folder)
        link = load_registration(folder).entries[-1].link
    return Added(
        registration=fresh.name,
        id=entry.id,
        file=entry.file,
        link=link,
        exploratory=entry.after_runs if isinstance(entry, record.Amendment) else UNSET,
        authorities=tokens,
    )


def _added_trust(
    registration: Registration, entry: record.Amendment | record.Deviation, trusted: tuple[Trusted, ...]
) -> dict[str, bytes]:
    """Return the trust file of an entry whose authorities are not those of the freeze."""
    frozen = {(authority.name, authority.roots) for authority in registration.trust_in()}
    if registration.record.is_restated or {(a.name, a.roots) for a in trusted} == frozen:
        return {}
    text = record.write_trust(trusted, f"The authorities that were to timestamp {entry.id}.")
    return {f"{ADDED_TRUST}/{entry.id}.toml": text.encode()}


def _check_entry(registration: Registration, entry: record.Amendment | record.Deviation) -> None:
    # As file names that some systems do not tell apart; the freeze's own evidence has a name, too.
    taken = {PREFIX, *(added.id.casefold() for added in registration.entries if added.id)}
    if not _IDENTIFIER.fullmatch(entry.id) or entry.id.casefold() in taken:
        raise UsageError(
            f"the id {entry.id!r} cannot be used",
            expected="letters and digits, a letter first, and none that is taken",
            found=f"taken: {', '.join(sorted(taken))}",
        )
    if not entry.seen:
        raise UsageError(f"{entry.id} does not say what had been seen", expected="a text `seen`")
    today = datetime.now(UTC).date()
    if isinstance(entry, record.Amendment) and abs(entry.dated - today) > _A_DAY:
        raise UsageError(
            f"{entry.id} is dated {entry.dated}, and an amendment is dated the day on which it is recorded",
            expected=f'dated = "{today}"',
        )
    if isinstance(entry, record.Deviation) and (entry.dated is None or entry.dated > today + _A_DAY):
        raise UsageError(
            f"{entry.id} does not say when it happened", expected="a day up to today", found=entry.dated
        )
