"""When things were: by what the study says, never by the clock, so that bytes stay the same."""

from datetime import datetime

from toolkit.errors import IncompleteError
from toolkit.prereg.registration import Registration
from toolkit.registers.study import Study


def run_ends(study: Study) -> dict[str, datetime]:
    """Return when the last launch of each run ended; a run of which nobody recorded it is not there."""
    ends: dict[str, datetime] = {}
    for launch in study.rows("launches") if study.has("launches") else ():
        run, end = launch["run_id"], launch["ended_at"]
        if end is not None:
            ends[run] = max(ends.get(run, end), end)
    return ends


def last_date(study: Study, registration: Registration | None) -> datetime:
    """Return the last moment that a study's records name: an end or a launch of a run, or else the freeze.

    Raises:
        IncompleteError: they name none.
    """
    launched = [at for run in study.rows("runs") if (at := run.get("launched_at"))]
    if found := [*run_ends(study).values(), *launched]:
        return max(found)
    if registration is None:
        raise IncompleteError(
            "nothing here says when anything was",
            expected="a launch in `launches` or `runs`, or the freeze of a registration",
            where=study.folder,
        )
    return registration.record.frozen_at
