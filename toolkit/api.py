"""What programs call: open a study, verify its registration, decide rules and explain them.

Every function takes a `home`, the folder with registers and registrations; `find_home` finds it where none is
given. What a caller has to know and no result says, such as that the Hub was not asked, is a warning of the
module `logging`. A failure is a `ToolkitError`, which says what to do.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from toolkit.errors import IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision
    from toolkit.prereg.chronology import StudyRuns
    from toolkit.prereg.registration import Registration
    from toolkit.prereg.verification import Verification
    from toolkit.registers.manifest import RegistrationRef
    from toolkit.registers.study import Study
    from toolkit.study.check.whole import Verified
    from toolkit.study.exports.formats import Wanted
    from toolkit.study.probing.design import RegisteredProbe
    from toolkit.training.specification import Specification

PUBLISHED = "published"
STUDY_POOLS = ("train", "validation", "test", "diagnostic")
"""The pools that a study's runs meet."""


def open_study(name: str, home: Home | None = None, *, offline: bool = False) -> Study:
    """Open a study by name, path, or `owner/name@revision` on the Hub; errors as `open_registers`.

    Args:
        name: a study of the home, a folder that holds a manifest, or a dataset repository.
        home: where studies are.
        offline: whether a study of the Hub is taken from the cache alone.
    """
    from toolkit.registers.opening import open_registers

    return open_registers(name, home, offline=offline, say=logging.getLogger(__name__).warning)


def studies_here(home: Home | None = None) -> list[Study]:
    """Open every study of a home that has runs; before its runs, a registration's home need not have one."""
    home = home or find_home()
    return _with_runs(home) if home.has_studies else []


def usual_study(home: Home | None = None) -> str:
    """Return the study that is meant where none is named: the published one, or the only one.

    Raises:
        UsageError: there are several others.
    """
    names = [study.name for study in studies_here(home)]
    if len(names) != 1 and PUBLISHED not in names:
        raise UsageError("say which study is meant", expected=f"--study {' or '.join(names) or 'NAME'}")
    return PUBLISHED if PUBLISHED in names else names[0]


def registration_of(study: Study, home: Home | None = None) -> Path:
    """Return where a study's registration is: in the home, or else carried by the study itself.

    One of the same name in the home that was frozen as other files is another study's.

    Raises:
        IncompleteError: it is in neither.
    """
    from toolkit.files import file_sha256
    from toolkit.prereg.record import FROZEN

    registered, registrations = study.manifest.registration, (home or find_home()).registrations
    carried, own = study.folder / "prereg" / registered.name, registrations / registered.name
    is_carried = (carried / "rules.toml").is_file()
    # A draft was not frozen as anything yet.
    is_own = (own / FROZEN).is_file() and file_sha256(own / FROZEN) == registered.sha256
    if is_carried and not is_own:
        return carried
    if own.is_dir():
        return own
    raise IncompleteError(
        f"the registration of study {study.name!r} is not here",
        expected=registered.name,
        where=registrations,
        remedy="put the registration's folder there",
    )


def registered_by(study: Study, home: Home | None = None) -> Registration:
    """Return the registration that decides a study; errors as `open_case`."""
    from toolkit.decisions.case import open_book
    from toolkit.prereg.registration import load_registration

    if not study.has("runs"):
        raise UsageError(
            f"{study.name!r} has no runs: it holds the tasks that studies run on", where=study.folder
        )
    registration = load_registration(registration_of(study, home))
    open_book(study, registration)  # refuses one that the study's manifest does not name
    return registration


def reference(registration: Registration) -> RegistrationRef:
    """Return a registration as the manifests of its registers name it."""
    from toolkit.registers.manifest import RegistrationRef

    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    return RegistrationRef(registration.name, registration.sha256, amendments)


def published_reference(home: Home) -> RegistrationRef:
    """Return the registration of the published study as the manifests of its registers name it."""
    from toolkit.prereg.registration import load_registration
    from toolkit.registers.published.build import REGISTRATION

    return reference(load_registration(home.registration_folder(REGISTRATION)))


def open_case(
    study: Study,
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
) -> Case:
    """Put a study and its registration together, and verify the registration against the study's runs.

    Args:
        study: the study.
        home: where registrations are.
        trust_files: further authorities that the caller trusts.

    Raises:
        UsageError: the study has no runs, or its registration would vouch for itself.
        IncompleteError: its registration is missing.
        DamagedError: the registration is not the one that the study's manifest names.
        VerificationError: a file of it was changed after its hash was recorded.
    """
    from toolkit.study.check import registered

    registration = registered_by(study, home)
    registered.refuse_own(registration.folder, trust_files)
    return registered.open_case(study, registration, trust_files)


