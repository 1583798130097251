"""Do the rows say what the schema allows? Keys, bounds, closed sets, and references between tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import str_key, to_rows
from toolkit.registers.manifest import check_file, check_nothing_else
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.registers.columns import Column, Table
    from toolkit.registers.study import Study


def verify_study(study: Study) -> dict[str, int]:
    """Check a study from its bytes to its meaning.

    1. Every file is the one the manifest names, and no other file lies beside them.
    2. Every table has the schema's columns, the manifest's row count and the manifest's row hash.
    3. Every row obeys the schema, and every reference between tables leads somewhere.

    Returns:
        Rows a table.

    Raises:
        IncompleteError: a file is missing or cannot be read.
        DamagedError: anything above does not hold.
    """
    for name, entry in study.manifest.files.items():  # 1
        check_file(study.folder, name, entry)
    check_nothing_else(study.folder, study.manifest)
    tables = {table.name: study.arrow(table.name) for table in study.tables}
    for name, table in tables.items():  # 2
        recorded = study.manifest.tables[name]
        if table.num_rows != recorded.rows:
            raise DamagedError(
                f"{name} has another number of rows", expected=recorded.rows, found=table.num_rows, where=name
            )
        if row_sha256(table) != recorded.row_sha256:
            raise DamagedError(
                f"the rows of {name} are not those of the manifest",
                expected=f"row hash {recorded.row_sha256}",
                found=f"row hash {row_sha256(table)}",
                where=name,
            )
    check_rows(tables)  # 3
    return {name: table.num_rows for name, table in tables.items()}


def check_rows(tables: dict[str, Any]) -> None:
    """Check rows against the schema.

    Args:
        tables: table name → `pyarrow.Table` with the schema's columns.

    Raises:
        DamagedError: the first row that breaks a rule, with its key.
    """
    rows = {name: to_rows(table) for name, table in tables.items()}
    for name, listed in rows.items():
        table = TABLES[name]
        _check_keys(table, listed)
        for row in listed:
            for column in table.columns:
                for complaint in _complaints(column, row):
                    raise DamagedError(
                        f"{name}.{column.name} {complaint[0]}",
                        expected=complaint[1],
                        found=row[column.name],
                        where=_where(table, row),
                    )
        for column_name, target in table.parent.items():
            parent, parent_column = target.split(".")
            known = {row[parent_column] for row in rows.get(parent, [])}
            for row in listed:
                if row[column_name] not in known:
                    raise DamagedError(
                        f"{name}.{column_name} refers to nothing",
                        expected=f"a value of {target}",
                        found=row[column_name],
                        where=_where(table, row),
                    )


def _check_keys(table: Table, rows: list[dict[str, Any]]) -> None:
    previous: tuple[tuple[int, Any], ...] | None = None
    for row in rows:
        key = tuple(str_key(row[name]) for name in table.key)
        if previous is not None and key <= previous:
            raise DamagedError(
                f"the rows of {table.name} are " + ("not unique" if key == previous else "not sorted"),
                expected=f"unique and sorted by {', '.join(table.key)}",
                where=_where(table, row),
            )
        previous = key


def _complaints(column: Column, row: dict[str, Any]) -> Iterator[tuple[str, object]]:
    value = row[column.name]
    if value is None:
        if not column.nullable:
            yield "is absent", "a value"
        return
    if isinstance(value, float) and not math.isfinite(value):
        yield "is not finite", "a finite number"
        return
    if column.choices is not None and value not in column.choices:
        yield "is not one of the allowed values", ", ".join(column.choices)
    if column.low is not None and value < column.low:
        yield "is too small", f"at least {column.low}"
    if column.high is not None and value > column.high:
        yield "is too large", f"at most {column.high}"
    if column.at_most is not None and row[column.at_most] is not None and value > row[column.at_most]:
        yield "is larger than it can be", f"at most {column.at_most} = {row[column.at_most]}"


def _where(table: Table, row: dict[str, Any]) -> str:
    return f"{table.name} row " + ", ".join(f"{name}={row[name]}" for name in table.key)
