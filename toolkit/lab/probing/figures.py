"""Figures of a probe: derived from its evidence, or from summaries where the evidence was not published."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from toolkit.decisions.measure import Tables
from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.estimators import debiased_between_share, noise_within_share
from toolkit.lab.play.rows import table_of_run
from toolkit.lab.probe import figures as rows_of
from toolkit.lab.probe import moments
from toolkit.lab.probe.checkpoint import ScoredPolicy, checkpoint_row
from toolkit.lab.probe.design import (
    ALL,
    DERIVED,
    DESIGNS,
    DRIFT,
    EVIDENCE,
    OUTCOME,
    Design,
    Listed,
    index_rows,
    read_groups,
)
from toolkit.lab.probe.evidence import GramEvidence, Place, read_evidence
from toolkit.lab.probe.figures import check_identities, estimate, figure_rows, tied
from toolkit.lab.probing import run
from toolkit.lab.probing.design import CHECKPOINTS, RegisteredProbe
from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import BASE
from toolkit.registers.study import Study
from toolkit.registers.validation import compare
from toolkit.specification import LanguageModelSpecification

A = TypeVar("A")


def figures(
    study: Study, design: Design, places: Collection[Place], tables: Collection[str] = DERIVED
) -> dict[str, dict[Place, list[Row]]]:
    """Derive rows of a probe's tables from the evidence alone."""
    groups = _drawn_groups(design)
    derived: dict[str, dict[Place, list[Row]]] = {name: {} for name in tables}

    def of_place(place: Place, evidence: Mapping[str, GramEvidence]) -> dict[str, list[Row]]:
        return figure_rows(place, estimate(evidence, design, groups), design, tables)

    for place, found in each_place(study, design, places, of_place):
        for name, rows in found.items():
            derived[name][place] = rows
    return derived


@lru_cache(maxsize=2)
def _drawn_groups(design: Design) -> Listed:
    """Return the groups that a design draws; drawing them takes longer than a checkpoint's figures."""
    return read_groups(index_rows(design), design.transition)


def each_place(
    study: Study,
    design: Design,
    places: Collection[Place],
    of_place: Callable[[Place, Mapping[str, GramEvidence]], A],
) -> Iterator[tuple[Place, A]]:
    """Yield what something makes of the evidence of each checkpoint: trajectory by trajectory, on threads."""
    check_evidence(study)
    by_trajectory: dict[str, list[Place]] = {}
    for place in places:
        by_trajectory.setdefault(place.trajectory, []).append(place)

    def of_trajectory(trajectory: str) -> list[tuple[Place, A]]:
        found, places = _rows_by_place(table_of_run(study, EVIDENCE, trajectory)), by_trajectory[trajectory]
        if absent := next((place for place in places if place not in found), None):
            problem = "a checkpoint has no evidence"
            remedy = "measure again: toolkit probe run"
            raise IncompleteError(problem, expected=absent, where=study.folder / EVIDENCE, remedy=remedy)
        return [(place, of_place(place, _by_noise(found[place], design))) for place in places]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for answers in threads.map(of_trajectory, by_trajectory):
            yield from answers


def _by_noise(rows: Sequence[Row], design: Design) -> dict[str, GramEvidence]:
    return {
        rollouts.noise: read_evidence([row for row in rows if row["noise"] == rollouts.noise], rollouts)
        for rollouts in design.sets
    }


