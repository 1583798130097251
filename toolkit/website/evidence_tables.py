"""The rows that a rule page carries: Parquet files small enough to stand in the page itself."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.decisions.endpoints import Endpoint
from toolkit.decisions.subgroup import episode_counts, rows_of
from toolkit.registers.columns import Type
from toolkit.registers.episode_counts import Counts
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study

Row = dict[str, Any]

_TYPE = "application/vnd.apache.parquet"
# Built once and read by everybody; 72,000 rows take a tenth of a second at this level.
_LEVEL = 19
# What a complete evaluation says of its tasks, beside the columns that an endpoint names.
_OF_SETS = ("tasks", "episodes_per_task", "task_set")


@dataclass(frozen=True)
class Download:
    """A Parquet file that stands in a page: a download without scripts, and what scripts decide on.

    Args:
        table: `rows` or `episodes`.
        of: the register that the rows are of, or the endpoint that the episodes are of.
        title: what it is, in words.
        file: name to save it under.
        rows: number of rows.
        content: the file.
    """

    table: str
    of: str
    title: str
    file: str
    rows: int
    content: bytes

    @property
    def href(self) -> str:
        """The file as an address."""
        return f"data:{_TYPE};base64,{base64.b64encode(self.content).decode()}"

    @property
    def size(self) -> str:
        """Its size, in words."""
        return f"{max(1, round(len(self.content) / 1000)):,} kB"


def rows_read(study: Study, register: str, wanted: Mapping[str, tuple[Endpoint, tuple[str, ...]]]) -> Any:
    """Return the rows of a register that some endpoints read, as an Arrow table.

    Args:
        study: the study.
        register: a table that it has.
        wanted: the endpoints that read the register, each with its deciding runs.

    Returns:
        The register's own values: whole numbers and doubles as they are, decimals as text, since a reader
        in a browser has no decimal numbers.
    """
    import pyarrow as pa

    rows = study.kept(f"rows as evidence: {register}", lambda: study.rows(register))
    chosen = [row for row in rows if any(_reads(e, runs, row) for e, runs in wanted.values())]
    named = set(TABLES[register].key) | {*_OF_SETS}
    for endpoint, _ in wanted.values():
        named |= {*endpoint.where, *endpoint.outcome.columns, *endpoint.expect}
    columns = [name for name in study.table(register).column_names if name in named]
    return pa.table({name: _column(study, register, name, [row[name] for row in chosen]) for name in columns})


def rows_counted(study: Study, endpoint: Endpoint, runs: Sequence[str]) -> Any:
    """Return the rows that are counted for an endpoint on some tasks, as an Arrow table.

    Args:
        study: the study.
        endpoint: what is measured, of which there are rows.
        runs: its deciding runs.

    Returns:
        A row a run and step, with what `rows_read` keeps of one.
    """
    import pyarrow as pa

    chosen = [row for row in rows_of(endpoint, study) if _reads(endpoint, runs, row)]
    register = endpoint.register
    named = {*TABLES[register].key, *_OF_SETS, *endpoint.where, *endpoint.outcome.columns}
    columns = [name for name in study.table(register).column_names if name in named]
    return pa.table({name: _column(study, register, name, [row[name] for row in chosen]) for name in columns})


def episodes_counted(study: Study, endpoint: Endpoint, runs: tuple[str, ...]) -> tuple[bytes, int]:
    """Return what the interval of an endpoint resamples: a row a run, step and task.

    Args:
        study: a study with episode rows.
        endpoint: a mean of episodes by seed.
        runs: its deciding runs, in the order of their places.

    Returns:
        The Parquet file, and how many rows it has. Two rules on one endpoint share it.
    """
    name = f"episodes as evidence: {endpoint.id} of {', '.join(runs)}"
    made: tuple[bytes, int] = study.kept(name, lambda: _counted(study, endpoint, runs))
    return made


def parquet(table: Any) -> bytes:
    """Return an Arrow table as one Parquet file; the same rows give the same bytes."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        row_group_size=max(1, table.num_rows),
        store_schema=False,
        version="2.6",
        data_page_version="1.0",
        write_statistics=False,
    )
    return sink.getvalue()


def _reads(endpoint: Endpoint, runs: Sequence[str], row: Mapping[str, Any]) -> bool:
    if any(row[name] != value for name, value in endpoint.where.items()):
        return False
    if endpoint.arms and row["run_id"] not in runs:
        return False
    if endpoint.checkpoints:
        return (row["trajectory"], row["step"]) in endpoint.checkpoints
    return not endpoint.steps or row["step"] in endpoint.steps


def _column(study: Study, register: str, name: str, values: Sequence[Any]) -> Any:
    import pyarrow as pa

    column = study.table(register).column(name)
    if column is not None and column.type.is_number and column.type is not Type.DECIMAL:
        return pa.array(values, pa.type_for_alias(column.type.value))
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _counted(study: Study, endpoint: Endpoint, runs: tuple[str, ...]) -> tuple[bytes, int]:
    table = _as_table(episode_counts(endpoint, runs, study), runs, endpoint.steps)
    return parquet(table), table.num_rows


def _as_table(counts: Counts, runs: Sequence[str], steps: Sequence[int]) -> Any:
    """Return counts by run, step and task, in this order: neighbours are alike, which packs well."""
    import pyarrow as pa

    rows = [
        (run, step, task, counted.episodes, counted.successes)
        for run in runs
        for step in steps
        for task, counted in sorted(counts.get((run, step), {}).items())
    ]
    names = ("run_id", "step", "task", "episodes", "successes")
    types = (pa.string(), pa.int32(), pa.int32(), pa.int32(), pa.int32())
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: pa.array(c, t) for name, c, t in zip(names, columns, types, strict=True)})
