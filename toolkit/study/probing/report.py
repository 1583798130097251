"""What a study's probe says, checkpoint by checkpoint: figures, their uncertainty, what noise alone gives.

1. A study with evidence has every figure stored; on demand all are computed anew from the evidence alone.
2. A study with summaries only has what its per-task figures allow: L/R with intervals, shares beside pure
   noise. What needs the products of different tasks has no interval there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.probe import identities
from toolkit.probe.checkpoint import DERIVED, EVIDENCE, ScoredPolicy, checkpoint_row, derive
from toolkit.probe.design import ALL, index_rows, read_groups
from toolkit.probe.evidence import Place, read_evidence
from toolkit.registers import arrow, schema
from toolkit.registers.row_types import ProbeCheckpointRow
from toolkit.registers.study import Study
from toolkit.study.probing import probed, probed_model, published, run
from toolkit.study.probing.design import CHECKPOINTS, RegisteredProbe
from toolkit.training.specification import LanguageModelSpecification

SUMMARY = "probe"
FIGURES = "probe_intervals"


@dataclass(frozen=True)
class Report:
    """What a study's probe says.

    Args:
        checkpoints: rows of `probe_checkpoints`, the untrained policy first.
        figures: place → its rows of `probe_intervals`.
        summaries: place → its rows of `probe`.
        has_evidence: whether the study ships the evidence.
    """

    checkpoints: tuple[ProbeCheckpointRow, ...]
    figures: Mapping[Place, list[arrow.Row]]
    summaries: Mapping[Place, list[arrow.Row]]
    has_evidence: bool


def report(study: Study, trajectory: str = "*", scored: str | None = None) -> Report:
    """Read what a study's probe says.

    Args:
        study: the study.
        trajectory: pattern of trajectories, with `*` and `?`.
        scored: only what was scored on these coordinates.

    Raises:
        IncompleteError: the study has no probe.
        UsageError: no checkpoint is meant.
        DamagedError: a register is damaged.
    """
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
    figures = study.rows(FIGURES) if has_evidence else published.published_figures(study)
    return Report(tuple(meant), _by_place(figures), _by_place(study.rows(SUMMARY)), has_evidence)


def recompute(
    study: Study, meant: Sequence[ProbeCheckpointRow], probe: RegisteredProbe, progress: Callable[[str], None]
) -> tuple[int, float]:
    """Compute every figure of checkpoints anew from the evidence alone, and compare it with the stored one.

    1. The probed checkpoints are the registered ones, and the groups are those that the design draws.
    2. What is said of a checkpoint is what its parameters and its evidence give.
    3. So is every figure, and the figures are tied.

    Args:
        study: the study.
        meant: the checkpoints' rows of `probe_checkpoints`.
        probe: the registered probe.
        progress: told which checkpoint is being computed.

    Returns:
        How many rows were compared, and the largest relative residual of an identity.

    Raises:
        IncompleteError: the study has no evidence, or lacks a part of it.
        VerificationError: a figure differs, or figures are not tied.
        DamagedError: a register is damaged.
    """
    check_evidence(study)
    design = probe.design
    jobs = {
        (job.trajectory, row["step"]): (job, row)
        for job in run.registered_jobs(study, probe)
        for row in job.checkpoints
    }
    evidence = _by_place(study.rows(EVIDENCE))
    stored = {name: _by_place(study.rows(name)) for name in (*DERIVED, CHECKPOINTS)}
    expected = {Place(*at, scored) for at in jobs for scored in design.scored}  # 1
    for name, places in {**stored, EVIDENCE: evidence}.items():
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
    compared, worst = _compare("probe_indices", index_rows(design), indices, "the index lists"), 0.0
    groups = read_groups(indices, design.transition)
    for row in meant:
        place = Place(row["trajectory"], row["step"], row["scored"])
        progress(str(place))
        mine = evidence[place]
        read = {
            rollouts.noise: read_evidence([r for r in mine if r["noise"] == rollouts.noise], rollouts)
            for rollouts in design.sets
        }
        policy = _policy(*jobs[place.trajectory, place.step], row)
        described = [checkpoint_row(place, read, design, policy)]  # 2
        derived, tied = derive(place, read, design, groups)  # 3
        worst = max(worst, identities.check_identities(tied, str(place)))
        for name, rows in {**derived, CHECKPOINTS: described}.items():
            compared += _compare(name, rows, stored[name][place], str(place))
    return compared, worst


def check_evidence(study: Study) -> None:
    """Check that a study ships the evidence of its probe.

    Raises:
        IncompleteError: it does not.
    """
    if not study.has(EVIDENCE):
        raise IncompleteError(
            f"study {study.name!r} ships no evidence of its probe, so that nothing can be computed anew",
            expected=EVIDENCE,
            where=study.folder,
            remedy="ask a study that ships its evidence: --study embedded",
        )


def _policy(job: probed.ProbeJob, checkpoint: arrow.Row, stored: ProbeCheckpointRow) -> ScoredPolicy:
    if isinstance(job.run, LanguageModelSpecification):
        return probed_model.scored_model(checkpoint, job.run.run_id, stored)
    return probed.scored_policy(job, checkpoint, stored["scored"])


def _order(row: ProbeCheckpointRow) -> tuple[bool, bool, str, int]:
    return (row["scored"] != ALL, row["trajectory"] != run.BASE, row["trajectory"], row["step"])


def _compare(name: str, computed: list[arrow.Row], stored: list[arrow.Row], where: str) -> int:
    key = schema.TABLES[name].key

    def keyed(rows: list[arrow.Row]) -> dict[tuple[Any, ...], arrow.Row]:
        return {tuple(row[part] for part in key): row for row in rows}

    mine, theirs = keyed(computed), keyed(stored)
    for at in sorted({*mine, *theirs}):
        ours, registered = mine.get(at, {}), theirs.get(at, {})
        differing = [part for part in registered or ours if ours.get(part) != registered.get(part)]
        if differing:
            raise VerificationError(
                f"{name} is not what the probe's evidence gives",
                expected=f"{differing[0]} = {ours.get(differing[0])}",
                found=f"{differing[0]} = {registered.get(differing[0])}",
                where=f"{where}: {', '.join(map(str, at))}",
                remedy="the register was changed, or the code that computes from it",
            )
    return len(mine)


def _by_place(rows: list[arrow.Row]) -> dict[Place, list[arrow.Row]]:
    places: dict[Place, list[arrow.Row]] = {}
    for row in rows:
        places.setdefault(Place(row["trajectory"], row["step"], row["scored"]), []).append(row)
    return places
