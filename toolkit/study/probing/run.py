"""The registered probe of a study, from its registers' checkpoints back into its registers.

1. The checkpoints are those of the study's registers, and every trajectory is probed.
2. The registers are sealed anew with the probe, or the probe is compared with what is registered.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, VerificationError
from toolkit.files import read_bytes, read_text
from toolkit.registers.arrow import to_arrow, to_rows
from toolkit.registers.row_tables import DECISIONS
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import TABLES
from toolkit.study.play.adapters import with_adapter
from toolkit.study.play.assemble import Assembly
from toolkit.study.play.decided import seal_decided
from toolkit.study.play.rows import rows_of_run
from toolkit.study.probing.probing import FOLDER, TABLES_OF_PROBE, Probed, probe_all, probe_jobs, with_probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.prereg.registration import Registration
    from toolkit.probe.design import Design
    from toolkit.registers.manifest import Manifest, RegistrationRef
    from toolkit.registers.study import Study
    from toolkit.study.executors.where import Where
    from toolkit.study.play.runner import Tick
    from toolkit.study.play.workplace import Workplace
    from toolkit.study.probing.design import RegisteredProbe

ADAPTERS = "adapters"


@dataclass(frozen=True)
class MeasuredProbe:
    """The probe of a study, measured.

    Args:
        design: the registered design.
        probed: what came of it.
    """

    design: Design
    probed: Probed

    def added_to(self, assembly: Assembly) -> Assembly:
        """Return a study's registers together with the probe's."""
        return with_probe(assembly, self.probed, self.design)

    def tables(self) -> dict[str, object]:
        """Return the tables of the probe, as `pyarrow.Table`."""
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        assembly = self.added_to(Assembly({}, {}, {}, {}))
        return {
            name: pa.concat_tables([pq.read_table(io.BytesIO(assembly.contents[file])) for file in files])
            for name, files in assembly.tables.items()
        }

    def compare(self, study: Study) -> tuple[str, ...]:
        """Compare the probe with what a study's registers hold.

        Returns:
            The tables that were compared.

        Raises:
            VerificationError: a table differs.
            IncompleteError: the study has no probe.
        """
        for name, table in self.tables().items():
            if not study.has(name):
                raise IncompleteError(
                    f"study {study.name!r} has no {name}",
                    where=study.folder,
                    remedy=f"measure it: toolkit probe run {study.name}",
                )
            registered = row_sha256(study.arrow(name))
            found = row_sha256(to_arrow(TABLES[name], to_rows(table)))
            if found != registered:
                raise VerificationError(
                    f"what was probed again differs from study {study.name!r} in {name}",
                    expected=f"rows with SHA-256 {registered}",
                    found=f"rows with SHA-256 {found}",
                    where=study.folder,
                    remedy="compare `spec_sha256` and `adapter_sha256` in probe_checkpoints; the last digits "
                    "of what a language model says and scores are those of its machine and libraries"
                    if study.has(ADAPTERS)
                    else "compare `spec_sha256` and `adapter_sha256` in probe_checkpoints",
                )
        return TABLES_OF_PROBE


def measure_study(
    study: Study,
    probe: RegisteredProbe,
    *,
    folder: Path | None,
    where: Where,
    watch: Callable[[Tick], None],
    say: Callable[[str], None] = lambda _: None,
) -> MeasuredProbe:
    """Probe the registered checkpoints of a study (step 1).

    Args:
        study: the study.
        probe: its registered probe.
        folder: where finished trajectories are kept; a scratch folder where it is left out.
        where: where to probe.
        watch: told whenever a trajectory is there.
        say: told what was lost and probed again.

    Raises:
        IncompleteError: a checkpoint is missing.
        DamagedError, VerificationError: what a trajectory's probe refuses.
    """
    checkpoints = {run.run_id: rows_of_run(study, run.checkpoint_table, run.run_id) for run in probe.runs}
    jobs = probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)
    if folder is not None:
        return MeasuredProbe(probe.design, probe_all(folder, jobs, where=where, watch=watch, say=say))
    with tempfile.TemporaryDirectory() as scratch:
        found = probe_all(Path(scratch), jobs, where=where, watch=watch, say=say)
        return MeasuredProbe(probe.design, found)


def measure_runs(
    workplace: Workplace,
    probe: RegisteredProbe,
    *,
    where: Where,
    watch: Callable[[Tick], None],
    say: Callable[[str], None] = lambda _: None,
) -> MeasuredProbe:
    """Probe the checkpoints of runs that were just played, beside them in their folder.

    Args:
        workplace: the folder, held by the caller, its runs complete.
        probe: the registered probe.
        where: where to probe.
        watch: told whenever a trajectory is there.
        say: told what was lost and probed again.

    Raises:
        IncompleteError: a run is not complete.
        DamagedError, VerificationError: what a trajectory's probe refuses.
    """
    import pyarrow.parquet as pq

    checkpoints = {}
    for specification in probe.runs:
        run = workplace.run(specification)
        run.check_complete()
        rows = to_rows(pq.read_table(run.folder / f"{specification.checkpoint_table}.parquet"))
        checkpoints[specification.run_id] = [with_adapter(row, run.folder) for row in rows]
    jobs = probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)
    found = probe_all(workplace.folder / FOLDER, jobs, where=where, watch=watch, say=say)
    return MeasuredProbe(probe.design, found)


def sealed_with_probe(
    folder: Path,
    study: Study,
    measured: MeasuredProbe,
    *,
    registration: Registration,
    named: RegistrationRef,
    card: Path,
) -> Manifest:
    """Write a study's registers with its probe, decided anew (step 2).

    Args:
        folder: the repository to write.
        study: the study as it is.
        measured: its probe.
        registration: its registration.
        named: the registration as the manifest names it.
        card: source of the dataset card; none is written where the file is missing.

    Raises:
        DamagedError: a file of the study is not the one that its manifest names.
    """
    replaced = {*TABLES_OF_PROBE, DECISIONS.name}
    tables = {name: entry.files for name, entry in study.manifest.tables.items() if name not in replaced}
    for name in tables:
        study.paths(name)
    as_it_is = Assembly(
        {file: read_bytes(study.folder / PurePosixPath(file)) for files in tables.values() for file in files},
        tables,
        {name: study.manifest.tables[name].rows for name in tables},
        {},
    )
    source = read_text(card) if card.is_file() else None
    return seal_decided(folder, registration, named, measured.added_to(as_it_is), source)
