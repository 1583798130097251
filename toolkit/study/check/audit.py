"""Auditing a study: rows drawn at random and played again, each from its run's checkpoint.

As many rows are drawn of each table that can be played: episodes, training groups, rows of the luck-share
tables, checkpoints, evidence of the probe. Before any row of a run, its specification is compared with the
registered one. The audit fails on the first difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, VerificationError
from toolkit.seeds import Stream, derive
from toolkit.study.check.probe_replay import ProbeReplayer
from toolkit.study.check.replay import Replayer, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.registers.arrow import Row
    from toolkit.registers.study import Study
    from toolkit.study.probing.design import RegisteredProbe
    from toolkit.training.specification import Specification

PLAYED_WITH = "checkpoints"
"""The table without which nothing can be played again."""

ADAPTERS = "adapters"
PROBED = "probe_gram"
PLAYABLE = ("episodes", "groups", "luck_share", "checkpoints", PROBED)


@dataclass(frozen=True)
class Audited:
    """What an audit played.

    Args:
        rows: how many rows there are to draw from.
        sampled: table → rows that were drawn and played again.
        runs: the runs that they belong to.
    """

    rows: int
    sampled: dict[str, int]
    runs: tuple[str, ...]


def audit(
    study: Study,
    sample: int,
    seed: int,
    registered: Mapping[str, Specification],
    progress: Callable[[int, str], None],
    *,
    probe: RegisteredProbe | None = None,
) -> Audited:
    """Play random rows of a study again.

    Args:
        study: the study.
        sample: how many rows.
        seed: of the draw.
        registered: run → specification that the registration gives it.
        progress: told how many rows were played, and which run's are being played.
        probe: the registered probe; without it no row of the probe is drawn.

    Returns:
        What was played.

    Raises:
        IncompleteError: the study holds no rows that can be played.
        VerificationError: a row comes out otherwise, or a run has another specification than registered.
        DamagedError: a file is damaged.
    """
    check_playable(study)
    chosen, total = _draw(study, sample, seed, [table for table in PLAYABLE if table != PROBED or probe])
    played = 0
    for run_id in sorted(chosen):
        for check, row in _checks(study, run_id, sorted(chosen[run_id]), registered, probe):
            progress(played, run_id)
            check(row)
            played += 1
    counts = {table: sum(t == table for places in chosen.values() for t, _ in places) for table in PLAYABLE}
    return Audited(total, counts, tuple(sorted(chosen)))


def _checks(
    study: Study,
    name: str,
    places: list[tuple[str, int]],
    registered: Mapping[str, Specification],
    probe: RegisteredProbe | None,
) -> Iterator[tuple[Callable[[Row], None], Row]]:
    """Yield what checks each row that was drawn of a run or trajectory, and the row."""
    of_run = [(table, at) for table, at in places if table != PROBED]
    if of_run:
        replayer = Replayer(study, name)
        _check_specification(replayer, registered)
        for table, at in of_run:
            yield partial(replayer.check, table), replayer.rows(table)[at]
    if probe is not None and len(of_run) < len(places):
        prober = ProbeReplayer(study, probe)
        rows = prober.rows(name)
        yield from ((prober.check, rows[at]) for table, at in places if table == PROBED)


def check_playable(study: Study) -> None:
    """Check that a study holds rows that can be played again.

    Raises:
        IncompleteError: it does not.
    """
    if study.has(ADAPTERS) and not study.has(PLAYED_WITH):
        raise IncompleteError(
            f"the rows of {study.name!r} are a language model's, and are not played again one by one",
            expected="checkpoints of a policy that comes out the same to the last bit on every machine",
            found="adapters: what a model says and scores has the last digits of its machine and libraries",
            where=study.folder,
            remedy="with the model that the runs start from: `toolkit probe run STUDY --check` samples and "
            "scores the whole probe again; without it: `toolkit probe report --study STUDY --check` computes "
            "every figure from the evidence",
        )
    if not study.has(PLAYED_WITH):
        raise IncompleteError(
            f"study {study.name!r} holds no rows that can be played again",
            where=study.folder,
            remedy="audit a study that ships its rows: --study embedded",
        )


def _check_specification(replayer: Replayer, registered: Mapping[str, Specification]) -> None:
    expected = registered.get(replayer.run_id)
    if expected is None:
        raise VerificationError(
            f"{replayer.run_id} is no run of the registered matrix", expected=", ".join(list(registered)[:5])
        )
    same(f"the specification of {replayer.run_id}", expected.document(), replayer.specification.document())


def _draw(
    study: Study, sample: int, seed: int, playable: list[str]
) -> tuple[dict[str, list[tuple[str, int]]], int]:
    """Draw rows of every table; return run → (table, position in its file), and how many there are."""
    files = {table: _files(study, table) for table in playable if study.has(table)}
    totals = {table: sum(rows for _, rows in listed) for table, listed in files.items()}
    chosen: dict[str, list[tuple[str, int]]] = {}
    for place, (table, listed) in enumerate(files.items()):
        share = sample // len(files) + (place < sample % len(files))
        stream = Stream(derive("audit/v1", seed, study.name, table))
        for number in stream.sample(range(totals[table]), min(share, totals[table])):
            run_id, at = _found(listed, number)
            chosen.setdefault(run_id, []).append((table, at))
    return chosen, sum(totals.values())


def _files(study: Study, table: str) -> list[tuple[str, int]]:
    """Return the run and the number of rows of each of a table's files."""
    names = study.manifest.tables[table].files
    return [(PurePosixPath(name).stem, study.manifest.files[name].rows or 0) for name in names]


def _found(files: list[tuple[str, int]], number: int) -> tuple[str, int]:
    """Return the run of a table's row, and the row's position in the run's file."""
    for run_id, rows in files:
        if number < rows:
            return run_id, number
        number -= rows
    raise IndexError(number)
