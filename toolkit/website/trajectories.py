"""Which run a trajectory of the gradient probe follows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.plan import place_of

Run = Mapping[str, Any]


_SAID = re.compile(r"Trajectory (\S{1,60}) is (.{1,400})", re.DOTALL)
_BY_NAME = re.compile(r"the ([\w.-]{1,100}) run\b")


def runs_of_trajectories(case: Case) -> dict[str, str]:
    """Return run by trajectory, as far as the study and its registration tell.

    A study that is made here names a trajectory after its run. Elsewhere an amendment says it in words:
    "Trajectory B is C2 paired seed 1 ..." names the place of a deciding run, "Trajectory A is the gate-1 run"
    the beginning of a run's name. A sentence that fits no run, or two, tells nothing.
    """
    runs = [run for run in case.study.rows("runs") if run["role"] in case.book.plan.roles]
    found = {str(run["run_id"]): str(run["run_id"]) for run in runs}
    for amendment in case.registration.amendments:
        for change in amendment.changes:
            said = _SAID.match(change)
            if said and (run := _meant(said[2], runs)):
                found[said[1]] = run
    return found


def _meant(words: str, runs: Sequence[Run]) -> str:
    """Return the one run that a sentence begins with; empty where it is none, or could be two."""
    by_name = _BY_NAME.match(words)
    if by_name:
        return _only(run for run in runs if _plain(run["run_id"]).startswith(_plain(by_name[1])))
    return _only(run for run in runs if re.match(rf"{re.escape(_place(run))}\b", words))


def _only(runs: Iterable[Run]) -> str:
    names = [str(run["run_id"]) for run in runs]
    return names[0] if len(names) == 1 else ""


def _place(run: Run) -> str:
    condition, _, arm, seed = place_of(run)
    return f"{condition} {arm} seed {seed}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