def _rows_by_place(table: Any) -> dict[Place, list[Row]]:
    columns = {name: _values(table[name].combine_chunks()) for name in table.column_names}
    return by_place(dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def place_of(row: Mapping[str, Any]) -> Place:
    """Return the checkpoint that a row is of, in the coordinates in which it was scored."""
    return Place(row["trajectory"], row["step"], row["scored"])


def by_place(rows: Iterable[Row]) -> dict[Place, list[Row]]:
    """Return rows by their checkpoint."""
    places: dict[Place, list[Row]] = {}
    for row in rows:
        places.setdefault(place_of(row), []).append(row)
    return places


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if not pa.types.is_list(column.type):
        values: list[Any] = column.to_pylist()
        return values
    numbers, ends = column.values, column.offsets.to_pylist()
    # By ways that do not import pandas where it is installed.
    is_plain = not (numbers.null_count or pa.types.is_boolean(numbers.type))
    array = np.from_dlpack(numbers) if is_plain else np.array(numbers.to_pylist(), dtype=float)
    return [array[start:end] for start, end in pairwise(ends)]


def check_evidence(study: Study) -> None:
    """Check that a study ships the evidence of its probe."""
    if not study.has(EVIDENCE):
        problem = f"study {study.name!r} ships no evidence of its probe, so that nothing can be computed anew"
        remedy = "ask a study that ships its evidence: --study embedded"
        raise IncompleteError(problem, expected=EVIDENCE, where=study.folder, remedy=remedy)


CLEAN = "probe_clean_tasks"
SIZED = ("probe_diagnostic_tasks", "runs", "probe_checkpoints")
LEVEL = 0.95
RESAMPLES = 10_000
RNG_SEED = 13


class ProbeSize(NamedTuple):
    """How much was scored for transition noise at every checkpoint: tasks T, and paired groups a task N."""

    tasks: int
    groups: int

    @property
    def all_groups(self) -> int:
        """Paired groups over all tasks."""
        return self.tasks * self.groups


def published_figures(study: Study) -> list[Row]:
    """Return what a study's summaries allow, as rows of `probe_intervals`."""
    rows: list[Row] = []
    clean = by_place(study.rows(CLEAN) if study.has(CLEAN) else ())
    size = probe_size(study)
    for row in study.rows("probe"):
        at = place_of(row)
        tasks = clean.get(at, [])
        figures = list(_plain(row, size, len(tasks)))
        if (row["noise"], row["estimator"]) == (OUTCOME, moments.MC) and len(tasks) > 1:
            figures += _condition(tasks)
        scored_tasks = size.tasks if size else None
        number = (len(tasks) or None) if row["noise"] == OUTCOME else scored_tasks
        common = {"noise": row["noise"], "estimator": row["estimator"], "tasks": number, "level": LEVEL}
        rows += [at._asdict() | common | figure for figure in figures]
    return rows


def probe_size(study: Tables) -> ProbeSize | None:
    """Return the sizes that all checkpoints share; None where they differ, or are less than two."""
    if not all(study.has(table) for table in SIZED):
        return None
    diagnosed, runs, checkpoints = map(study.rows, SIZED)
    tasks = Counter((row["trajectory"], row["step"]) for row in diagnosed if row["scored"] == ALL)
    group_sizes = {row["group_size"] for row in runs}
    rollouts = {row["diagnostic_rollouts"] for row in checkpoints}
    if 0 in group_sizes or not len(set(tasks.values())) == len(group_sizes) == len(rollouts) == 1:
        return None
    size = next(iter(tasks.values()))
    groups, rest = divmod(rollouts.pop(), size * group_sizes.pop())
    return None if rest or min(size, groups) < 2 else ProbeSize(size, groups)  # noqa: PLR2004 - a variance needs two


def _condition(tasks: list[Row]) -> list[Row]:
    left, right = (np.array([row[f"condition_{side}"] for row in tasks]) for side in ("left", "right"))
    how = rows_of.Resampling(LEVEL, RESAMPLES, RNG_SEED, 1)
    return rows_of.resampled_rows(
        lambda counts: {rows_of.CONDITION: (counts @ left) / (counts @ right)}, len(tasks), how
    )


def _plain(row: Mapping[str, Any], size: ProbeSize | None, clean: int) -> Iterator[Row]:
    ratios = {
        rows_of.RATIO: ("trace_paired", "trace_independent"),
        rows_of.WITHIN_RATIO: ("trace_within_paired", "trace_within_independent"),
        rows_of.STRATIFIED_RATIO: ("trace_paired", "trace_stratified"),
    }
    for name, (numerator, denominator) in ratios.items():
        if row[numerator] is not None and row[denominator]:
            yield _figure(name, row[numerator] / row[denominator])
    for design in DESIGNS[row["noise"]]:
        trace, within, between = (
            row[f"{part}_{design}"] for part in ("trace", "trace_within", "trace_between")
        )
        if not trace or within is None:
            continue
        beside = {}
        if row["noise"] != OUTCOME and size is not None and within > 0:
            share = debiased_between_share(within, between, size.tasks, size.groups)
            pure = noise_within_share(size.tasks, size.groups)
            beside = {"pure_noise": pure, "debiased": 1 - share}
        yield _figure(f"{rows_of.SHARE}_{design}", within / trace) | beside
        tasks = clean if row["noise"] == OUTCOME else size and size.tasks
        if tasks and between is not None:
            yield rows_of.floor_row(design, row[f"mean_norm_{design}"] ** 2, between, tasks)


def _figure(name: str, value: float) -> Row:
    return {"figure": name, "value": value, **dict.fromkeys((*rows_of.RESAMPLED, "pure_noise", "debiased"))}


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
        remedy = "measure it: toolkit probe run, where the registration registers one"
        raise IncompleteError(f"study {study.name!r} has no probe", where=study.folder, remedy=remedy)
    known = study.rows("probe_checkpoints")
    meant = [
        row
        for row in sorted(known, key=_order)
        if fnmatchcase(row["trajectory"], trajectory) and scored in (None, row["scored"])
    ]
    if not meant:
        problem = "no checkpoint of the probe is meant"
        expected = ", ".join(sorted({f"{row['trajectory']} ({row['scored']})" for row in known}))
        raise UsageError(problem, expected=expected, found=f"{trajectory} ({scored or 'any'})")
    has_evidence = study.has(FIGURES)
    figures = study.rows(FIGURES) if has_evidence else published_figures(study)
    drifts = study.rows(DRIFT) if study.has(DRIFT) else []
    tables = (by_place(figures), by_place(study.rows(SUMMARY)), by_place(drifts))
    return Report(tuple(meant), *tables, has_evidence)


def recompute(
    study: Study, meant: Sequence[Row], probe: RegisteredProbe, progress: Callable[[str], None]
) -> tuple[int, float]:
    """Compute every figure of checkpoints anew from the evidence, and compare it with the stored one."""
    check_evidence(study)
    design = probe.design
    jobs = {
        (job.trajectory, row["step"]): (job, row)
        for job in run.registered_jobs(study, probe)
        for row in job.checkpoints
    }
    stored = {name: by_place(study.rows(name)) for name in (*DERIVED, CHECKPOINTS)}
    expected = {Place(*at, scored) for at in jobs for scored in design.scored}
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
        described = [checkpoint_row(place, evidence, design, policy)]
        estimated = estimate(evidence, design, groups)
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
