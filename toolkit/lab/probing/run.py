"""The registered probe of a study: the registered checkpoints of its runs, and the untrained policy once.

1. The checkpoints are those of the study's registers, or of runs that were just played.
2. Each trajectory is a job: what was probed before, whole and by the same design, is kept, and every other is
   written down as soon as it was probed.
3. The tables of all of them join the study's other registers, which are sealed anew; or they are compared
   with what is registered.
"""

import io
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.decisions.case import Case
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes, write_durably
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.executors.folder import go_on, held
from toolkit.lab.play import assemble
from toolkit.lab.play.rows import rows_of_run, with_adapter
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.probe import language_model
from toolkit.lab.probe.design import DRIFT, EVIDENCE, Design, index_rows
from toolkit.lab.probing import probed
from toolkit.lab.probing.design import CHECKPOINTS, INDICES, TABULATED, RegisteredProbe
from toolkit.lab.training.devices import KEPT
from toolkit.prereg.registration import Registration
from toolkit.registers import arrow, manifest, row_tables, schema, writer
from toolkit.registers.row_tables import BASE, TABLES_OF_PROBE
from toolkit.registers.study import Study
from toolkit.specification import LanguageModelSpecification, Specification

FOLDER = "probe"
LOCK = ".lock"
ADAPTERS = "adapters"


@dataclass(frozen=True)
class MeasuredProbe:
    """The probe of a study, measured."""

    design: Design  # the registered design
    evidence: Mapping[str, bytes]  # trajectory → its Parquet file of `probe_gram`
    rows: Mapping[str, list[arrow.Row]]  # table → rows of all others, without order
    largest_residual: float  # of all identities, relative
    kept: tuple[str, ...]  # trajectories that had been probed before

    def added_to(self, assembly: assemble.Assembly) -> assemble.Assembly:
        """Return a study's registers together with the probe's (step 3)."""
        evidence = {f"{EVIDENCE}/{name}.parquet": raw for name, raw in self.evidence.items()}
        derived = writer.rows_files({**self.rows, INDICES: index_rows(self.design)})
        return replace(
            assembly, files={**assembly.files, EVIDENCE: dict(sorted(evidence.items())), **derived}
        )

    def tables(self) -> dict[str, object]:
        """Return the tables of the probe, as `pyarrow.Table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return {
            name: pa.concat_tables([pq.read_table(io.BytesIO(content)) for content in files.values()])
            for name, files in self.added_to(assemble.Assembly({}, {})).files.items()
        }

    def compare(self, study: Study) -> tuple[str, ...]:
        """Compare the probe with what a study's registers hold."""
        tables = {name: table for name, table in self.tables().items() if name != DRIFT or study.has(DRIFT)}
        for name, table in tables.items():
            if not study.has(name):
                raise IncompleteError(
                    f"study {study.name!r} has no {name}",
                    where=study.folder,
                    remedy=f"measure it: toolkit probe run {study.name}",
                )
            registered = arrow.row_sha256(study.arrow(name))
            measured = arrow.row_sha256(arrow.to_arrow(schema.TABLES[name], arrow.to_rows(table)))
            if measured != registered:
                raise VerificationError(
                    f"what was probed again differs from study {study.name!r} in {name}",
                    expected=f"rows with SHA-256 {registered}",
                    found=f"rows with SHA-256 {measured}",
                    where=study.folder,
                    remedy="compare `spec_sha256` and `adapter_sha256` in probe_checkpoints; the last digits "
                    "of what a language model says and scores are those of its machine and libraries"
                    if study.has(ADAPTERS)
                    else "compare `spec_sha256` and `adapter_sha256` in probe_checkpoints",
                )
        return tuple(tables)


def probe_jobs(
    design: Design,
    specifications: Sequence[Specification],
    checkpoints: Mapping[str, Sequence[arrow.Row]],
    steps: Collection[int] = (),
) -> tuple[probed.ProbeJob, ...]:
    """Return a job a trajectory: the untrained policy, then run by run.

    Language models of one seed start from one adapter, and those of another seed from another. An untrained
    adapter changes nothing of what its model says, but decides the coordinates in which it is scored: the
    untrained policy is probed with the adapter of the first run.
    """
    jobs: list[probed.ProbeJob] = []
    started: dict[int | None, arrow.Row] = {}
    for run in sorted(specifications, key=lambda run: run.run_id):
        rows = sorted(checkpoints.get(run.run_id, ()), key=lambda row: int(row["step"]))
        expected = list(run.ends)
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
        pools = tuple(sorted((name, run.pools[name]) for name in {played.pool for played in design.sets}))
        if not jobs:
            jobs.append(probed.ProbeJob(design, BASE, run, (base,), pools))
        chosen = tuple(row for row in rows[1:] if not steps or row["step"] in steps)
        jobs.append(probed.ProbeJob(design, run.run_id, run, chosen, pools))
    return tuple(jobs)


