"""From names on the command line to opened studies and registrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.decisions.case import Case
    from toolkit.registers.study import Study


def load_study(name: str, home: Home | None = None) -> Study:
    """Open a study by name or path."""
    from toolkit.registers.study import open_study

    return open_study((home or find_home()).study_folder(name))


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