def load_cases(
    names: Sequence[str] = (),
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
) -> list[Case]:
    """Open studies with their registrations; every one here that has runs where none is named.

    The rest as `open_case`.

    Raises:
        UsageError: a study has no runs.
        IncompleteError: there is no study at all, or its registration is missing.
    """
    home = home or find_home()
    studies = [open_study(name, home) for name in dict.fromkeys(names)] or _with_runs(home)
    if not studies:
        raise IncompleteError(
            "no study here has runs", where=home.registers, remedy="put a study's folder there"
        )
    return [open_case(study, home, trust_files=trust_files) for study in studies]


def rules_asked(
    cases: Sequence[Case], rules: Sequence[str], home: Home | None = None, *, everywhere: bool
) -> list[tuple[Case, str]]:
    """Return which rules to look at in which study, study by study.

    Args:
        cases: the studies.
        rules: names of rules, in any case of letters where only one is meant; none for all.
        home: where the studies were looked for.
        everywhere: whether every study has to have every rule, as where the studies were named.

    Raises:
        UsageError: no study has a rule, or one that was named has not.
        IncompleteError: the study that has it does not come with the package.
    """
    from toolkit.study.check.registered import refuse_absent

    for rule in rules:
        lacking = [case for case in cases if case.book.find(rule) is None]
        if lacking and (everywhere or len(lacking) == len(cases)):
            if not everywhere:
                refuse_absent(rule, home or find_home())
            others = () if everywhere else (name for case in cases for name in case.book.rules)
            raise lacking[0].book.refusal(rule, others)
    asked = [(case, case.book.find(rule)) for case in cases for rule in rules or case.book.rules]
    return [(case, rule.id) for case, rule in asked if rule is not None]


def decide(
    rules: Sequence[str] = (),
    studies: Sequence[str] = (),
    home: Home | None = None,
    *,
    trust_files: Sequence[Path] = (),
) -> list[Decision]:
    """Execute rules as registered, on the registers of studies.

    Every decision carries what its registration stands on (`standing`); a registration that failed raises
    nothing here. `toolkit.prereg.standing.require` does.

    Args:
        rules: names of rules, as `rules_asked`; none for all.
        studies: by name, path, or `owner/name@revision`; every one here that has runs where none is named.
        home: where studies and registrations are.
        trust_files: further authorities that the caller trusts.

    Raises:
        UsageError: no study has a rule, or one that was named has not, or has no runs.
        IncompleteError: there is no study at all, or its registration is missing.
        DamagedError: rows contradict each other, or what was registered or stored.
    """
    home = home or find_home()
    if not (rules or studies):
        home.say_absent(logging.getLogger(__name__).warning)
    cases = load_cases(studies, home, trust_files=trust_files)
    return [case.decide(rule) for case, rule in rules_asked(cases, rules, home, everywhere=bool(studies))]


def explain(case: Case, rule: str) -> dict[str, Any]:
    """Return a decision together with the rule's words and the rows of its endpoints; errors as `decide`."""
    from toolkit.decisions import explanation

    return explanation.explain(case, rule)


