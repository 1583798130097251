"""Figures of a probe, derived from its evidence: of the checkpoints and the tables that somebody reads.

Only the evidence of these checkpoints' trajectories is read, and no run is specified for it: the design says
all that figures need. Groups are those that the design draws, whatever index lists are stored.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import IncompleteError
from toolkit.lab.play.rows import table_of_run
from toolkit.lab.probe.design import DERIVED, EVIDENCE, Design, Listed, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, Place, read_evidence
from toolkit.lab.probe.figures import estimate, figure_rows
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study

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
    """Yield what something makes of the evidence of each checkpoint, trajectory by trajectory.

    Trajectories are read and computed on as many threads as there are processors: what takes time in them
    is numpy's, which leaves the interpreter to the others.
    """
    check_evidence(study)
    by_trajectory: dict[str, list[Place]] = {}
    for place in places:
        by_trajectory.setdefault(place.trajectory, []).append(place)

    def of_trajectory(trajectory: str) -> list[tuple[Place, A]]:
        evidence = _evidence_of(study, design, by_trajectory[trajectory])
        return [(place, of_place(place, found)) for place, found in evidence]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for answers in threads.map(of_trajectory, by_trajectory):
            yield from answers


def _evidence_of(
    study: Study, design: Design, places: Sequence[Place]
) -> Iterator[tuple[Place, dict[str, GramEvidence]]]:
    """Yield the evidence of places of one trajectory, by noise."""
    trajectory = places[0].trajectory
    table = table_of_run(study, EVIDENCE, trajectory)
    by_place = _rows_by_place(table)
    for place in places:
        if place not in by_place:
            raise IncompleteError(
                "a checkpoint has no evidence",
                expected=place,
                where=study.folder / EVIDENCE,
                remedy="measure again: toolkit probe run",
            )
        rows = by_place[place]
        yield (
            place,
            {
                rollouts.noise: read_evidence([r for r in rows if r["noise"] == rollouts.noise], rollouts)
                for rollouts in design.sets
            },
        )


def _rows_by_place(table: Any) -> dict[Place, list[Row]]:
    """Return the rows of evidence, a `pyarrow.Table`, by place, their lists as arrays."""
    columns = {name: _values(table[name].combine_chunks()) for name in table.column_names}
    places: dict[Place, list[Row]] = {}
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        places.setdefault(Place(row["trajectory"], row["step"], row["scored"]), []).append(row)
    return places


def _values(column: Any) -> list[Any]:
    """Return a column's values; where they are lists, as arrays."""
    import pyarrow as pa

    if not pa.types.is_list(column.type):
        values: list[Any] = column.to_pylist()
        return values
    numbers, ends = _array(column.values), column.offsets.to_pylist()
    return [numbers[start:end] for start, end in pairwise(ends)]


def _array(values: Any) -> NDArray[Any]:
    """Return numbers as an array, by ways that do not import pandas where it is installed."""
    import pyarrow as pa

    if values.null_count or pa.types.is_boolean(values.type):
        return np.array(values.to_pylist(), dtype=float)
    return np.from_dlpack(values)


def check_evidence(study: Study) -> None:
    """Check that a study ships the evidence of its probe."""
    if not study.has(EVIDENCE):
        raise IncompleteError(
            f"study {study.name!r} ships no evidence of its probe, so that nothing can be computed anew",
            expected=EVIDENCE,
            where=study.folder,
            remedy="ask a study that ships its evidence: --study embedded",
        )
