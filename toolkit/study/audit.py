"""Auditing a study: rows drawn at random and played again, each from its run's checkpoint.

As many rows are drawn of each table that can be played: episodes, training groups, rows of the luck-share
tables, checkpoints. Before any row of a run, its specification is compared with the registered one. The audit
fails on the first difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, VerificationError
from toolkit.seeds import Stream, derive
from toolkit.study.replay import Replayer, same

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.registers.study import Study
    from toolkit.training.specification import Specification

PLAYED_WITH = "checkpoints"
"""The table without which nothing can be played again."""

PLAYABLE = ("episodes", "groups", "luck_share", "checkpoints")


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
) -> Audited:
    """Play random rows of a study again.

    Args:
        study: the study.
        sample: how many rows.
        seed: of the draw.
        registered: run → specification that the registration gives it.
        progress: told how many rows were played, and which run's are being played.

    Returns:
        What was played.

    Raises:
        IncompleteError: the study holds no rows that can be played.
        VerificationError: a row comes out otherwise, or a run has another specification than registered.
        DamagedError: a file is damaged.
    """
    check_playable(study)
    chosen, total = _draw(study, sample, seed)
    played = 0
    for run_id in sorted(chosen):
        replayer = Replayer(study, run_id)
        _check_specification(replayer, registered)
        for table, position in sorted(chosen[run_id]):
            progress(played, run_id)
            replayer.check(table, replayer.rows(table)[position])
            played += 1
    counts = {table: sum(t == table for places in chosen.values() for t, _ in places) for table in PLAYABLE}
    return Audited(total, counts, tuple(sorted(chosen)))


def check_playable(study: Study) -> None:
    """Check that a study holds rows that can be played again.

    Raises:
        IncompleteError: it does not.
    """
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


def _draw(study: Study, sample: int, seed: int) -> tuple[dict[str, list[tuple[str, int]]], int]:
    """Draw rows of every table; return run → (table, position in its file), and how many there are."""
    files = {table: _files(study, table) for table in PLAYABLE if study.has(table)}
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
