"""Episode rows counted by task: what an interval resamples, read from the files of the runs that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import DamagedError
from toolkit.registers.arrow import unreadable
from toolkit.registers.columns import Table
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.sandbox import literals

if TYPE_CHECKING:
    import duckdb

Counts = dict[tuple[str, int], dict[int, "TaskCount"]]
"""(run, step) → task → its episodes."""

_KEY = ("run_id", "step", "task", "schedule")
_SEED = "schedule_seed"


class TaskCount(NamedTuple):
    """The episodes of one run on one task at one step.

    Args:
        episodes: how many there are, each under a schedule of its own.
        last_schedule: the largest index among their schedules.
        successes: how many succeeded.
    """

    episodes: int
    last_schedule: int
    successes: int


def count_successes(
    table: Table, files: Sequence[Path], column: str, filters: Mapping[str, Sequence[object]], folder: Path
) -> Counts:
    """Count the episodes of some runs by task.

    1. None of the values that are read is absent.
    2. No episode is there twice, and all runs and steps met the same schedules.
    3. The rows are counted.

    Args:
        table: what the study's episodes are.
        files: theirs, checked against the manifest and with its columns.
        column: what counts as a success: `true_success` or `observed_reward`.
        filters: column → the values that are wanted of it.
        folder: the study's, as an error names it.

    Returns:
        Counts by run and step, then by task; what has no row is not there.

    Raises:
        DamagedError: a file cannot be read, a value is absent, or rows contradict each other.
    """
    import duckdb

    seed = [name for name in (_SEED,) if name in table.column_names]
    columns = list(dict.fromkeys((*_KEY, *filters, *seed, column)))
    # What is absent passes the filter: it is found, not passed over.
    wanted = " AND ".join(f"({n} IN ({literals(v)}) OR {n} IS NULL)" for n, v in filters.items())
    with duckdb.connect() as rows:
        try:
            rows.execute(
                f"CREATE TEMP TABLE rows AS SELECT {', '.join(columns)}, filename "
                f"FROM read_parquet([{literals(files)}]) WHERE {wanted}"
            )
        except duckdb.Error as error:
            raise unreadable(folder, error) from None
        _check_present(rows, columns)  # 1
        _check_once(rows, folder)  # 2
        if seed:
            _check_schedules(rows, folder)
        counts: Counts = {}
        for run, step, task, *counted in rows.execute(  # 3
            f"SELECT run_id, step, task, count(*), max(schedule), count(*) FILTER ({column}) "
            "FROM rows GROUP BY ALL ORDER BY ALL"
        ).fetchall():
            counts.setdefault((run, step), {})[task] = TaskCount(*counted)
    return counts


def _check_present(rows: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
    for column in columns:
        absent = rows.execute(f"SELECT filename FROM rows WHERE {column} IS NULL LIMIT 1").fetchone()
        if absent:
            raise DamagedError(
                f"{EPISODES.name}.{column} is absent", expected="a value a row", where=absent[0]
            )


def _check_once(rows: duckdb.DuckDBPyConnection, folder: Path) -> None:
    key = ", ".join(_KEY)
    repeated = rows.execute(f"SELECT {key} FROM rows GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1")
    if first := repeated.fetchone():
        raise DamagedError(
            f"{EPISODES.name} has an episode twice",
            expected="an episode once",
            found=", ".join(f"{name}={value}" for name, value in zip(_KEY, first, strict=True)),
            where=folder,
            remedy="restore the file, or rebuild the registers",
        )


def _check_schedules(rows: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Check that a schedule of a task has one seed, in all runs and at all steps."""
    apart = rows.execute(
        f"SELECT min({_SEED}), max({_SEED}), task, schedule FROM rows GROUP BY task, schedule "
        f"HAVING min({_SEED}) <> max({_SEED}) ORDER BY task, schedule LIMIT 1"
    )
    if first := apart.fetchone():
        raise DamagedError(
            "one schedule of an evaluation has two seeds: runs met different noise",
            expected="one seed for all runs and steps",
            found="{} and {}, task {}, schedule {}".format(*first),
            where=folder,
        )
