"""SQL over a study's registers: read-only, one view a table, nothing else within reach."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import duckdb

    from toolkit.registers.study import Study


@dataclass(frozen=True)
class Answer:
    """The result of a query: column names and rows of Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@contextmanager
def asking(study: Study) -> Iterator[Callable[[str], Answer]]:
    """Open a study for several queries; the value is a function like `ask` without its first argument.

    Raises:
        DamagedError: a file is not the one the manifest names.
    """
    connection = _connect(study)
    try:
        yield lambda sql: _run(connection, sql)
    finally:
        connection.close()


def ask(study: Study, sql: str) -> Answer:
    """Run one SELECT (or FROM, DESCRIBE, SUMMARIZE) on a study.

    Raises:
        UsageError: the text is not one reading statement, or DuckDB refuses it.
        DamagedError: a file is not the one the manifest names.
    """
    with asking(study) as run:
        return run(sql)


def _connect(study: Study) -> duckdb.DuckDBPyConnection:
    """Return a connection with one view a table, locked to the study's files."""
    import duckdb

    connection = duckdb.connect()
    files = {table.name: [_quoted(path) for path in study.paths(table.name)] for table in study.tables}
    allowed = ", ".join(path for paths in files.values() for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET temp_directory = ''")  # its files would be within reach
    connection.execute("SET enable_external_access = false")
    connection.execute("SET TimeZone = 'UTC'")
    for name, paths in files.items():
        try:
            connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{", ".join(paths)}])')
        except duckdb.Error as error:
            raise DamagedError(
                f"the files of {name} are not readable Parquet files", found=error, where=study.folder
            ) from None
    connection.execute("SET lock_configuration = true")
    return connection


def _run(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        # EXPLAIN is no reader: EXPLAIN ANALYZE runs whatever it explains.
        if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
            raise UsageError(
                "a query is one statement that reads",
                expected="one SELECT, FROM, DESCRIBE or SUMMARIZE",
                found=", ".join(s.type.name for s in statements) or "nothing",
            )
        return _interruptibly(connection, statements[0])
    except (duckdb.Error, UnicodeError) as error:
        raise UsageError(
            "DuckDB refused the query",
            found=str(error).strip(),
            remedy="`toolkit registers schema` lists tables and columns",
        ) from None


def _interruptibly(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> Answer:
    """Run a statement so that Ctrl-C stops it: DuckDB itself does not look at signals."""

    def run() -> Answer:
        cursor = connection.execute(statement)
        return Answer(tuple(entry[0] for entry in cursor.description or ()), tuple(cursor.fetchall()))

    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(run)
        try:
            return future.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
