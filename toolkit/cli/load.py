"""From names on the command line to opened studies and registrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.cli.output import remark
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.prereg.registration import Registration
    from toolkit.prereg.verification import Verification
    from toolkit.registers.manifest import RegistrationRef
    from toolkit.registers.study import Study
    from toolkit.study.probing.design import RegisteredProbe
    from toolkit.training.specification import Specification

PUBLISHED = "published"
STUDY_POOLS = ("train", "validation", "test", "diagnostic")
"""The pools that a study's runs meet."""


def load_study(name: str, home: Home | None = None) -> Study:
    """Open a study by name, path, or `owner/name@revision`, as `open_registers`; its remarks go to stderr."""
    from toolkit.registers.opening import open_registers

    return open_registers(name, home, say=remark)


def decidable(home: Home) -> tuple[str, ...]:
    """Return the names of the shipped studies that have runs; repositories of tasks have none."""
    return tuple(name for name in home.studies() if load_study(name, home).has("runs"))


def usual_study(home: Home | None = None) -> str:
    """Return the study that is meant where none is named: the published one, or the only one.

    Raises:
        UsageError: there are several others.
    """
    home = home or find_home()
    here = decidable(home) if home.has_studies else ()
    if len(here) != 1 and PUBLISHED not in here:
        raise UsageError("say which study is meant", expected=f"--study {' or '.join(here) or 'NAME'}")
    return PUBLISHED if PUBLISHED in here else here[0]


def load_cases(names: Sequence[str], home: Home | None = None, *, recompute: bool = False) -> list[Case]:
    """Open studies with their registrations; every shipped one where none is named.

    Args:
        names: studies by name, path, or `owner/name@revision`.
        home: where studies and registrations are; found where it is not given.
        recompute: whether intervals are computed even where a study has stored them.

    Raises:
        UsageError: a study has no runs.
        IncompleteError: there is no study at all, or its registration is missing.
    """
    home = home or find_home()
    chosen = tuple(dict.fromkeys(names)) or decidable(home)
    if not chosen:
        raise IncompleteError(
            "no study here has runs", where=home.registers, remedy="put a study's folder there"
        )
    return [case_of(load_study(name, home), home, recompute=recompute) for name in chosen]


def case_of(study: Study, home: Home | None = None, *, recompute: bool = False) -> Case:
    """Put a study and its registration together.

    Args:
        study: the study.
        home: where registrations are; found where it is not given.
        recompute: whether intervals are computed even where the study has stored them.

    Raises:
        UsageError: the study has no runs.
        IncompleteError: its registration is missing.
    """
    from toolkit.decisions.case import open_case
    from toolkit.prereg.registration import load_registration

    if not study.has("runs"):
        raise UsageError(
            f"{study.name!r} has no runs: it holds the tasks that studies run on", where=study.folder
        )
    folder = registration_of(study, home or find_home())
    return open_case(study, load_registration(folder), recompute=recompute)


def registration_of(study: Study, home: Home) -> Path:
    """Return where a study's registration is: in the home, or else carried by the study itself.

    One of the same name in the home that was frozen as other files is another study's.

    Raises:
        IncompleteError: it is in neither.
    """
    from toolkit.files import file_sha256
    from toolkit.prereg.record import FROZEN

    named = study.manifest.registration
    carried, own = study.folder / "prereg" / named.name, home.registrations / named.name
    is_carried = (carried / "rules.toml").is_file()
    # A draft was not frozen as anything yet.
    is_own = (own / FROZEN).is_file() and file_sha256(own / FROZEN) == named.sha256
    if is_carried and not is_own:
        return carried
    if own.is_dir():
        return own
    if is_carried:
        return carried
    raise IncompleteError(
        f"the registration of study {study.name!r} is not here",
        expected=named.name,
        where=home.registrations,
        remedy="put the registration's folder there",
    )


def rules_asked(
    cases: Sequence[Case], rules: Sequence[str], *, everywhere: bool
) -> list[tuple[Case, tuple[str, ...]]]:
    """Return which rules to look at in which study.

    Args:
        cases: the studies.
        rules: names of rules; none for all.
        everywhere: whether every study has to have every rule, as where the studies were named.

    Raises:
        UsageError: no study has a rule, or one that was named has not.
    """
    if not rules:
        return [(case, ()) for case in cases]
    for rule in rules:
        having = [case for case in cases if rule in case.book.rules]
        if not having or (everywhere and len(having) < len(cases)):
            next(case for case in cases if case not in having).book.rule(rule)
    found = [(case, tuple(rule for rule in rules if rule in case.book.rules)) for case in cases]
    return [(case, mine) for case, mine in found if mine]


