"""A study's tables as DuckDB views and relations, for Python: over checked files, and not locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.sandbox import create_view

if TYPE_CHECKING:
    import duckdb

    from toolkit.registers.study import Study


def connect(study: Study) -> duckdb.DuckDBPyConnection:
    """Return a connection with one view a table; it is the caller's to close.

    Raises:
        IncompleteError: a file is missing or cannot be read.
        DamagedError: a file is not the one the manifest names.
    """
    return _connected(study, [table.name for table in study.tables])


def relation(study: Study, table: str) -> duckdb.DuckDBPyRelation:
    """Return a table as a relation with a connection of its own.

    Raises:
        UsageError: the study has no such table.
        IncompleteError: a file is missing or cannot be read.
        DamagedError: a file is not the one the manifest names.
    """
    return _connected(study, [table]).view(table)


def _connected(study: Study, tables: list[str]) -> duckdb.DuckDBPyConnection:
    import duckdb

    files = {table: study.paths(table) for table in tables}
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for table, paths in files.items():
        create_view(connection, table, paths)
    return connection
