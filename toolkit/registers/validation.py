"""Do the rows say what the schema allows? Keys, bounds, closed sets, and references between tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import str_key, to_rows
from toolkit.registers.manifest import check_file, check_nothing_else
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.registers.arrow import Row
    from toolkit.registers.columns import Column, Parent, Table
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
    tables = {table.name: study.arrow(table.name) for table in study.tables}  # 2
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
        check_table(TABLES[name], listed)
        for parent in TABLES[name].parents:
            _check_parent(TABLES[name], listed, parent, rows.get(parent.table, []))


def check_table(table: Table, rows: list[Row]) -> None:
    """Check the rows of one table: keys, types, bounds, closed sets, sums.

    Raises:
        DamagedError: the first row that breaks a rule, with its key.
    """
    _check_keys(table, rows)
    for row in rows:
        for column in table.columns:
            for problem, expected in _complaints(column, row):
                raise DamagedError(
                    f"{table.name}.{column.name} {problem}",
                    expected=expected,
                    found=row[column.name],
                    where=_where(table, row),
                )
    for total, parts in table.sums:
        _check_sum(table, rows, total, parts)


def _check_sum(table: Table, rows: list[Row], total: str, parts: tuple[str, ...]) -> None:
    for row in rows:
        values = [row[part] for part in parts]
        if row[total] is not None and None not in values and sum(values) != row[total]:
            raise DamagedError(
                f"{' and '.join(parts)} of {table.name} do not add up to {total}",
                expected=row[total],
                found=" + ".join(map(str, values)),
                where=_where(table, row),
            )


def _check_parent(table: Table, rows: list[Row], parent: Parent, others: list[Row]) -> None:
    known = {tuple(other[name] for name in parent.columns): other for other in others}
    for row in rows:
        if parent.where_present and row[parent.where_present] is None:
            continue
        other = known.get(tuple(row[name] for name in parent.columns))
        if other is None:
            raise DamagedError(
                f"{', '.join(parent.columns)} of {table.name} refers to nothing",
                expected=f"a row of {parent.table}",
                found=", ".join(str(row[name]) for name in parent.columns),
                where=_where(table, row),
            )
        for name in parent.same:
            if row[name] != other[name]:
                raise DamagedError(
                    f"{table.name}.{name} contradicts {parent.table}",
                    expected=other[name],
                    found=row[name],
                    where=_where(table, row),
                )


def _check_keys(table: Table, rows: list[Row]) -> None:
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


def _complaints(column: Column, row: Row) -> Iterator[tuple[str, object]]:
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
    for bound in column.at_most:
        if row[bound] is not None and value > row[bound]:
            yield "is larger than it can be", f"at most {bound} = {row[bound]}"


def _where(table: Table, row: Row) -> str:
    return f"{table.name} row " + ", ".join(f"{name}={row[name]}" for name in table.key)
