"""Which models a study's runs evaluated, by which metrics, and when."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from toolkit.errors import IncompleteError
from toolkit.prereg.registration import Registration
from toolkit.registers.arrow import Row
from toolkit.registers.manifest import UNREGISTERED
from toolkit.registers.study import Study

ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Metric:
    """A mean over the episodes of an evaluation."""

    type: str  # its name for machines
    name: str  # its name for readers
    column: str  # the sum over episodes, in `evaluations`
    of_episode: str  # what each episode adds to it, in `episodes`

    def of(self, row: Row) -> float:
        """Return it for a row of `evaluations`."""
        return float(row[self.column] / row["episodes"])


METRICS = (
    Metric("success_rate", "True success", "successes", "true_success"),
    Metric("score", "Mean score", "score", "score"),
)


@dataclass(frozen=True)
class Model:
    """A model that a study evaluated."""

    name: str  # a run's, whose policies it is; or what `toolkit evaluate` was given
    runs: tuple[Row, ...]  # rows of `runs`: the one, or one a regime
    is_own: bool  # whether the study trained it

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The names of its runs."""
        return tuple(run["run_id"] for run in self.runs)

    @property
    def folder(self) -> str:
        """Its name as a folder can have it."""
        return re.sub(r"[^\w.-]+", "-", self.name.rstrip("/").rpartition("/")[2])

    @property
    def shared(self) -> Row:
        """What its rows of `runs` say alike; the specification, which is a document, left out."""
        first, *others = self.runs
        alike = {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}
        return {name: value for name, value in alike.items() if name != "specification"}


def models_of(study: Study, runs: Sequence[Row]) -> list[Model]:
    """Return the models of some runs: one a run, or one for all that evaluated what somebody brought."""
    if study.manifest.registration.name != UNREGISTERED:
        return [Model(run["run_id"], (run,), is_own=True) for run in runs]
    named: dict[str, list[Row]] = {}
    for run in runs:
        named.setdefault(json.loads(run["specification"])["model"], []).append(run)
    return [Model(name, tuple(rows), is_own=False) for name, rows in named.items()]


def run_ends(study: Study) -> dict[str, datetime]:
    """Return when the last launch of each run ended; a run of which nobody recorded it is not there."""
    ends: dict[str, datetime] = {}
    for launch in study.rows("launches") if study.has("launches") else ():
        run, end = launch["run_id"], launch["ended_at"]
        if end is not None:
            ends[run] = max(ends.get(run, end), end)
    return ends


def last_date(study: Study, registration: Registration | None, told: datetime | None = None) -> datetime:
    """Return the last moment that a study's rows name, an end or a launch of a run; no clock is asked."""
    launched: list[datetime] = [at for run in study.rows("runs") if (at := run.get("launched_at"))]
    if found := [*run_ends(study).values(), *launched]:
        return max(found)
    if told is not None:
        return told
    if registration is None:
        raise IncompleteError(
            "nothing here says when anything was, and the format wants a date",
            where=study.folder,
            remedy="say when the study was made: --date YYYY-MM-DD",
        )
    return registration.record.frozen_at
