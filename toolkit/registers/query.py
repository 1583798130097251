"""SQL over a study's registers: read-only, one view a table, nothing else within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.errors import UsageError
from toolkit.files import writing
from toolkit.registers.hub.in_place import RemoteStudy
from toolkit.registers.sandbox import open_sandbox, reading_statement
from toolkit.registers.study import Study

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

_BATCH = 100_000
"""Rows that are fetched at once."""


@dataclass(frozen=True)
class Answer:
    """The result of a query: column names and rows of Python values.

    Args:
        columns: their names.
        rows: the rows; the first ones where not all were asked for.
        total: how many rows there are.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int


@dataclass(frozen=True)
class Asking:
    """A study opened for queries; it is called with a query and returns the answer."""

    _connection: duckdb.DuckDBPyConnection
    _remote: RemoteStudy | None = None

    def __call__(self, sql: str, most: int | None = None) -> Answer:
        """Return the answer to a query.

        Args:
            sql: one SELECT (or FROM, DESCRIBE, SUMMARIZE).
            most: rows to keep; the others are only counted.

        Raises:
            UsageError: the text is not one reading statement, or DuckDB refuses it.
        """
        kept: list[tuple[Any, ...]] = []
        total = 0
        columns: tuple[str, ...] = ()
        for names, rows in self.batches(sql):
            columns = names
            total += len(rows)
            kept += rows if most is None else rows[: max(0, most - len(kept))]
        return Answer(columns, tuple(kept), total)

    def batches(self, sql: str) -> Iterator[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
        """Yield column names and rows, as many at a time as fit anywhere, the first time perhaps none.

        Raises:
            UsageError: as for a call.
        """
        with self._refusals():
            statement = reading_statement(self._connection, sql)
            cursor = self._wait(lambda: self._connection.execute(statement))
            columns = tuple(entry[0] for entry in cursor.description or ())
            yield columns, []
            while rows := self._wait(lambda: cursor.fetchmany(_BATCH)):
                yield columns, rows

    def write_parquet(self, sql: str, path: Path) -> int:
        """Write the answer to a query as a Parquet file and return the number of its rows.

        Types are those that DuckDB gives Arrow: decimals, times with their zone and lists stay what they are.
        The sum of whole numbers is a decimal of 38 digits; cast it where something narrower is wanted.

        Args:
            sql: as for a call.
            path: where to write. A file that is there already is left alone.

        Raises:
            UsageError: as for a call, or the file is there, or Parquet has no form for a column.
            IncompleteError: the file cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if path.exists():
            raise UsageError(
                "an answer replaces no file", found=path, remedy="give another name, or remove the file"
            )
        with self._refusals(), writing(path) as beside:
            statement = reading_statement(self._connection, sql)
            reader = self._connection.sql(statement.query).to_arrow_reader(_BATCH)
            try:
                with pq.ParquetWriter(beside, reader.schema, compression="zstd") as writer:
                    return self._wait(lambda: _pour(reader, writer))
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise UsageError(
                    "the answer has no form in Parquet",
                    found=str(error).splitlines()[0],
                    remedy="cast the column, as in CAST(… AS VARCHAR)",
                ) from None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say what DuckDB refuses as an error of this toolkit."""
        import duckdb

        try:
            yield
        except duckdb.OutOfMemoryException as error:
            raise UsageError(
                "the query needs more memory than it may use",
                found=str(error).splitlines()[0],
                remedy="ask for fewer rows or columns at once",
            ) from None
        except (duckdb.Error, UnicodeError) as error:
            if self._remote is not None and self._remote.traffic.failures:
                self._remote.tell_failure()
            raise UsageError(
                "DuckDB refused the query",
                found=str(error).strip(),
                remedy="`toolkit registers schema` lists tables and columns",
            ) from None

    def _wait(self, work: Callable[[], T]) -> T:
        """Do something so that Ctrl-C stops it: DuckDB itself does not look at signals."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(work)
            try:
                return future.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise


@contextmanager
def asking(study: Study | RemoteStudy) -> Iterator[Asking]:
    """Open a study for several queries.

    Raises:
        DamagedError: a file is not the one the manifest names.
    """
    if isinstance(study, RemoteStudy):
        connection, remote = open_sandbox(study.datasets(), study.place), study
    else:
        remote = None
        files = {table.name: study.paths(table.name) for table in study.tables}
        connection = open_sandbox(files, study.folder)
    try:
        yield Asking(connection, remote)
    finally:
        connection.close()


def ask(study: Study | RemoteStudy, sql: str) -> Answer:
    """Run one SELECT (or FROM, DESCRIBE, SUMMARIZE) on a study.

    Raises:
        UsageError: the text is not one reading statement, or DuckDB refuses it.
        DamagedError: a file is not the one the manifest names.
    """
    with asking(study) as run:
        return run(sql)


def _pour(reader: Any, writer: Any) -> int:
    rows = 0
    for batch in reader:
        writer.write_batch(batch)
        rows += batch.num_rows
    return rows
