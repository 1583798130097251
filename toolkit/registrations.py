"""Registrations, verified and frozen, with the studies of a home."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.cases import studies_here
from toolkit.decisions.case import open_book
from toolkit.errors import UsageError
from toolkit.line_ends import ADDED, protect
from toolkit.places import Home, find_home
from toolkit.prereg import record
from toolkit.prereg.registration import Registration, is_draft
from toolkit.prereg.verification import Reader, StudyRuns, Verification, open_checked, verify_registration
from toolkit.verification.registered import refuse_own, study_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.prereg.freeze import Draft, Frozen
    from toolkit.registers.study import Study


def verify(
    registration: str | Path,
    studies: Sequence[Study] | None = None,
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
    restatements: Sequence[str] = (),
    with_openssl: bool = False,
    all_belong: bool = False,
) -> Verification:
    """Verify a registration: its files, its document, its tokens, and that its studies' runs came later.

    No network is used. What fails or is missing is a step of the result (`checks`); it raises nothing.

    Args:
        registration: name of one that is here, or its folder.
        studies: those whose runs have to come after it; every one here that has runs where left out.
        home: where studies and registrations are; found where it is left out.
        trust_files: trust files with further authorities that the caller knows.
        restatements: last links of registrations that the caller has compared with the document they restate.
        with_openssl: whether OpenSSL is asked about each token, too: it can veto.
        all_belong: whether every study has to belong to the registration; otherwise the others are left out.

    Returns:
        What the steps say together; times are UTC.

    Raises:
        UsageError: there is no such registration, or it would vouch for itself.
        DamagedError: all have to belong to it, and one does not.

    Source:
        RFC 3161, and `toolkit.prereg.verification.verify_registration` for the steps.

    Examples:
        >>> toolkit.verify("embedded").standing
        'demonstration'
    """
    home = home or find_home()
    # A folder of this home stays one without its rules: that they are missing is then said.
    known = isinstance(registration, Path) and registration.parent == home.registrations
    folder = Path(registration) if known else home.registration_folder(str(registration))
    opened = studies_here(home) if studies is None else studies

    def studies_of(loaded: Registration) -> list[StudyRuns]:
        for study in opened if all_belong else ():
            open_book(study, loaded)  # refuses a study of another one
        return [
            study_runs(study, loaded) for study in opened if study.manifest.registration.name == loaded.name
        ]

    refuse_own(folder, trust_files)
    reader = Reader(
        record.known_authorities(*trust_files),
        datetime.now(UTC),
        with_openssl,
        record.known_restatements(restatements),
    )
    return verify_registration(folder, reader, studies_of)


def verify_frozen(
    home: Home | None = None,
    studies: Sequence[Study] | None = None,
    trust_files: Sequence[Path] = (),
) -> list[Verification]:
    """Verify every registration here that claims to be frozen; a draft claims nothing yet."""
    home = home or find_home()
    folders = [home.registration_folder(name) for name in home.registration_names()]
    frozen = [folder for folder in folders if not is_draft(folder)]
    opened = studies_here(home) if studies is None and frozen else (studies or ())
    return [verify(folder, opened, home, trust_files=trust_files) for folder in frozen]


def frozen_registrations(home: Home | None = None) -> Iterator[Registration]:
    """Yield every frozen registration here whose files are whole; `verify_frozen` says what ails others."""
    home = home or find_home()
    for name in home.registration_names():
        registration, _ = open_checked(home.registration_folder(name))
        if registration is not None:
            yield registration


def check_draft(registration: str | Path, home: Home | None = None) -> Draft:
    """Check that a draft can be frozen: its files are ready, and its rules are rules. Nothing is written."""
    from toolkit.drafting.pilot import check_rehearsed, draft_record
    from toolkit.prereg.freeze import open_draft
    from toolkit.verification.decidable import check_rules

    home = home or find_home()
    folder = home.registration_folder(str(registration))

    def check(rules: str) -> None:
        check_rules(rules)
        check_rehearsed(draft_record(home.root, folder.name), rules)

    return open_draft(folder, check)


def freeze(
    registration: str | Path,
    home: Home | None = None,
    *,
    demonstration: bool = False,
    authorities: Sequence[str] = (),
    trust_files: Sequence[Path] = (),
    roots: Sequence[Path] = (),
    timeout_s: float = 30.0,
    say: Callable[[str], None] | None = None,
) -> Frozen:
    """Freeze a registration before its runs: its rules are checked, its files hashed, the hashes timestamped.

    Nothing is frozen until every token has been verified; a freeze that failed goes on where it stopped.

    Args:
        registration: name of one that is here, or its folder, with `rules.toml` and `protocol.md`.
        home: where registrations are; found where it is left out.
        demonstration: whether two authorities are made for the occasion: it proves nothing to others.
        authorities: addresses of those to ask, at least two; else those of the draft's `trust.toml`, or
            FreeTSA and DigiCert.
        trust_files: trust files with further authorities that the caller knows.
        roots: files with pinned root certificates, where neither a token nor this system has them.
        timeout_s: longest time for one exchange with an authority, in seconds.
        say: told what happens; the module `logging` is where it is left out.

    Returns:
        The digest of the frozen files, their names, and the verified tokens.

    Raises:
        UsageError: it is frozen already, its files are not ready, or fewer than two authorities are asked.
        IncompleteError: a file or a package is missing, or an authority gave no token.
        RuleError: a rule is none, or cannot pass, or cannot miss.
        VerificationError: the authorities are not independent of each other, or disagree.

    Examples:
        >>> toolkit.freeze("my-study", demonstration=True).sha256  # doctest: +SKIP
    """
    from toolkit.drafting.pilot import carry
    from toolkit.prereg import authority
    from toolkit.prereg.demonstration import demonstrated
    from toolkit.prereg.freeze import freeze as freeze_draft
    from toolkit.prereg.freeze import refuse_waiting

    if demonstration and (authorities or roots):
        raise UsageError("a demonstration asks no authority", remedy="leave out --authority and --root")
    home = home or find_home()
    folder = home.registration_folder(str(registration))
    carry(home.root, folder.name, folder)
    draft = check_draft(registration, home)
    known = record.known_authorities(*trust_files)
    if demonstration:
        refuse_waiting(folder)
        asked: Sequence[authority.Source] = demonstrated()
    else:
        own = draft.contents.get(record.TRUST)
        named = record.parse_trust(own.decode(errors="replace"), record.TRUST) if own is not None else ()
        asked = authority.online(authorities, named, known, roots, timeout_s)
    standing: record.FrozenStanding = record.DEMONSTRATION if demonstration else record.PUBLIC
    say = say or logging.getLogger(__name__).info
    if folder.parent == home.registrations and protect(home.root):
        say(ADDED)
    return freeze_draft(folder, draft, asked, known, standing=standing, say=say)
