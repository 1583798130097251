"""A study in hand: its registration, what decides it, what its registers are checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, UsageError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.exports.formats import Wanted
    from toolkit.prereg.registration import Registration
    from toolkit.registers.manifest import RegistrationRef
    from toolkit.registers.study import Study
    from toolkit.verification.whole import Verified


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
    from toolkit.registers.manifest import PUBLISHED_REGISTRATION

    return reference(load_registration(home.registration_folder(PUBLISHED_REGISTRATION)))


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
    from toolkit.verification import registered

    registration = registered_by(study, home)
    registered.refuse_own(registration.folder, trust_files)
    return registered.open_case(study, registration, trust_files)


def export(study: Study, wanted: Wanted, home: Home | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a study in another project's format, by path; nothing is written.

    Args:
        study: the study.
        wanted: the format, and what of the study.
        home: where registrations are.

    Raises:
        UsageError, IncompleteError, DamagedError: as `toolkit.exports.formats.exported`.
    """
    from toolkit.exports.formats import exported
    from toolkit.registers.manifest import UNREGISTERED

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
    from toolkit.registers.manifest import UNREGISTERED
    from toolkit.verification.whole import Verified, check_whole

    if not study.has("runs") or study.manifest.registration.name == UNREGISTERED:
        return Verified(check_whole(study, None, progress))
    try:
        registration_of(study, home)
    except IncompleteError as missing:
        return Verified(check_whole(study, None, progress), missing=missing.problem)
    case = open_case(study, home)
    return Verified(check_whole(study, case, progress), case.standing)
