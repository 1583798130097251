"""Verifying a study, step by step: files, rows, registration, replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.measure import Registers
from toolkit.errors import DamagedError, IncompleteError
from toolkit.prereg.token.verdict import Verdict
from toolkit.prereg.verification import FAILED, Standing
from toolkit.registers import published
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.study import Study, check_files, check_tables
from toolkit.registers.validation import compare
from toolkit.rooms import Audited, RegisteredRuns, is_played_here, laboratory
from toolkit.seeds import evaluation_seed
from toolkit.verification.registered import DerivedRegisters, runs_of
from toolkit.verification.summaries import SUMMARIES

SCHEDULE = ("pool", "task", "schedule", "schedule_seed")
PROBED = "probe_checkpoints"


@dataclass
class Checked:
    """A study while it is checked, and what was verified of it."""

    study: Study
    case: Case | None
    progress: Callable[[str], None] = lambda _: None
    decides: bool = True
    """Whether its stored decisions are reached again."""
    replayed: int = 0
    """How many of its rows are played again."""
    seed: int = 0
    """What these are drawn by."""
    missing: str = ""
    """Why nothing could be held against its registration, or nothing."""
    rows: dict[str, int] = field(default_factory=dict)
    audited: Audited | None = None

    @cached_property
    def registers(self) -> Registers:
        """Its registers, whose summaries are held against their rows."""
        return self.case.engine.registers if self.case else DerivedRegisters(self.study, None, None)

    @cached_property
    def registered(self) -> RegisteredRuns | None:
        """Its runs as its registration specifies them."""
        return runs_of(self.case.registration if self.case else None, self.case.book if self.case else None)

    @cached_property
    def stored(self) -> dict[str, str | None]:
        """Run → its specification as it is stored."""
        return {row["run_id"]: row.get("specification") for row in self.registers.rows("runs")}

    @property
    def is_published(self) -> bool:
        """Whether it holds the figures of the published study."""
        return self.study.is_summary and self.study.name == published.STUDY

    @property
    def standing(self) -> Standing | None:
        """What its registration stands on; None where it belongs to none, or that is not here."""
        return self.case.standing if self.case else None

    @property
    def verdict(self) -> Verdict:
        """`verified`; `incomplete` where the registration is not here; `not_verified` where that fails."""
        if self.standing is not None and self.standing.name == FAILED:
            return "not_verified"
        return "incomplete" if self.missing else "verified"


def _files(at: Checked) -> str:
    at.progress("files")
    check_files(at.study)
    return f"{len(at.study.manifest.files)} files are those of the manifest, and there is no other"


def _rows(at: Checked) -> str:
    at.rows = check_tables(at.study, at.progress)
    if at.study.has("runs"):
        for table in SUMMARIES:
            if at.study.has(table):
                at.progress(table)
                at.registers.derive(table, at.stored)
                _check_no_stranger(at.registers, table, at.stored)
        if at.is_published:
            published.check_figures(at.study, [table.name for table in at.study.tables])
    return f"{sum(at.rows.values())} rows obey the schema, and what follows from others follows"


def _registration(at: Checked) -> str:
    if not at.study.has("runs"):
        return "it has no runs"
    if not at.study.is_summary:
        at.progress("specifications, pools and seeds")
        specified = {
            run: each
            for run, text in at.stored.items()
            if at.registered and (each := at.registered.specification(run, text))
        }
        ours = [run for run in specified.values() if not run.has_published_schedules]
        _check_schedules(at.study, is_specified=bool(ours))
        if at.registered:
            at.registered.check(at.study, specified, at.progress)
        elif at.case is not None and any(map(at.study.has, TABLES_OF_PROBE)):
            raise IncompleteError(
                f"registration {at.case.registration.name!r} registers no probe",
                expected="a table [probe] in its rules or in an amendment",
                where=at.case.registration.folder,
            )
        if at.case is not None and at.decides:
            at.progress("decisions")
            at.case.engine.decide_all()
    return str(at.standing or at.missing or "it belongs to no registration")


def _draws(at: Checked) -> str:
    return laboratory().hold_against_draws(at.study, at.progress) if at.is_published else ""


def _replay(at: Checked) -> str:
    if at.is_published:
        return laboratory().play_published(at.study, at.replayed, at.seed, at.progress)
    if at.case is None or not is_played_here(at.case.book):
        return "its runs were not played by this toolkit: nothing is played again"
    at.audited = laboratory().audit(
        at.study,
        at.case.registration,
        at.replayed,
        at.seed,
        lambda played, run: at.progress(f"row {played + 1} of {at.replayed}: {run}"),
        registers=at.registers,
    )
    return f"{sum(at.audited.sampled.values())} rows played again, all as registered (seed {at.seed})"


STEPS: dict[str, Callable[[Checked], str]] = {
    "files": _files,
    "rows": _rows,
    "registration": _registration,
    "draws": _draws,
    "replay": _replay,
}
"""What is verified of a study, in this order; each step says what holds, or nothing, or raises.

