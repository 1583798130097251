"""SQL over a study's registers: read-only, one view a table, nothing else within reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    from toolkit.registers.study import Study


@dataclass(frozen=True)
class Answer:
    """The result of a query: column names and rows of Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def connect(study: Study) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with one view a table, locked to the study's folder.

    Raises:
        DamagedError: a file is not the one the manifest names.
    """
    import duckdb

    connection = duckdb.connect()
    folder = str(study.folder).replace("'", "''")
    connection.execute(f"SET allowed_directories = ['{folder}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET TimeZone = 'UTC'")
    for table in study.tables:
        paths = ", ".join("'" + str(path).replace("'", "''") + "'" for path in study.paths(table.name))
        connection.execute(f'CREATE VIEW "{table.name}" AS SELECT * FROM read_parquet([{paths}])')
    connection.execute("SET lock_configuration = true")
    return connection


def ask(study: Study, sql: str) -> Answer:
    """Run one SELECT (or EXPLAIN, DESCRIBE, SUMMARIZE) on a study.

    Raises:
        UsageError: the text is not one reading statement, or DuckDB refuses it.
        DamagedError: a file is not the one the manifest names.
    """
    import duckdb

    connection = connect(study)
    try:
        statements = connection.extract_statements(sql)
        readers = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
        if len(statements) != 1 or statements[0].type not in readers:
            raise UsageError(
                "a query is one statement that reads",
                expected="one SELECT, EXPLAIN, DESCRIBE or SUMMARIZE",
                found=", ".join(s.type.name for s in statements) or "nothing",
            )
        cursor = connection.execute(statements[0])
        columns = tuple(entry[0] for entry in cursor.description or ())
        return Answer(columns, tuple(cursor.fetchall()))
    except duckdb.Error as error:
        raise UsageError(
            "DuckDB refused the query",
            found=str(error).strip(),
            remedy="`toolkit registers schema` lists tables and columns",
        ) from None
    finally:
        connection.close()
