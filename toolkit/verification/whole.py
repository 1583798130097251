"""Verifying a study whole: files, rows, what follows from them, and what its registration says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.prereg.verification import FAILED, Standing
from toolkit.registers import published
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.study import Study, verify_study
from toolkit.registers.validation import compare
from toolkit.seeds import evaluation_seed
from toolkit.verification.derived import DerivedRegisters, runs_of
from toolkit.verification.summaries import SUMMARIES

if TYPE_CHECKING:
    from toolkit.decisions.case import Case
    from toolkit.decisions.measure import Registers
    from toolkit.documents.standing import Verdict


SCHEDULE = ("pool", "task", "schedule", "schedule_seed")
PROBED = "probe_checkpoints"


@dataclass(frozen=True)
class Verified:
    """What was verified of a study.

    Args:
        rows: rows a table.
        standing: what its registration stands on; None where it belongs to none, or that is not here.
        missing: why nothing could be held against its registration, or nothing.
    """

    rows: dict[str, int]
    standing: Standing | None = None
    missing: str = ""

    @property
    def verdict(self) -> Verdict:
        """`verified`; `incomplete` where the registration is not here; `not_verified` where that fails."""
        if self.standing is not None and self.standing.name == FAILED:
            return "not_verified"
        return "incomplete" if self.missing else "verified"


def number_of_steps(study: Study) -> int:
    """Return how many steps `check_whole` tells of."""
    rows = 1 + len(study.tables)
    if not study.has("runs"):
        return rows
    summaries = sum(study.has(table) for table in SUMMARIES)
    if study.is_summary:
        return rows + summaries
    return rows + summaries + 2 + (study.manifest.tables[PROBED].rows if study.has(PROBED) else 0)


def check_whole(
    study: Study, case: Case | None, progress: Callable[[str], None], *, decides: bool = True
) -> dict[str, int]:
    """Check a study from its bytes to what follows from its rows.

    1. Every file, table and row is as `verify_study` has it.
    2. Every row of a summary is what the rows give that it follows from, and every run is as registered.
    3. Runs were launched with these specifications, met their pools, and drew their seeds; checkpoints have
       the hashes that they name, and groups the advantages that their rewards give.
    4. Every figure of the probe is what its evidence gives.
    5. Every stored decision is the one that is reached.
    """
    progress("files")
    rows = verify_study(study, progress)  # 1
    if not study.has("runs"):
        return rows
    registers = case.engine.registers if case else DerivedRegisters(study, None, None)
    registered = runs_of(case.registration if case else None, case.book if case else None)
    stored = {row["run_id"]: row.get("specification") for row in registers.rows("runs")}
    for table in SUMMARIES:  # 2
        if study.has(table):
            progress(table)
            registers.derive(table, stored)
            _check_no_stranger(registers, table, stored)
    if study.is_summary:
        if study.name == published.STUDY:
            published.check_figures(study, [table.name for table in study.tables])
        return rows
    progress("specifications, pools and seeds")
    specified = {
        run: each
        for run, text in stored.items()
        if registered and (each := registered.specification(run, text))
    }
    _check_schedules(study, is_specified=bool(specified))
    if registered:
        registered.check(study, specified, progress)  # 3, 4
    elif case is not None and any(map(study.has, TABLES_OF_PROBE)):
        raise IncompleteError(
            f"registration {case.registration.name!r} registers no probe",
            expected="a table [probe] in its rules or in an amendment",
            where=case.registration.folder,
        )
    if case is not None and decides:
        progress("decisions")
        case.engine.decide_all()  # 5
    return rows


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