def registered_runs(study: Study, home: Home | None = None) -> dict[str, Specification]:
    """Return the specification of every run that a study's registration has, by name.

    Raises:
        IncompleteError: the registration or one of its tokens is not here.
    """
    from toolkit.study.new.task_pools import digests
    from toolkit.study.play.matrix import specify_registered

    case = case_of(study, home)
    pools = digests(STUDY_POOLS, study, lambda _: None)
    return {run.run_id: run for run in specify_registered(case.registration, pools)}


def registered_probe_of(study: Study, runs: dict[str, Specification]) -> RegisteredProbe | None:
    """Return the probe that a study's registration registers; None where there is none.

    Args:
        study: the study.
        runs: its registered runs by name.

    Raises:
        IncompleteError: the registration or one of its tokens is not here.
    """
    from toolkit.study.probing.design import registered_probe

    case = case_of(study)
    return registered_probe(case.registration, runs.values())


def _anchored(registration: Registration, study: Study) -> tuple[frozenset[str], bool]:
    """Return the amendments that concern only their own data, and whether these hold their tokens."""
    from toolkit.study.play.matrix import specify_registered
    from toolkit.study.probing.design import is_measured_by, own_data_amendments, required_probe

    own = own_data_amendments(registration)
    if not own:
        return own, False
    try:
        # Which tasks the runs met does not enter the probe's seeds.
        probe = required_probe(registration, specify_registered(registration, {}))
    except (IncompleteError, DamagedError):
        return own, False  # a token is missing, or none: the steps before say so
    return (own, True) if is_measured_by(probe, study) else (frozenset(), False)


def registration_ref(home: Home) -> RegistrationRef:
    """Return the shipped registration as the manifests of its registers name it."""
    from toolkit.prereg.registration import load_registration
    from toolkit.registers.published.build import REGISTRATION

    return reference(load_registration(home.registration_folder(REGISTRATION)))


def reference(registration: Registration) -> RegistrationRef:
    """Return a registration as the manifests of its registers name it."""
    from toolkit.registers.manifest import RegistrationRef

    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    return RegistrationRef(registration.name, registration.sha256, amendments)


def verify_frozen(home: Home, studies: Sequence[Study] | None = None) -> list[Verification]:
    """Verify every registration here that claims to be frozen; a draft claims nothing yet.

    Args:
        home: where they are.
        studies: the studies with runs, where they are open already.
    """
    from toolkit.prereg.registration import is_draft

    folders = [home.registration_folder(name) for name in home.registration_names()]
    frozen = [folder for folder in folders if not is_draft(folder)]
    opened = studies_here(home) if studies is None and frozen else (studies or ())
    return [verify_folder(folder, opened) for folder in frozen]


def frozen_registrations(home: Home) -> Iterator[Registration]:
    """Yield every frozen registration here whose files are whole; `verify_frozen` says what ails others."""
    from toolkit.prereg.verification import open_checked

    for name in home.registration_names():
        registration, _ = open_checked(home.registration_folder(name))
        if registration is not None:
            yield registration


def studies_here(home: Home) -> list[Study]:
    """Open every study of a home that has runs; before its runs, a registration's home need not have one."""
    return [load_study(name, home) for name in (decidable(home) if home.has_studies else ())]


def verify_folder(
    folder: Path,
    studies: Sequence[Study],
    trust_files: Sequence[Path] = (),
    restatements: Sequence[str] = (),
    *,
    with_openssl: bool = False,
    all_belong: bool = False,
) -> Verification:
    """Verify one registration, with the chronology of those studies that belong to it.

    Raises:
        DamagedError: all have to belong to it, and one does not.
    """
    from datetime import UTC, datetime

    from toolkit.decisions.case import open_book
    from toolkit.prereg.checks import Reader
    from toolkit.prereg.chronology import StudyRuns
    from toolkit.prereg.trust import known_authorities, known_restatements
    from toolkit.prereg.verification import verify_registration
    from toolkit.registers.study import launched_runs

    def studies_of(registration: Registration) -> list[StudyRuns]:
        for study in studies if all_belong else ():
            open_book(study, registration)  # refuses a study of another one
        return [
            StudyRuns(
                study.name,
                launched_runs(study),
                open_book(study, registration).plan.roles,
                *_anchored(registration, study),
            )
            for study in studies
            if study.manifest.registration.name == registration.name
        ]

    reader = Reader(
        known_authorities(*trust_files), datetime.now(UTC), with_openssl, known_restatements(restatements)
    )
    return verify_registration(folder, reader, studies_of)
