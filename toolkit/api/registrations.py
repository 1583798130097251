"""Registrations: verify them, freeze one, import the registers of one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.api.study import open_study, studies_here
from toolkit.errors import IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.api.study import Study
    from toolkit.documents.verification import OwnStanding
    from toolkit.drafting.importing import Import, Imported
    from toolkit.prereg.freeze import Draft, Frozen
    from toolkit.prereg.registration import Registration
    from toolkit.prereg.verification import StudyRuns, Verification
    from toolkit.registers.study import Study as OpenedStudy


def verify(
    registration: str | Path,
    studies: Sequence[OpenedStudy] | None = None,
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
    from datetime import UTC, datetime

    from toolkit.decisions.case import open_book
    from toolkit.prereg.record import known_authorities, known_restatements
    from toolkit.prereg.verification import Reader, verify_registration
    from toolkit.verification.registered import refuse_own, runs_of

    home = home or find_home()
    # A folder of this home stays one without its rules: that they are missing is then said.
    known = isinstance(registration, Path) and registration.parent == home.registrations
    folder = Path(registration) if known else home.registration_folder(str(registration))
    opened = studies_here(home) if studies is None else studies

    def studies_of(loaded: Registration) -> list[StudyRuns]:
        for study in opened if all_belong else ():
            open_book(study, loaded)  # refuses a study of another one
        return [runs_of(study, loaded) for study in opened if study.manifest.registration.name == loaded.name]

    refuse_own(folder, trust_files)
    reader = Reader(
        known_authorities(*trust_files), datetime.now(UTC), with_openssl, known_restatements(restatements)
    )
    return verify_registration(folder, reader, studies_of)


def verify_frozen(
    home: Home | None = None,
    studies: Sequence[OpenedStudy] | None = None,
    trust_files: Sequence[Path] = (),
) -> list[Verification]:
    """Verify every registration here that claims to be frozen; a draft claims nothing yet."""
    from toolkit.prereg.registration import is_draft

    home = home or find_home()
    folders = [home.registration_folder(name) for name in home.registration_names()]
    frozen = [folder for folder in folders if not is_draft(folder)]
    opened = studies_here(home) if studies is None and frozen else (studies or ())
    return [verify(folder, opened, home, trust_files=trust_files) for folder in frozen]


def frozen_registrations(home: Home | None = None) -> Iterator[Registration]:
    """Yield every frozen registration here whose files are whole; `verify_frozen` says what ails others."""
    from toolkit.prereg.verification import open_checked

    home = home or find_home()
    for name in home.registration_names():
        registration, _ = open_checked(home.registration_folder(name))
        if registration is not None:
            yield registration


def check_draft(registration: str | Path, home: Home | None = None) -> Draft:
    """Check that a draft can be frozen: its files are ready, and its rules are rules. Nothing is written.

    Args:
        registration: name of one that is here, or its folder.
        home: where registrations are; found where it is left out.

    Raises:
        UsageError: it is frozen already, or its files are not ready.
        IncompleteError: a file is missing.
        RuleError: a rule is none, or cannot pass, or cannot miss.
    """
    from toolkit.prereg.freeze import open_draft
    from toolkit.verification.decidable import check_rules

    return open_draft((home or find_home()).registration_folder(str(registration)), check_rules)


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
    from toolkit.line_ends import ADDED, protect
    from toolkit.prereg import authority, record
    from toolkit.prereg.demonstration import demonstrated
    from toolkit.prereg.freeze import freeze as freeze_draft
    from toolkit.prereg.freeze import refuse_waiting

    if demonstration and (authorities or roots):
        raise UsageError("a demonstration asks no authority", remedy="leave out --authority and --root")
    home = home or find_home()
    draft = check_draft(registration, home)
    folder = home.registration_folder(str(registration))
    known = record.known_authorities(*trust_files)
    if demonstration:
        refuse_waiting(folder)
        asked: Sequence[authority.Source] = demonstrated()
    else:
        own = draft.contents.get(record.TRUST)
        named = record.parse_trust(own.decode(errors="replace"), record.TRUST) if own is not None else ()
        asked = authority.online(authorities, named, known, roots, timeout_s)
    standing: OwnStanding = record.DEMONSTRATION if demonstration else record.PUBLIC
    say = say or logging.getLogger(__name__).info
    if folder.parent == home.registrations and protect(home.root):
        say(ADDED)
    return freeze_draft(folder, draft, asked, known, standing=standing, say=say)


def import_table(
    study: str,
    sources: str | Path | Sequence[str | Path],
    home: Home | None = None,
    *,
    mapping: Path | None = None,
    reason: str | None = None,
) -> Study:
    """Make the registers of a study from its own table of episodes, decide on them, and open the study.

    Rows are converted exactly or refused, with their number; the registers are verified and decided on before
    they are put in place. What the rows do not say, such as which columns no register takes, is a warning of
    the module `logging`.

    Args:
        study: name of the study, whose registration is frozen.
        sources: files, folders, patterns, or `hf://datasets/OWNER/NAME@REVISION/PATH`; a log with a row an
            episode, in any format that `toolkit registers import` reads.
        home: where studies, registrations and mappings are; found where it is left out.
        mapping: file that says which column is which; `mappings/STUDY.toml` where left out.
        reason: why registers that were decided on get other rows; it is recorded.

    Returns:
        The study, decided: `toolkit.decide` says the same of it.

    Raises:
        UsageError: the home came with the package, the mapping is another study's, or registers with other
            rows were decided on, and no reason is given.
        IncompleteError: the mapping, the card or a source is missing.
        DamagedError: the table, the mapping, the card or the rules do not fit each other.

    Examples:
        >>> toolkit.import_table("my-study", "episodes.csv").rows("runs")  # doctest: +SKIP
    """
    home = home or find_home()
    logger = logging.getLogger(__name__)
    given = [sources] if isinstance(sources, str | Path) else sources
    done = import_registers(study, given, home, mapping=mapping, reason=reason, progress=logger.info)
    for said in done.said:
        logger.warning("%s: %s", study, said)
    return open_study(study, home)


def import_registers(
    study: str,
    sources: Sequence[str | Path],
    home: Home | None = None,
    *,
    mapping: Path | None = None,
    reason: str | None = None,
    check: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import a study as `import_table` does, and say what came of it.

    On a check nothing is written: the registers are compared with what the table gives, and VerificationError
    says which file differs.
    """
    from toolkit.drafting.importing import check_import, import_study
    from toolkit.files import hold
    from toolkit.line_ends import ADDED, protect

    home = home or find_home()
    named = [str(source) for source in sources]
    if not named:
        raise UsageError("no source is named", expected="a file, a folder or a pattern")
    if home.is_shipped:
        raise UsageError(
            "there is no project here to import into",
            where=Path.cwd(),
            remedy=f"start one in this folder: toolkit new-study {study} --table {named[0]}",
        )
    wanted = _wanted(home, study, named, mapping or home.mappings / f"{study}.toml")
    folder = home.registers / study
    if check:
        return check_import(wanted, folder, progress)
    home.registers.mkdir(parents=True, exist_ok=True)
    with hold(home.registers, f".{study}.lock", "study's registers"):
        done = import_study(wanted, folder, progress, reason)
    if protect(home.root):
        progress(ADDED)
    return done


def _wanted(home: Home, study: str, sources: list[str], mapping: Path) -> Import:
    from toolkit.drafting.importing import Import
    from toolkit.prereg.registration import load_registration
    from toolkit.registers.importing.mapping import read_mapping
    from toolkit.verification.registered import open_case

    if not mapping.is_file():
        raise IncompleteError(
            f"there is no mapping for {study}",
            where=mapping,
            remedy=f"toolkit new-study {study} --table {sources[0]} writes one to be looked over",
        )
    read = read_mapping(mapping)
    if read.study != study:
        raise UsageError("the mapping is of another study", expected=study, found=read.study, where=mapping)
    return Import(
        tuple(sources),
        mapping,
        home.cards / f"{study}.md",
        load_registration(home.registration_folder(read.registration)),
        open_case,
    )
