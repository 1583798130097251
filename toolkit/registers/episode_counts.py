"""Episode rows counted by task: what an interval resamples, read from the files of the runs that decide."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema, check_columns
from toolkit.registers.row_tables import EPISODES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolkit.registers.study import Study

Counts = dict[tuple[str, int], dict[int, "TaskCount"]]
"""(run, step) → task → its episodes."""

_COUNTED = ("true_success", "observed_reward")
_READ = ("run_id", "phase", "pool", "regime", "step", "task", "schedule", "schedule_seed", *_COUNTED)


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
    study: Study, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
) -> Counts:
    """Count the episodes of some runs by task.

    1. Read the runs' files, each checked against the manifest.
    2. Keep the rows of the evaluation set and of the steps.
    3. Check that no episode is there twice, and that all runs and steps met the same schedules.
    4. Count.

    Args:
        study: a study with episode rows.
        column: what counts as a success: `true_success` or `observed_reward`.
        runs: the runs.
        where: text columns that the rows must match.
        steps: training steps.

    Returns:
        Counts by run and step, then by task; what has no row is not there.

    Raises:
        IncompleteError: a file is missing or cannot be read.
        DamagedError: a file is not the manifest's, or rows contradict each other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables([_rows_of(study, run) for run in runs])  # 1
    keep = pc.is_in(rows["step"], pa.array(steps, rows["step"].type))  # 2
    for name, value in where.items():
        keep = pc.and_(keep, pc.equal(rows[name], value))
    rows = rows.filter(keep)
    rows = rows.set_column(rows.column_names.index(column), column, rows[column].cast(pa.int64()))
    _check_once(rows, study)  # 3
    _check_schedules(rows, study)
    found = rows.group_by(["run_id", "step", "task"]).aggregate(  # 4
        [([], "count_all"), ("schedule", "max"), (column, "sum")]
    )
    names = ("run_id", "step", "task", "count_all", "schedule_max", f"{column}_sum")
    counts: Counts = {}
    for run, step, task, *counted in zip(*(found[name].to_pylist() for name in names), strict=True):
        counts.setdefault((run, step), {})[task] = TaskCount(*counted)
    return counts


def _rows_of(study: Study, run: str) -> Any:
    """Return a run's rows; a file is opened once, and only where it can hold some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = []
    for name, (first, last) in _ranges(study).items():
        if first <= run <= last:
            whole = study.kept(f"rows of {name}", partial(_read, study, name))
            parts.append(whole.filter(pc.equal(whole["run_id"], run)))
    return pa.concat_tables(parts) if parts else _nothing()


def _ranges(study: Study) -> dict[str, tuple[str, str]]:
    """Return the first and the last run of every file, the files checked against the manifest."""

    def read() -> dict[str, tuple[str, str]]:
        names = study.manifest.tables[EPISODES.name].files
        return {name: _range(path) for name, path in zip(names, study.paths(EPISODES.name), strict=True)}

    found: dict[str, tuple[str, str]] = study.kept(f"ranges of {EPISODES.name}", read)
    return found


def _range(path: Path) -> tuple[str, str]:
    """Return the first and the last run of a file by its own statistics; all runs where it has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        described = pq.read_metadata(path)
        position = described.schema.names.index("run_id")
        groups = [described.row_group(group).column(position) for group in range(described.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    # A writer may shorten bounds, outwards only: no run's file is passed over.
    bounds = [group.statistics for group in groups]
    if not bounds or not all(b is not None and b.has_min_max for b in bounds):
        return "", chr(0x10FFFF)
    return min(b.min for b in bounds), max(b.max for b in bounds)


def _read(study: Study, name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = study.folder / name
    try:
        file = pq.ParquetFile(path)
        check_columns(EPISODES, file.schema_arrow, path)
        rows = file.read(columns=list(_READ))
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    absent = [column for column in _READ if rows[column].null_count]
    if absent:
        raise DamagedError(f"{EPISODES.name}.{absent[0]} is absent", expected="a value a row", where=path)
    return rows.cast(_nothing().schema)  # a writer may have called a full column nullable


def _nothing() -> Any:
    return arrow_schema(EPISODES).empty_table().select(list(_READ))


def _check_once(rows: Any, study: Study) -> None:
    import pyarrow.compute as pc

    key = ["run_id", "phase", "pool", "regime", "step", "task", "schedule"]
    found = rows.group_by(key).aggregate([([], "count_all")])
    twice = found.filter(pc.greater(found["count_all"], 1))
    if twice.num_rows:
        first = twice.slice(0, 1).to_pylist()[0]
        times = first.pop("count_all")
        raise DamagedError(
            f"{EPISODES.name} has one episode {times} times",
            expected="an episode once",
            found=", ".join(f"{name}={value}" for name, value in first.items()),
            where=study.folder,
            remedy="restore the file, or rebuild the registers",
        )


def _check_schedules(rows: Any, study: Study) -> None:
    import pyarrow.compute as pc

    found = rows.group_by(["pool", "regime", "task", "schedule"]).aggregate(
        [("schedule_seed", "min"), ("schedule_seed", "max")]
    )
    apart = found.filter(pc.not_equal(found["schedule_seed_min"], found["schedule_seed_max"]))
    if apart.num_rows:
        first = apart.slice(0, 1).to_pylist()[0]
        raise DamagedError(
            "one schedule of an evaluation has two seeds: runs met different noise",
            expected=f"schedule seed {first['schedule_seed_min']} everywhere",
            found=f"{first['schedule_seed_max']} too, for task {first['task']}, schedule {first['schedule']}",
            where=study.folder,
        )


def _unreadable(path: Path, error: Exception) -> DamagedError:
    found = str(error).splitlines()[0]
    return DamagedError(f"{path.name} is not a readable Parquet file", found=found, where=path)
