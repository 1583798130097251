"""Which later entries of a registration speak of runs that decide: its chronology points to them."""

import re
from dataclasses import dataclass

from toolkit.decisions.case import Case
from toolkit.prereg.registration import Registration

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*", re.ASCII)


@dataclass(frozen=True)
class Touching:
    """A deviation or disclosure that names deciding runs of a study."""

    id: str
    title: str
    study: str
    runs: tuple[str, ...]


def touching_runs(registration: Registration, case: Case) -> tuple[Touching, ...]:
    """Return the deviations and disclosures whose text names deciding runs of a study, in order."""
    deciding = [str(run["run_id"]) for run in case.study.rows("runs") if run["role"] in case.book.plan.roles]
    found = []
    for entry in registration.deviations:
        said = set(_WORD.findall(f"{entry.title} {entry.text}"))
        if runs := tuple(run for run in deciding if run in said):
            found.append(Touching(entry.id, entry.title, case.study.name, runs))
    return tuple(found)
