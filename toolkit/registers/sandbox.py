"""A DuckDB connection that reads a study's tables, and can do nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    import duckdb

MEMORY = "4GiB"
"""What DuckDB may hold of a query's rows; it spills nothing to disk, and stops a query that needs more."""

_SETTINGS = (
    "SET temp_directory = ''",  # its files would be within reach
    "SET python_enable_replacements = false",  # or a query could read this program's variables
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
)

# Table functions that change what a connection does. DuckDB 1.5 runs them although the configuration is
# locked: with one, every query prints on stdout; another ends the process.
_CHANGING = ("ENABLE_", "DISABLE_")


def open_sandbox(tables: Mapping[str, Any], where: object) -> duckdb.DuckDBPyConnection:
    """Return a connection with one view a table, locked to what the tables are read from."""
    import duckdb

    connection = duckdb.connect()
    files = {name: literals(source) for name, source in tables.items() if not hasattr(source, "schema")}
    connection.execute(f"SET allowed_paths = [{', '.join(files.values())}]")
    for setting in (f"SET memory_limit = '{MEMORY}'", *_SETTINGS):
        connection.execute(setting)
    for name, source in tables.items():
        try:
            if name in files:
                create_view(connection, name, source)
            else:
                connection.register(name, source)
        except duckdb.Error as error:
            connection.close()
            raise DamagedError(
                f"the files of {name} are not readable Parquet files", found=error, where=where
            ) from None
    connection.execute("SET lock_configuration = true")
    return connection


def create_view(connection: duckdb.DuckDBPyConnection, name: str, files: Sequence[Path]) -> None:
    """Create a view over Parquet files, with the name of their table."""
    connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{literals(files)}])')


def reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one statement of a text, checked to do nothing but read."""
    import duckdb

    statements = connection.extract_statements(sql)
    # EXPLAIN is no reader: EXPLAIN ANALYZE runs whatever it explains.
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "a query is one statement that reads",
            expected="one SELECT, FROM, DESCRIBE or SUMMARIZE",
            found=", ".join(s.type.name for s in statements) or "nothing",
        )
    planned = connection.execute(f"EXPLAIN (FORMAT json) {statements[0].query}").fetchall()
    changing = [
        name for _, plan in planned for name in _operators(json.loads(plan)) if name.startswith(_CHANGING)
    ]
    if changing:
        raise UsageError(
            "a query reads, and changes no settings", found=", ".join(sorted(set(changing))).lower()
        )
    return statements[0]


def _operators(plan: Any) -> Iterator[str]:
    """Yield the names of a plan's operators; a table function is called as it is."""
    for step in plan:
        yield step["name"].strip()
        yield from _operators(step["children"])


def literals(values: Iterable[object]) -> str:
    """Return texts, paths and numbers as SQL writes a list of texts, without its brackets."""
    return ", ".join("'" + str(value).replace("'", "''") + "'" for value in values)
