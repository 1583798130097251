"""Did the freeze come before the runs? Launch times against the freeze, exceptions by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.prereg.registration import Registration


@dataclass(frozen=True)
class Chronology:
    """The order of the freeze and the runs of one study.

    Args:
        study: the study.
        verdict: `runs_after_freeze`, `run_before_freeze`, or `incomplete` where a launch time is missing.
        frozen_by: the latest recorded time of the authorities.
        runs_after: deciding runs launched after it.
        disclosed_exceptions: runs launched before it that the frozen document names.
        undisclosed: runs launched before it that it does not name.
        unknown: runs without a launch time.
        late_amendments: amendments dated after the day on which the first of `runs_after` was launched.
    """

    study: str
    verdict: str
    frozen_by: datetime
    runs_after: tuple[str, ...]
    disclosed_exceptions: tuple[str, ...]
    undisclosed: tuple[str, ...]
    unknown: tuple[str, ...]
    late_amendments: tuple[str, ...]


def chronology(
    registration: Registration, study: str, runs: Sequence[Mapping[str, object]], roles: Sequence[str]
) -> Chronology:
    """Compare the freeze with the launch of every run that enters a decision.

    Args:
        registration: its latest authority time is the freeze.
        study: name of the study.
        runs: rows of the `runs` register.
        roles: roles of the runs that enter decisions.
    """
    frozen_by = max(authority.recorded_time for authority in registration.record.authorities)
    disclosed = {exception.run for exception in registration.exceptions}
    after: dict[str, datetime] = {}
    excepted: list[str] = []
    undisclosed: list[str] = []
    unknown: list[str] = []
    for run in runs:
        if run["role"] not in roles:
            continue
        name, launched = str(run["run_id"]), run["launched_at"]
        if not isinstance(launched, datetime):
            unknown.append(name)
        elif launched > frozen_by:
            after[name] = launched
        elif name in disclosed:
            excepted.append(name)
        else:
            undisclosed.append(name)
    incomplete = unknown or not (after or excepted)
    verdict = "run_before_freeze" if undisclosed else "incomplete" if incomplete else "runs_after_freeze"
    first = min(after.values()).date() if after else None
    return Chronology(
        study=study,
        verdict=verdict,
        frozen_by=frozen_by,
        runs_after=tuple(after),
        disclosed_exceptions=tuple(excepted),
        undisclosed=tuple(undisclosed),
        unknown=tuple(unknown),
        late_amendments=tuple(a.id for a in registration.amendments if first and a.dated > first),
    )
