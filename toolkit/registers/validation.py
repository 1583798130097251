"""Do the rows say what the schema allows? Keys, bounds, closed sets, and references between tables.

Whole columns are looked over first (`suspicion`); only what is suspicious there is read row by row (`rules`),
which says what is wrong, and where first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.registers import rules, suspicion
from toolkit.registers.arrow import to_rows
from toolkit.registers.manifest import check_nothing_else
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.registers.arrow import Row
    from toolkit.registers.columns import Column, Parent, Table
    from toolkit.registers.study import Study

# Rows that are turned into dictionaries at once.
_BLOCK = 65_536


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
    for name in study.manifest.files:  # 1
        study.prove(name)
    check_nothing_else(study.folder, study.manifest)
    tables = {table.name: study.arrow(table.name) for table in study.tables}  # 2
    check_rows(tables, {table.name: table for table in study.tables})  # 3
    return {name: table.num_rows for name, table in tables.items()}


def check_rows(tables: Mapping[str, Any], schema: Mapping[str, Table] = TABLES) -> None:
    """Check rows against the schema.

    Args:
        tables: table name → `pyarrow.Table` with its columns.
        schema: table name → what the table is; the whole schema if left out.

    Raises:
        DamagedError: the first row that breaks a rule, with its key.
    """
    for name, arrow in tables.items():
        table = schema[name].narrowed(arrow.column_names)
        check_table(table, arrow)
        check_parents(table, arrow, tables)


def check_table(table: Table, arrow: Any) -> None:
    """Check the rows of one table: keys, types, bounds, closed sets, sums.

    Args:
        table: the table.
        arrow: its rows, a `pyarrow.Table` with the schema's columns.

    Raises:
        DamagedError: the first row that breaks a rule, with its key.
    """
    if suspicion.of_times(arrow):
        for _ in _rows(arrow, arrow.column_names):
            pass
    if suspicion.of_keys(arrow, table.key):
        rules.check_keys(table, _rows(arrow, table.key))
    suspects = [column for column in table.columns if suspicion.of_column(column, arrow)]
    if suspects:
        rules.check_columns(table, suspects, _rows(arrow, _concerned(table, suspects)))
    for total, parts in table.sums:
        if suspicion.of_sum(arrow, total, parts):
            rules.check_sum(table, total, parts, _rows(arrow, (*table.key, total, *parts)))


def check_parents(table: Table, arrow: Any, tables: Mapping[str, Any]) -> None:
    """Check that what the rows of a table refer to is there, and says the same.

    Args:
        table: the table.
        arrow: its rows.
        tables: table name → `pyarrow.Table`; a table that is not here has no rows.

    Raises:
        DamagedError: the first row that refers to nothing, or contradicts what it refers to.
    """
    for parent in table.parents:
        names = (*parent.columns, *parent.same)
        others = tables.get(parent.table)
        known = {} if others is None else _by_columns(parent, _rows(others, names))
        changed = suspicion.changing(arrow, (*names, *filter(None, (parent.where_present,))))
        if not rules.are_sound(parent, known, to_rows(changed)):
            wanted = (*table.key, *changed.column_names)
            rules.check_parent(table, parent, known, _rows(arrow, wanted))


def _by_columns(parent: Parent, others: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    return {tuple(other[name] for name in parent.columns): other for other in others}


def _concerned(table: Table, columns: list[Column]) -> tuple[str, ...]:
    """Return the names of columns, of those that bound them, and of the key that says where they are."""
    return (*table.key, *(name for column in columns for name in (column.name, *column.at_most)))


def _rows(arrow: Any, names: Iterable[str]) -> Iterator[Row]:
    """Yield rows with only the named columns, without holding them all."""
    chosen = arrow.select(list(dict.fromkeys(names)))
    for start in range(0, chosen.num_rows, _BLOCK):
        yield from to_rows(chosen.slice(start, _BLOCK))