1. Every file is the one that the manifest names.
2. Every row obeys the schema, and every summary is what the rows give that it follows from; every run stands
   in its registered place.
3. Runs were launched with their registered specifications, met their pools, and drew their seeds; checkpoints
   have the hashes that they name, groups the advantages that their rewards give, and the probe the figures
   that its evidence gives; every stored decision is the one that is reached.
4. Of the published study, what training and evaluations lost is what the published seeds flip.
5. Rows that nobody could foresee come out again when they are played; of the published study its tasks, and
   the figures of its scripted agents.
"""


def number_of_steps(study: Study) -> int:
    """Return how many steps the progress of `check_study` names."""
    rows = 1 + len(study.tables)
    if not study.has("runs"):
        return rows
    summaries = sum(study.has(table) for table in SUMMARIES)
    if study.is_summary:
        return rows + summaries
    return rows + summaries + 2 + (study.manifest.tables[PROBED].rows if study.has(PROBED) else 0)


def check_study(at: Checked) -> Checked:
    """Check a study from its bytes to its registration; nothing is played again."""
    for step in ("files", "rows", "registration"):
        STEPS[step](at)
    return at


def _check_no_stranger(registers: Registers, table: str, runs: Collection[str]) -> None:
    """Check that a table has no row of a run that there is not."""
    stranger = next((row for row in registers.rows(table) if row["run_id"] not in runs), None)
    if stranger is not None and not registers.is_summary:
        raise DamagedError(f"{table} has a row of no run", found=stranger["run_id"], where=table)


def _check_schedules(study: Study, *, is_specified: bool) -> None:
    """Check that the schedules are those that episodes met, and have the seeds of their tasks."""
    if not study.has("schedules"):
        return
    tables = [study.columns(name, SCHEDULE) for name in ("episodes", "luck_share") if study.has(name)]
    stored = study.rows("schedules")
    compare("schedules", schedules_met(tables), stored)
    for row in stored if is_specified else ():
        seed = evaluation_seed(f"{row['pool']}:{row['task']}", row["schedule"])
        if row["schedule_seed"] != seed:
            raise DamagedError(
                "a schedule does not have the seed of its task",
                expected=seed,
                found=row["schedule_seed"],
                where="schedules row " + ", ".join(f"{n}={row[n]}" for n in ("pool", "task", "schedule")),
            )


def schedules_met(tables: Iterable[Any]) -> list[Row]:
    """Return the schedules of some rows, each once."""
    import pyarrow as pa

    met = pa.concat_tables(tables).group_by(list(SCHEDULE)).aggregate([]).to_pylist()
    seeds: dict[tuple[str, int, int], int] = {}
    for row in met:
        at = (row["pool"], row["task"], row["schedule"])
        if seeds.setdefault(at, row["schedule_seed"]) != row["schedule_seed"]:
            raise DamagedError(
                "two runs met different schedules in one place of an evaluation",
                expected=f"seed {seeds[at]}",
                found=f"seed {row['schedule_seed']}",
                where=f"{at[0]}:{at[1]}, schedule {at[2]}",
            )
    return met  # type: ignore[no-any-return]
