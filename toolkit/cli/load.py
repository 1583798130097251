"""From names on the command line to opened studies and registrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, IncompleteError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.decisions.case import Case
    from toolkit.prereg.verification import Verification
    from toolkit.registers.study import Study


def load_study(name: str, home: Home | None = None) -> Study:
    """Open a study by name or path.

    Raises:
        DamagedError: the study lies in the registers under another name than its own.
    """
    from toolkit.registers.study import open_study

    home = home or find_home()
    study = open_study(home.study_folder(name))
    if study.folder.parent == home.registers and study.folder.name != study.name:
        raise DamagedError(
            "a study lies under another name than its own",
            expected=study.name,
            found=study.folder.name,
            where=study.folder,
        )
    return study


def load_cases(names: Sequence[str], home: Home | None = None) -> list[Case]:
    """Open studies with their registrations; every shipped one where none is named.

    Raises:
        IncompleteError: there is no study at all.
    """
    from toolkit.decisions.case import open_case
    from toolkit.prereg.registration import load_registration

    home = home or find_home()
    chosen = tuple(dict.fromkeys(names)) or home.studies()
    if not chosen:
        raise IncompleteError("there is no study with a manifest", where=home.registers)
    cases = []
    for name in chosen:
        study = load_study(name, home)
        folder = home.registration_folder(study.manifest.registration.name)
        cases.append(open_case(study, load_registration(folder)))
    return cases


def verify_named(name: str, home: Home) -> Verification:
    """Verify one registration, with the chronology of every study here that belongs to it."""
    from toolkit.decisions.rulebook import load_rulebook
    from toolkit.prereg.chronology import chronology
    from toolkit.prereg.verification import open_checked, verify_registration

    folder = home.registration_folder(name)
    registration, _ = open_checked(folder)
    orders = []
    if registration is not None:
        roles = load_rulebook(registration.rules).plan.roles
        studies = [load_study(study_name, home) for study_name in home.studies()]
        orders = [
            chronology(registration, study.name, study.rows("runs"), roles)
            for study in studies
            if study.manifest.registration.name == registration.name
        ]
    return verify_registration(folder, orders)
