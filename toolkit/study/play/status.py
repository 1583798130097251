"""How far a study has come: each run's state, read without touching anything."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.files import read_bytes
from toolkit.study.play.workplace import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.study.play.workplace import RunFolder, Workplace
    from toolkit.training.specification import Specification

COMPLETE = "complete"
INCOMPLETE = "incomplete"
BEGUN = "begun"
NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class RunStatus:
    """How far a run has come.

    Args:
        run_id: the run.
        tier: its tier.
        state: `complete`; `incomplete` where all was played and the evidence is not what is registered;
            `begun`; `not begun`.
        segments: segments that are there.
        of: segments that the run has.
        attempts: launches so far.
        shortcomings: what its evidence lacks.
        at_work: whether a command is at work on it.
    """

    run_id: str
    tier: int
    state: str
    segments: int
    of: int
    attempts: int
    shortcomings: tuple[str, ...] = ()
    at_work: bool = False


def statuses(workplace: Workplace, specifications: Iterable[Specification]) -> list[RunStatus]:
    """Return the state of each run, by the names of its files: `run` examines them.

    Raises:
        DamagedError: a summary or an attempt is not one.
    """
    return [
        replace(_status(workplace.run(specification)), at_work=workplace.is_held(specification.run_id))
        for specification in specifications
    ]


def shortcomings_of(run: RunFolder) -> tuple[str, ...]:
    """Return what a complete run's evidence lacks.

    Raises:
        IncompleteError: it has no summary.
        DamagedError: its summary is not one.
    """
    path = run.folder / SUMMARY
    try:
        return tuple(map(str, json.loads(read_bytes(path))["shortcomings"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError("a run's summary is not one", found=error, where=path) from None


def _status(run: RunFolder) -> RunStatus:
    launches = run.launches()
    lacking: tuple[str, ...] = ()
    state = BEGUN if launches else NOT_BEGUN
    if run.is_complete:
        lacking = shortcomings_of(run)
        state = INCOMPLETE if lacking else COMPLETE
    return RunStatus(
        run.specification.run_id,
        run.specification.tier,
        state,
        run.played,
        len(run.segments),
        len(launches),
        lacking,
    )
