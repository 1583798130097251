"""Probing a study: every registered checkpoint of the probed runs, and the untrained policy once.

1. Each trajectory is a job: what was probed before, whole and by the same design, is kept.
2. Every trajectory is written down as soon as it was probed.
3. The tables of all of them join the study's other registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import hold, write_durably
from toolkit.probe.checkpoint import EVIDENCE
from toolkit.probe.language_model import check_same_coordinates
from toolkit.probe.regroups import index_rows
from toolkit.registers.writer import rows_files
from toolkit.study.executors.where import HERE, each_done
from toolkit.study.play import run as runs
from toolkit.study.play.jobs import ModelProbeJob, ProbeJob, perform
from toolkit.study.play.runner import Tick
from toolkit.study.probing.probed import CHECKPOINTS, TABULATED, read_probed
from toolkit.training.specification import LanguageModelSpecification

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.probe.design import Design
    from toolkit.registers.arrow import Row
    from toolkit.study.executors.where import Where
    from toolkit.study.play.assemble import Assembly
    from toolkit.study.play.jobs import AnyProbeJob
    from toolkit.training.specification import Specification

BASE = "base"
FOLDER = "probe"
LOCK = ".lock"
INDICES = "probe_indices"
TABLES_OF_PROBE = (EVIDENCE, INDICES, *TABULATED)


@dataclass(frozen=True)
class Probed:
    """The probe of a study, measured.

    Args:
        evidence: trajectory → its Parquet file of `probe_gram`.
        rows: table → rows of all others, without order.
        counts: trajectory → rows of evidence.
        largest_residual: of all identities, relative.
        kept: trajectories that had been probed before.
    """

    evidence: Mapping[str, bytes]
    rows: Mapping[str, list[Row]]
    counts: Mapping[str, int]
    largest_residual: float
    kept: tuple[str, ...]


def probe_jobs(
    design: Design,
    specifications: Sequence[Specification],
    checkpoints: Mapping[str, Sequence[Row]],
    steps: Collection[int] = (),
) -> tuple[AnyProbeJob, ...]:
    """Return a job a trajectory: the untrained policy, then run by run.

    Language models of one seed start from one adapter, and those of another seed from another. An untrained
    adapter changes nothing of what its model says, but decides the coordinates in which it is scored: the
    untrained policy is probed with the adapter of the first run.

    Args:
        design: the probe.
        specifications: the runs to probe.
        checkpoints: run → its rows of `checkpoints`, or of `adapters`.
        steps: checkpoints that are probed besides the untrained policy; all where it is left out.

    Raises:
        IncompleteError: a run lacks a registered checkpoint.
        DamagedError: two runs began from different policies, which the probe takes for one.
    """
    jobs: list[AnyProbeJob] = []
    started: dict[int | None, Row] = {}
    for run in sorted(specifications, key=lambda run: run.run_id):
        rows = sorted(checkpoints.get(run.run_id, ()), key=lambda row: int(row["step"]))
        expected = list(runs.ends(run))
        if [row["step"] for row in rows] != expected:
            raise IncompleteError(
                f"{run.run_id} does not have its registered checkpoints",
                expected=", ".join(map(str, expected)),
                found=", ".join(str(row["step"]) for row in rows) or "none",
                remedy=f"play it: toolkit study run {run.study}",
            )
        is_model = isinstance(run, LanguageModelSpecification)
        base = started.setdefault(run.seed if is_model else None, rows[0])
        if rows[0]["sha256"] != base["sha256"]:
            raise DamagedError(
                f"{run.run_id} began from another policy than the runs before it",
                expected=base["sha256"],
                found=rows[0]["sha256"],
                remedy="probe runs of one study: they share the untrained policy, language models those of a "
                "seed",
            )
        pools = tuple(sorted((name, run.pools[name]) for name in {one.pool for one in design.sets}))
        if not jobs:
            jobs.append(_job(design, BASE, run, (base,), pools))
        probed = tuple(row for row in rows[1:] if not steps or row["step"] in steps)
        jobs.append(_job(design, run.run_id, run, probed, pools))
    return tuple(jobs)


def _job(
    design: Design,
    trajectory: str,
    run: Specification,
    rows: tuple[Row, ...],
    pools: tuple[tuple[str, str], ...],
) -> AnyProbeJob:
    if isinstance(run, LanguageModelSpecification):
        return ModelProbeJob(design, trajectory, run, rows, pools)
    return ProbeJob(design, trajectory, run.surface_tokens, rows, pools)


def probe_all(
    folder: Path,
    jobs: Sequence[AnyProbeJob],
    *,
    where: Where = HERE,
    watch: Callable[[Tick], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Probed:
    """Probe trajectories, those left over first; what was stopped goes on with the same call.

    Args:
        folder: where each trajectory's files are kept.
        jobs: the trajectories.
        where: where to probe; one place probes in this process.
        watch: told whenever a trajectory is there.
        say: told what was lost and probed again.

    Raises:
        UsageError: another command is at work in the folder.
        IncompleteError: the disk is full, or a process ended; the same call goes on from there.
        DamagedError, VerificationError: what a job refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IncompleteError(
            "the probe's folder cannot be made", found=error.strerror, where=folder
        ) from None
    with hold(folder, LOCK, "probe's folder"):
        for part in folder.glob(".*.part"):
            part.unlink(missing_ok=True)
        found = {job.trajectory: probed for job in jobs if (probed := read_probed(folder, job))}  # 1
        kept = tuple(found)
        left = [job for job in jobs if job.trajectory not in found]
        watch(Tick(len(found), len(jobs), "what is there was checked"))
        for name, probed in _probe(folder, left, where, say):
            found[name] = probed
            watch(Tick(len(found), len(jobs), name))
        check_coordinates([row for one, _ in found.values() for row in one["tables"][CHECKPOINTS]], folder)
        return Probed(
            {name: found[name][1] for name in sorted(found)},
            {
                table: [row for one, _ in found.values() for row in one["tables"][table]]
                for table in TABULATED
            },
            {name: one["rows"][EVIDENCE] for name, (one, _) in found.items()},
            max(one["largest_residual"] for one, _ in found.values()),
            kept,
        )


