"""Verifying a study whole: files, rows, what follows from them, and what its registration says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.canonical import document_sha256
from toolkit.errors import DamagedError
from toolkit.lab.play.assemble import SCHEDULE, schedules_met
from toolkit.lab.play.summaries import SUMMARIES
from toolkit.lab.probing.design import CHECKPOINTS, TABLES_OF_PROBE, required_probe
from toolkit.lab.probing.report import recompute
from toolkit.lab.task_pools import TABLE, check_specified, digests, row_document
from toolkit.prereg.verification import FAILED, Standing
from toolkit.registers import published
from toolkit.registers.study import Study, verify_study
from toolkit.registers.validation import compare
from toolkit.seeds import evaluation_seed
from toolkit.specification import Specification
from toolkit.verification.derived import DerivedRegisters
from toolkit.verification.specifications import RegisteredRuns
from toolkit.verification.tied import check_tied

if TYPE_CHECKING:
    from toolkit.decisions.case import Case
    from toolkit.decisions.measure import Registers
    from toolkit.documents.standing import Verdict


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
    return rows + summaries + 2 + (study.manifest.tables[CHECKPOINTS].rows if study.has(CHECKPOINTS) else 0)


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
    registered = RegisteredRuns(case.registration, case.book) if case else RegisteredRuns(None, None)
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
    specified = {run: each for run, text in stored.items() if (each := registered.specification(run, text))}
    _check_launches(registers, specified)  # 3
    _check_pools(study, list(specified.values()))
    _check_schedules(study, is_specified=bool(specified))
    check_tied(study, specified)
    if case is not None:
        _check_probe(study, case, specified.values(), progress)  # 4
        if decides:
            progress("decisions")
            case.engine.decide_all()  # 5
    return rows


def _check_no_stranger(registers: Registers, table: str, runs: Collection[str]) -> None:
    """Check that a table has no row of a run that there is not."""
    stranger = next((row for row in registers.rows(table) if row["run_id"] not in runs), None)
    if stranger is not None and not registers.is_summary:
        raise DamagedError(f"{table} has a row of no run", found=stranger["run_id"], where=table)


def _check_launches(registers: Registers, specified: Mapping[str, Specification]) -> None:
    """Check that every launch was one of its run's specification."""
    for launch in registers.rows("launches") if registers.has("launches") else ():
        specification = specified.get(launch["run_id"])
        if specification is not None and launch["specification_sha256"] != specification.sha256():
            raise DamagedError(
                "a run was launched with another specification",
                expected=specification.sha256(),
                found=launch["specification_sha256"],
                where=f"launches row run_id={launch['run_id']}, attempt={launch['attempt']}",
            )


def _check_pools(study: Study, specified: Collection[Specification]) -> None:
    """Check that the tasks of a study are those that its runs were specified for, each as its digest says."""
    if not specified:
        return
    for row in study.rows(TABLE):
        found = document_sha256(row_document(row))
        if found != row["sha256"]:
            raise DamagedError(
                "a task is not the one of its digest",
                expected=f"SHA-256 {row['sha256']}",
                found=f"SHA-256 {found}",
                where=f"{TABLE} row pool={row['pool']}, index={row['index']}",
            )
    names = {name for specification in specified for name in specification.pools}
    met = digests(names, study, lambda _: None)
    for specification in specified:
        for name, sha256 in specification.pools.items():
            check_specified(name, met[name], sha256)


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


def _check_probe(
    study: Study, case: Case, specified: Iterable[Specification], progress: Callable[[str], None]
) -> None:
    """Check the probe, where the study has one."""
    if not any(study.has(name) for name in TABLES_OF_PROBE):
        return
    probe = required_probe(case.registration, specified)
    recompute(study, study.rows(CHECKPOINTS), probe, progress)