def perform(job: probed.ProbeJob) -> dict[str, bytes]:
    """Probe a trajectory and return its two files. Nothing is read or written: another machine may do it."""
    if isinstance(job.run, LanguageModelSpecification):
        from toolkit.lab.probing.probed_model import probe_model_trajectory

        return probe_model_trajectory(job, job.run)
    return probed.probe_trajectory(job)


def probe_all(folder: Path, jobs: Sequence[probed.ProbeJob], executor: Executor = HERE) -> MeasuredProbe:
    """Probe trajectories, those left over first; what was stopped goes on with the same call (step 2)."""

    def keep(job: probed.ProbeJob, contents: Mapping[str, bytes]) -> tuple[dict[str, Any], bytes]:
        for file, content in contents.items():
            write_durably(folder / file, content)
        kept = probed.read_probed(folder, job)
        if kept is None:
            raise DamagedError("what was probed cannot be read back", where=folder / job.trajectory)
        return kept

    has_model = any(isinstance(job.run, LanguageModelSpecification) for job in jobs)
    with held(folder, {LOCK: "probe's folder"}, [folder]):
        results, before = go_on(
            executor.on_gpus(KEPT) if has_model else executor,
            jobs,
            perform,
            kept=lambda job: probed.read_probed(folder, job),
            keep=keep,
            size=lambda job: len(job.checkpoints),
        )
    documents = {job.trajectory: document for job, (document, _) in zip(jobs, results, strict=True)}
    contents = {job.trajectory: content for job, (_, content) in zip(jobs, results, strict=True)}
    check_coordinates([row for each in documents.values() for row in each["tables"][CHECKPOINTS]], folder)
    return MeasuredProbe(
        jobs[0].design,
        dict(sorted(contents.items())),
        {name: [row for each in documents.values() for row in each["tables"][name]] for name in TABULATED},
        max(each["largest_residual"] for each in documents.values()),
        tuple(job.trajectory for job in before),
    )


def check_coordinates(checkpoints: Sequence[arrow.Row], where: Path) -> None:
    """Check that all checkpoints were scored in the same coordinates."""
    names: dict[str, str] = {}
    for row in checkpoints:
        known = names.setdefault(row["scored"], row["coordinate_names_sha256"])
        at = f"{row['trajectory']}@{row['step']}, {row['scored']}, in {where}"
        language_model.check_same_coordinates(known, row["coordinate_names_sha256"], at)


def measure_study(
    study: Study, probe: RegisteredProbe, executor: Executor, *, folder: Path | None
) -> MeasuredProbe:
    """Probe the registered checkpoints of a study."""
    jobs = registered_jobs(study, probe)
    if folder is not None:
        return probe_all(folder, jobs, executor)
    with tempfile.TemporaryDirectory() as scratch:
        return probe_all(Path(scratch), jobs, executor)


def registered_jobs(study: Study, probe: RegisteredProbe) -> tuple[probed.ProbeJob, ...]:
    """Return the jobs of a study's registered probe, on the checkpoints of its registers; as `probe_jobs`."""
    checkpoints = {run.run_id: rows_of_run(study, run.checkpoint_table, run.run_id) for run in probe.runs}
    return probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)


def measure_runs(workplace: Workplace, probe: RegisteredProbe, executor: Executor) -> MeasuredProbe:
    """Probe the checkpoints of runs that were just played, beside them in their folder."""
    import pyarrow.parquet as pq

    checkpoints = {}
    for specification in probe.runs:
        run = workplace.run(specification)
        run.check_complete()
        rows = arrow.to_rows(pq.read_table(run.folder / f"{specification.checkpoint_table}.parquet"))
        checkpoints[specification.run_id] = [with_adapter(row, run.folder) for row in rows]
    jobs = probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)
    return probe_all(workplace.folder / FOLDER, jobs, executor)


def sealed_with_probe(
    folder: Path,
    study: Study,
    measured: MeasuredProbe,
    *,
    registration: Registration,
    named: manifest.RegistrationRef,
    card: Path,
    open_case: Callable[..., Case],
) -> manifest.Manifest:
    """Write a study's registers with its probe, decided anew (step 2)."""
    replaced = {*TABLES_OF_PROBE, row_tables.DECISIONS.name}
    files = {
        name: {
            file: read_bytes(path, LARGEST_ROWS)
            for file, path in zip(entry.files, study.paths(name), strict=True)
        }
        for name, entry in study.manifest.tables.items()
        if name not in replaced
    }
    as_it_is = assemble.Assembly(files, {})
    return assemble.seal_decided(
        folder, registration, named, measured.added_to(as_it_is), card, open_case=open_case
    )