def check_coordinates(checkpoints: Sequence[Row], where: Path) -> None:
    """Check that all checkpoints were scored in the same coordinates.

    Args:
        checkpoints: rows of `probe_checkpoints`.
        where: where they are.

    Raises:
        DamagedError: two of them were not.
    """
    names: dict[str, str] = {}
    for row in checkpoints:
        known = names.setdefault(row["scored"], row["coordinate_names_sha256"])
        place = f"{row['trajectory']}@{row['step']}, {row['scored']}, in {where}"
        check_same_coordinates(known, row["coordinate_names_sha256"], place)


def with_probe(assembly: Assembly, probed: Probed, design: Design) -> Assembly:
    """Return a study's registers together with its probe's (step 3)."""
    files = {f"{EVIDENCE}/{name}.parquet": content for name, content in probed.evidence.items()}
    shared = {**probed.rows, INDICES: index_rows(design)}
    written = rows_files(shared)
    contents = {file: content for parts in written.values() for file, content in parts.items()}
    tables = {name: tuple(parts) for name, parts in written.items()}
    rows = {name: len(listed) for name, listed in shared.items()}
    rows[EVIDENCE] = sum(probed.counts.values())
    return replace(
        assembly,
        contents={**assembly.contents, **files, **contents},
        tables={**assembly.tables, EVIDENCE: tuple(sorted(files)), **tables},
        rows={**assembly.rows, **rows},
    )


def _probe(
    folder: Path, jobs: Sequence[AnyProbeJob], where: Where, say: Callable[[str], None]
) -> Iterator[tuple[str, tuple[dict[str, Any], bytes]]]:
    """Probe trajectories, the longest first, and yield each as it is written down."""
    ordered = sorted(jobs, key=lambda job: len(job.checkpoints), reverse=True)
    for job, answer in each_done(ordered, where, partial(perform, play=runs.play_segment), say=say):
        for file, content in answer.contents.items():  # 2
            write_durably(folder / file, content)
        probed = read_probed(folder, job)
        if probed is None:
            raise DamagedError("what was probed cannot be read back", where=folder / job.trajectory)
        yield job.trajectory, probed
