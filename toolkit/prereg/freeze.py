"""Freezing a registration: from then on its files are these bytes, and others can tell since when.

1. It is a draft: nothing frozen, nothing added, every file committed, names that a list can hold.
2. Its rules are rules: they parse, what they name is declared, and each can pass and can miss.
3. The list of its files and their hashes is timestamped, each token verified completely.
4. The authorities are independent of each other and agree on the time.
5. Tokens, record, list and chain are written, the chain last: without it nothing is frozen.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.files import read_bytes, write_all
from toolkit.prereg.chain import CHAIN, extend_chain
from toolkit.prereg.checks import agreement, independence
from toolkit.prereg.demonstration import ADDRESS
from toolkit.prereg.evidence import places
from toolkit.prereg.git import clean_commit
from toolkit.prereg.hashlist import write_list
from toolkit.prereg.later import AMENDMENTS, DEVIATIONS
from toolkit.prereg.record import (
    DEMONSTRATION,
    EVIDENCE,
    FROZEN,
    PUBLIC,
    RECORD,
    Authority,
    FreezeRecord,
    write_record,
)
from toolkit.prereg.registration import ADDED_TRUST, PROTOCOL, RULES
from toolkit.prereg.timestamping import discard_pending, locked, timestamp
from toolkit.prereg.trust import TRUST, parse_trust, write_trust

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from toolkit.prereg.checks import Check
    from toolkit.prereg.evidence import Judged
    from toolkit.prereg.timestamping import Source
    from toolkit.prereg.trust import Trusted

PREFIX = "freeze"
_NAME = re.compile(r"\w[\w./-]*", re.ASCII)
_LATER = (f"{AMENDMENTS}/", f"{DEVIATIONS}/", f"{ADDED_TRUST}/")


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
    standing: str
    commit: str
    tokens: tuple[Judged, ...]


@dataclass(frozen=True)
class Draft:
    """What is to be frozen.

    Args:
        name: the registration's name.
        contents: its files' bytes by name.
        commit: the commit it stands at, or nothing.
    """

    name: str
    contents: dict[str, bytes]
    commit: str


def open_draft(folder: Path, check_rules: Callable[[str], None]) -> Draft:
    """Read a draft and check that it can be frozen (steps 1 and 2).

    Args:
        folder: the registration.
        check_rules: raises where the rules' text is not to be frozen.

    Raises:
        UsageError: it is frozen already, or its files are not ready.
        IncompleteError: a file is missing.
        RuleError: what `check_rules` raises.
    """
    if (folder / CHAIN).exists():
        raise UsageError(
            f"registration {folder.name!r} is frozen already",
            where=folder,
            remedy="change a rule with `toolkit amend`, record an event with `toolkit deviate`",
        )
    commit = "" if (folder / FROZEN).exists() else clean_commit(folder)
    contents = {name: read_bytes(folder / name) for name in _names(folder)}
    for needed in (RULES, PROTOCOL):
        if needed not in contents:
            raise IncompleteError(f"{needed} is missing", expected=needed, where=folder)
    rules = _decoded(contents[RULES], RULES)
    _decoded(contents[PROTOCOL], PROTOCOL)
    check_rules(rules)
    name = tomllib.loads(rules).get("name")
    if name != folder.resolve().name:
        raise UsageError(
            "a registration lies in a folder of its name",
            expected=folder.resolve().name,
            found=name,
            where=RULES,
        )
    return Draft(str(name), contents, commit)


def freeze(
    folder: Path,
    draft: Draft,
    sources: Sequence[Source],
    known: Sequence[Trusted],
    *,
    standing: str,
    say: Callable[[str], None] = lambda _: None,
) -> Frozen:
    """Freeze a draft (steps 3 to 5).

    Args:
        folder: the registration.
        draft: as `open_draft` returned it.
        sources: the authorities to ask, at least two.
        known: those that are trusted; a demonstration trusts its own.
        standing: `public` or `demonstration`.
        say: told what happens.

    Raises:
        IncompleteError: an authority gave no token; the same command goes on from there.
        VerificationError: the authorities are not independent, or disagree.
    """
    with locked(folder):
        trusted = tuple(source.trusted for source in sources)
        contents = {**draft.contents, TRUST: _trust_file(draft, trusted, standing)}
        listed = write_list(contents)
        digest = hashlib.sha256(listed).hexdigest()
        evidence, tokens = timestamp(folder, PREFIX, listed, sources, say)  # 3
        require(independence(tokens, trusted if standing == DEMONSTRATION else known))  # 4
        require(agreement(tokens))
        record = write_record(_record(digest, draft, standing, tokens))
        chain = extend_chain(b"", digest, RECORD, record)
        files = {FROZEN: listed, **evidence, TRUST: contents[TRUST], RECORD: record, CHAIN: chain}
        write_all(folder, files)  # 5
        discard_pending(folder)
    return Frozen(draft.name, digest, tuple(sorted(contents)), standing, draft.commit, tokens)


def require(check: Check) -> None:
    """Raise unless a check passed.

    Raises:
        VerificationError: it did not.
    """
    if check.outcome != "passed":
        raise VerificationError(f"the authorities do not do: {check.name}", found=check.detail)


def _record(digest: str, draft: Draft, standing: str, tokens: tuple[Judged, ...]) -> FreezeRecord:
    return FreezeRecord(
        standing=standing,
        document="The list of the frozen files and their hashes",
        document_sha256=digest,
        document_place=FROZEN,
        frozen_at=_now(),
        freeze_commit=draft.commit,
        source="this folder",
        authorities=tuple(
            Authority(
                judged.authority.name,
                judged.authority.address,
                judged.verdict.gen_time or _now(),
                *places(PREFIX, judged.authority),
            )
            for judged in tokens
        ),
    )


def _trust_file(draft: Draft, trusted: tuple[Trusted, ...], standing: str) -> bytes:
    """Return the trust file: the draft's own where it has one, else one that names whom we ask."""
    own = draft.contents.get(TRUST)
    named = parse_trust(_decoded(own, TRUST), TRUST) if own is not None else ()
    if own is not None and standing == PUBLIC and set(named) == set(trusted):
        return own
    if any(authority.address != ADDRESS for authority in named):
        raise UsageError(
            "the draft's trust file names other authorities than those to be asked",
            expected=", ".join(authority.name for authority in named),
            found=", ".join(authority.name for authority in trusted),
            where=TRUST,
            remedy="ask those, or remove the file",
        )
    return write_trust(trusted, "The authorities that were to timestamp this.").encode()


def _names(folder: Path) -> list[str]:
    """Return the names of the files to freeze; record and list of a freeze that was cut short are its own."""
    names = []
    cut_short = (FROZEN, RECORD) if (folder / FROZEN).exists() else ()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith((".", f"{EVIDENCE}/")) or path.is_dir() or name in cut_short:
            continue
        if name == RECORD:
            raise UsageError("a draft has no freeze record", found=name, where=folder)
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


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"{name} is not UTF-8 text", found=error, where=name) from None


def _now() -> datetime:
    return datetime.now(UTC)
