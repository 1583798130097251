"""What a row has to obey, row by row, and what is said of the first that does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import str_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.registers.arrow import Row
    from toolkit.registers.columns import Column, Parent, Table


def check_keys(table: Table, rows: Iterable[Row]) -> None:
    """Check that rows are sorted by their table's key, and that none stands twice.

    Raises:
        DamagedError: the first row that is not greater than the one before it.
    """
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


def check_columns(table: Table, columns: Iterable[Column], rows: Iterable[Row]) -> None:
    """Check the values of columns: presence, finiteness, closed sets, bounds.

    Raises:
        DamagedError: the first value that is not allowed, by row and then by column.
    """
    columns = list(columns)
    for row in rows:
        for column in columns:
            for problem, expected in _complaints(column, row):
                raise DamagedError(
                    f"{table.name}.{column.name} {problem}",
                    expected=expected,
                    found=row[column.name],
                    where=_where(table, row),
                )


def check_sum(table: Table, total: str, parts: tuple[str, ...], rows: Iterable[Row]) -> None:
    """Check that parts add up to their total wherever none of them is null.

    Raises:
        DamagedError: the first row in which they do not.
    """
    for row in rows:
        values = [row[part] for part in parts]
        if row[total] is not None and None not in values and sum(values) != row[total]:
            raise DamagedError(
                f"{' and '.join(parts)} of {table.name} do not add up to {total}",
                expected=row[total],
                found=" + ".join(map(str, values)),
                where=_where(table, row),
            )


def check_parent(
    table: Table, parent: Parent, known: Mapping[tuple[Any, ...], Row], rows: Iterable[Row]
) -> None:
    """Check references.

    Args:
        table: the table that refers.
        parent: what it refers to.
        known: the rows of the other table by the columns that refer to them.
        rows: of the table that refers.

    Raises:
        DamagedError: the first row that refers to nothing, or contradicts what it refers to.
    """
    for row in rows:
        if _is_sound(parent, known, row):
            continue
        other = known.get(_reference(parent, row))
        if other is None:
            raise DamagedError(
                f"{', '.join(parent.columns)} of {table.name} refers to nothing",
                expected=f"a row of {parent.table}",
                found=", ".join(str(row[name]) for name in parent.columns),
                where=_where(table, row),
            )
        name = next(name for name in parent.same if row[name] != other[name])
        raise DamagedError(
            f"{table.name}.{name} contradicts {parent.table}",
            expected=other[name],
            found=row[name],
            where=_where(table, row),
        )


def are_sound(parent: Parent, known: Mapping[tuple[Any, ...], Row], rows: Iterable[Row]) -> bool:
    """Return whether every row refers to a row that says the same; arguments as `check_parent`."""
    return all(_is_sound(parent, known, row) for row in rows)


def _is_sound(parent: Parent, known: Mapping[tuple[Any, ...], Row], row: Row) -> bool:
    if parent.where_present and row[parent.where_present] is None:
        return True
    other = known.get(_reference(parent, row))
    return other is not None and all(row[name] == other[name] for name in parent.same)


def _reference(parent: Parent, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in parent.columns)


def _complaints(column: Column, row: Row) -> Iterator[tuple[str, object]]:
    value = row[column.name]
    if value is None:
        if not column.nullable:
            yield "is absent", "a value"
        return
    values = value if column.type.is_list else (value,)
    if None in values:
        yield "holds an absent value", "a value at every place of the list"
        return
    if any(isinstance(one, float) and not math.isfinite(one) for one in values):
        yield "is not finite", "finite numbers" if column.type.is_list else "a finite number"
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
