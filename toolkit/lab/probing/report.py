"""What a study's probe says, checkpoint by checkpoint: figures, their uncertainty, what noise alone gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.lab.probe.checkpoint import ScoredPolicy, checkpoint_row
from toolkit.lab.probe.design import ALL, DERIVED, DRIFT, EVIDENCE, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, Place
from toolkit.lab.probe.figures import check_identities, estimate, figure_rows, tied
from toolkit.lab.probing import run
from toolkit.lab.probing.design import CHECKPOINTS, RegisteredProbe
from toolkit.lab.probing.figures import by_place, check_evidence, each_place, place_of, published_figures
from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import BASE
from toolkit.registers.study import Study
from toolkit.registers.validation import compare
from toolkit.specification import LanguageModelSpecification

SUMMARY = "probe"
FIGURES = "probe_intervals"


@dataclass(frozen=True)
class Report:
    """What a study's probe says."""

    checkpoints: tuple[Row, ...]  # rows of `probe_checkpoints`, the untrained policy first
    figures: Mapping[Place, list[arrow.Row]]  # place → its rows of `probe_intervals`
    summaries: Mapping[Place, list[arrow.Row]]  # place → its rows of `probe`
    # Place → its rows of `probe_drift`; none where the study has no such table
    drifts: Mapping[Place, list[arrow.Row]]
    has_evidence: bool  # whether the study ships the evidence


def report(study: Study, trajectory: str = "*", scored: str | None = None) -> Report:
    """Read what a study's probe says."""
    if not study.has(SUMMARY):
        raise IncompleteError(
            f"study {study.name!r} has no probe",
            where=study.folder,
            remedy="measure it: toolkit probe run, where the registration registers one",
        )
    known = study.rows("probe_checkpoints")
    meant = [
        row
        for row in sorted(known, key=_order)
        if fnmatchcase(row["trajectory"], trajectory) and scored in (None, row["scored"])
    ]
    if not meant:
        raise UsageError(
            "no checkpoint of the probe is meant",
            expected=", ".join(sorted({f"{row['trajectory']} ({row['scored']})" for row in known})),
            found=f"{trajectory} ({scored or 'any'})",
        )
    has_evidence = study.has(FIGURES)
    figures = study.rows(FIGURES) if has_evidence else published_figures(study)
    drifts = study.rows(DRIFT) if study.has(DRIFT) else []
    tables = (by_place(figures), by_place(study.rows(SUMMARY)), by_place(drifts))
    return Report(tuple(meant), *tables, has_evidence)


def recompute(
    study: Study, meant: Sequence[Row], probe: RegisteredProbe, progress: Callable[[str], None]
) -> tuple[int, float]:
    """Compute every figure of checkpoints anew from the evidence alone, and compare it with the stored one.

    1. The probed checkpoints are the registered ones, and the groups are those that the design draws.
    2. What is said of a checkpoint is what its parameters and its evidence give.
    3. So is every figure, and the figures are tied.
    """
    check_evidence(study)
    design = probe.design
    jobs = {
        (job.trajectory, row["step"]): (job, row)
        for job in run.registered_jobs(study, probe)
        for row in job.checkpoints
    }
    stored = {name: by_place(study.rows(name)) for name in (*DERIVED, CHECKPOINTS)}
    expected = {Place(*at, scored) for at in jobs for scored in design.scored}  # 1
    measured = {
        name: by_place(arrow.to_rows(study.columns(name, Place._fields)))
        for name in (EVIDENCE, DRIFT)
        if study.has(name)
    }
    for name, places in {**stored, **measured}.items():
        if set(places) != expected:
            raise VerificationError(
                f"{name} is not on the registered checkpoints",
                expected=f"{len(expected)} places",
                found=", ".join(map(str, sorted(set(places) ^ expected)[:3])),
                where=study.folder,
                remedy="measure again: toolkit probe run",
            )
    run.check_coordinates([row for rows in stored[CHECKPOINTS].values() for row in rows], study.folder)
    indices = study.rows("probe_indices")
    compare("probe_indices", index_rows(design), indices)
    compared, worst = len(indices), 0.0
    groups = read_groups(indices, design.transition)
    rows_of = {place_of(row): row for row in meant}

    def of_place(
        place: Place, evidence: Mapping[str, GramEvidence]
    ) -> tuple[dict[str, list[arrow.Row]], float]:
        policy = _policy(*jobs[place.trajectory, place.step], rows_of[place])
        described = [checkpoint_row(place, evidence, design, policy)]  # 2
        estimated = estimate(evidence, design, groups)  # 3
        residual = check_identities(tied(estimated, design), str(place))
        return figure_rows(place, estimated, design) | {CHECKPOINTS: described}, residual

    for place, (derived, residual) in each_place(study, design, rows_of, of_place):
        progress(str(place))
        worst = max(worst, residual)
        for name, rows in derived.items():
            compare(name, rows, stored[name][place])
            compared += len(rows)
    return compared, worst


def _policy(job: run.ProbeJob, checkpoint: arrow.Row, stored: Row) -> ScoredPolicy:
    if isinstance(job.run, LanguageModelSpecification):
        return run.scored_model(checkpoint, job.run.run_id, stored)
    return run.scored_policy(job, checkpoint, stored["scored"])


def _order(row: Row) -> tuple[bool, bool, str, int]:
    return (row["scored"] != ALL, row["trajectory"] != BASE, row["trajectory"], row["step"])