def export(study: Study, wanted: Wanted, home: Home | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a study in another project's format, by path; nothing is written.

    Args:
        study: the study.
        wanted: the format, and what of the study.
        home: where registrations are.

    Raises:
        UsageError, IncompleteError, DamagedError: as `toolkit.study.exports.formats.exported`.
    """
    from toolkit.study.evaluating.evaluated import UNREGISTERED
    from toolkit.study.exports.formats import exported

    is_registered = study.manifest.registration.name != UNREGISTERED
    registration = registered_by(study, home) if is_registered else None
    return exported(wanted, study, registration, lambda: open_case(study, home))


def verify_registers(
    study: Study, home: Home | None = None, progress: Callable[[str], None] = lambda _: None
) -> Verified:
    """Verify registers: files, rows, what follows from rows, and what the registration says of them.

    Args:
        study: the study.
        home: where registrations are.
        progress: told what is being checked.

    Raises:
        IncompleteError, DamagedError, VerificationError: as `check_whole`, and as `open_case`.
    """
    from toolkit.study.check.whole import Verified, check_whole
    from toolkit.study.evaluating.evaluated import UNREGISTERED

    if not study.has("runs") or study.manifest.registration.name == UNREGISTERED:
        return Verified(check_whole(study, None, progress))
    try:
        registration_of(study, home)
    except IncompleteError as missing:
        return Verified(check_whole(study, None, progress), missing=missing.problem)
    case = open_case(study, home)
    return Verified(check_whole(study, case, progress), case.standing)


def registered_runs(study: Study, home: Home | None = None) -> dict[str, Specification]:
    """Return the specification of every run that a study's registration has, by name.

    Raises:
        IncompleteError: the registration or one of its tokens is not here.
    """
    from toolkit.study.new.task_pools import TABLE, digests
    from toolkit.study.play.matrix import specify_registered

    there = set(study.columns(TABLE, ("pool",))["pool"].to_pylist())
    pools = digests([name for name in STUDY_POOLS if name in there], study, lambda _: None)
    return {run.run_id: run for run in specify_registered(registered_by(study, home), pools)}


def registered_probe(
    study: Study, runs: dict[str, Specification], home: Home | None = None
) -> RegisteredProbe | None:
    """Return the probe that a study's registration registers; None where there is none.

    Args:
        study: the study.
        runs: its registered runs by name.
        home: where registrations are.

    Raises:
        IncompleteError: the registration or one of its tokens is not here.
    """
    from toolkit.study.probing import design

    return design.registered_probe(registered_by(study, home), runs.values())


def verify(
    folder: Path,
    studies: Sequence[Study],
    trust_files: Sequence[Path] = (),
    restatements: Sequence[str] = (),
    *,
    with_openssl: bool = False,
    all_belong: bool = False,
) -> Verification:
    """Verify one registration, with the chronology of those studies that belong to it.

    Args:
        folder: the registration's.
        studies: those whose runs have to come after it.
        trust_files: further authorities that the caller trusts.
        restatements: last links of registrations that the caller has compared with the document they restate.
        with_openssl: whether OpenSSL is asked about each token, too: it can veto.
        all_belong: whether every study has to belong to the registration; otherwise the others are left out.

    Raises:
        UsageError: the registration would vouch for itself.
        DamagedError: all have to belong to it, and one does not.
    """
    from datetime import UTC, datetime

    from toolkit.decisions.case import open_book
    from toolkit.prereg.checks import Reader
    from toolkit.prereg.trust import known_authorities, known_restatements
    from toolkit.prereg.verification import verify_registration
    from toolkit.study.check.registered import refuse_own, runs_of

    def studies_of(registration: Registration) -> list[StudyRuns]:
        for study in studies if all_belong else ():
            open_book(study, registration)  # refuses a study of another one
        return [
            runs_of(study, registration)
            for study in studies
            if study.manifest.registration.name == registration.name
        ]

    refuse_own(folder, trust_files)
    reader = Reader(
        known_authorities(*trust_files), datetime.now(UTC), with_openssl, known_restatements(restatements)
    )
    return verify_registration(folder, reader, studies_of)


def verify_frozen(
    home: Home | None = None,
    studies: Sequence[Study] | None = None,
    trust_files: Sequence[Path] = (),
) -> list[Verification]:
    """Verify every registration here that claims to be frozen; a draft claims nothing yet.

    Args:
        home: where they are.
        studies: the studies with runs, where they are open already.
        trust_files: further authorities that the caller trusts.
    """
    from toolkit.prereg.registration import is_draft

    home = home or find_home()
    folders = [home.registration_folder(name) for name in home.registration_names()]
    frozen = [folder for folder in folders if not is_draft(folder)]
    opened = studies_here(home) if studies is None and frozen else (studies or ())
    return [verify(folder, opened, trust_files) for folder in frozen]


def frozen_registrations(home: Home | None = None) -> Iterator[Registration]:
    """Yield every frozen registration here whose files are whole; `verify_frozen` says what ails others."""
    from toolkit.prereg.verification import open_checked

    home = home or find_home()
    for name in home.registration_names():
        registration, _ = open_checked(home.registration_folder(name))
        if registration is not None:
            yield registration


def _with_runs(home: Home) -> list[Study]:
    """Open every study that has runs, the paper's first."""
    studies = [open_study(name, home) for name in home.studies()]
    return sorted((study for study in studies if study.has("runs")), key=lambda s: s.name != PUBLISHED)
