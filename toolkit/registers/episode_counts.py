"""Episode rows counted by task: what an interval resamples, read from the files of the runs that decide."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema, check_columns
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.rowhash import bytes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from toolkit.registers.study import Study

Counts = dict[tuple[str, int], dict[int, "TaskCount"]]
"""(run, step) → task → its episodes."""

_COUNTED = ("true_success", "observed_reward")
_READ = ("run_id", "phase", "pool", "regime", "step", "task", "schedule", "schedule_seed", *_COUNTED)


_BITS = 16
_DTYPES = {"int16": "<i2", "uint64": "<u8", "bool": "u1"}


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

    rows = pa.concat_tables([_rows_of(study, run) for run in runs])  # 1
    rows = _having(rows, {**{name: [value] for name, value in where.items()}, "step": steps})  # 2
    if not rows.num_rows:
        return {}
    if "schedule_seed" in rows.column_names:
        _check_schedules(rows, study)  # 3
    return _counted(rows, column, study)


def _counted(rows: Any, column: str, study: Study) -> Counts:
    """Count rows by run, step and task, each episode checked to be there once."""
    import numpy as np

    runs, names = _coded(rows, "run_id")
    step, task, schedule, success = (_numbers(rows, n) for n in ("step", "task", "schedule", column))
    key = _joined(runs, step, task, schedule)
    order = np.argsort(key)
    key = key[order]
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        place = {n: rows[n][int(order[twice[0]])].as_py() for n in ("run_id", "step", "task", "schedule")}
        raise _repeated(place, study)
    starts = np.flatnonzero(np.append(True, key[1:] >> _BITS != key[:-1] >> _BITS))  # 4
    first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
    columns = (
        runs[first],
        step[first],
        task[first],
        np.diff(np.append(starts, len(order))),
        schedule[last],
        np.add.reduceat(success[order].astype(int), starts),
    )
    counts: Counts = {}
    for run, at, of, *counted in zip(*(values.tolist() for values in columns), strict=True):
        counts.setdefault((names[run], at), {})[of] = TaskCount(*counted)
    return counts


def _rows_of(study: Study, run: str) -> Any:
    """Return a run's rows; a file is opened once, and only where it can hold some."""
    import pyarrow as pa

    parts = []
    for name, (first, last) in _ranges(study).items():
        if first <= run <= last:
            whole = study.kept(f"rows of {name}", partial(_read, study, name))
            parts.append(_having(whole, {"run_id": [run]}))
    return pa.concat_tables(parts) if parts else pa.Table.from_batches([], _schema(study))


def _having(rows: Any, wanted: Mapping[str, Sequence[object]]) -> Any:
    """Return the rows that have one of the wanted values in every column.

    Compared as places in a dictionary, by its bytes: to turn a Python value or a numpy array into its own, or
    back, Arrow imports pandas where it is installed, which takes longer than all the rest.
    """
    import numpy as np
    import pyarrow as pa

    keep = np.ones(rows.num_rows, dtype=bool)
    for name, values in wanted.items():
        codes, names = _coded(rows, name)
        keep &= np.isin(codes, [code for code, value in enumerate(names) if value in values])
    places = np.flatnonzero(keep)
    return rows.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))


def _coded(rows: Any, name: str) -> tuple[NDArray[np.int32], list[Any]]:
    """Return a column as places in a list of its values."""
    import numpy as np

    encoded = rows[name].combine_chunks().dictionary_encode()
    return np.frombuffer(bytes_of(encoded.indices), dtype="<i4"), encoded.dictionary.to_pylist()


def _numbers(rows: Any, name: str) -> NDArray[Any]:
    """Return a column of numbers or truth values."""
    import numpy as np

    column = rows[name].combine_chunks()
    return np.frombuffer(bytes_of(column), dtype=_DTYPES[str(column.type)])


def _joined(*numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Return numbers of sixteen bits as one number, in their order."""
    import numpy as np

    whole: NDArray[Any] = np.zeros(len(numbers[0]), dtype=np.uint64)
    for each in numbers:
        whole = whole << _BITS | each.astype(np.uint16)
    return whole


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
        check_columns(study.table(EPISODES.name), file.schema_arrow, path)
        schema = _schema(study)
        rows = file.read(columns=schema.names)
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    absent = [column for column in schema.names if rows[column].null_count]
    if absent:
        raise DamagedError(f"{EPISODES.name}.{absent[0]} is absent", expected="a value a row", where=path)
    return rows.cast(schema)  # a writer may have called a full column nullable


def _schema(study: Study) -> Any:
    """Return the Arrow schema of the columns that are read: those that the study has."""
    import pyarrow as pa

    whole = arrow_schema(study.table(EPISODES.name))
    return pa.schema([whole.field(name) for name in _READ if name in whole.names])


def _check_schedules(rows: Any, study: Study) -> None:
    """Check that a schedule of a task has one seed, in all runs and at all steps."""
    import numpy as np

    task, schedule, seed = (_numbers(rows, name) for name in ("task", "schedule", "schedule_seed"))
    key = _joined(task, schedule)
    order = np.argsort(key)
    key, seeds = key[order], seed[order]
    apart = np.flatnonzero((key[1:] == key[:-1]) & (seeds[1:] != seeds[:-1]))
    if len(apart):
        at = int(apart[0])
        raise DamagedError(
            "one schedule of an evaluation has two seeds: runs met different noise",
            expected="one seed for all runs and steps",
            found=f"{seeds[at]} and {seeds[at + 1]}, task {task[order[at]]}, schedule {schedule[order[at]]}",
            where=study.folder,
        )


def _repeated(place: dict[str, object], study: Study) -> DamagedError:
    return DamagedError(
        f"{EPISODES.name} has an episode twice",
        expected="an episode once",
        found=", ".join(f"{name}={value}" for name, value in place.items()),
        where=study.folder,
        remedy="restore the file, or rebuild the registers",
    )


def _unreadable(path: Path, error: Exception) -> DamagedError:
    found = str(error).splitlines()[0]
    return DamagedError(f"{path.name} is not a readable Parquet file", found=found, where=path)
