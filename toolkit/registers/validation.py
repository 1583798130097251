"""Do the rows say what the schema allows? Keys, bounds, closed sets, sums, and references between tables."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import isclose
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row, moment, str_key, to_rows
from toolkit.registers.columns import Column, Table, read_attributes
from toolkit.registers.schema import TABLES


def check_rows(tables: Mapping[str, Any], schema: Mapping[str, Table] = TABLES) -> None:
    """Check rows against the schema."""
    for name, arrow in tables.items():
        table = schema[name].narrowed(arrow.column_names)
        check_table(table, arrow)
        check_parents(table, arrow, tables)


def check_table(table: Table, arrow: Any) -> None:
    """Check the rows of one table: times, keys, presence, bounds, closed sets, sums."""
    _check_times(arrow)
    _check_keys(table, arrow)
    _check_columns(table, arrow)
    _check_sums(table, arrow)


def check_parents(table: Table, arrow: Any, tables: Mapping[str, Any]) -> None:
    """Check that what the rows of a table refer to is there, and says the same."""
    for parent in table.parents:
        names = (*parent.columns, *parent.same)
        others = to_rows(tables[parent.table].select(list(names))) if parent.table in tables else []
        known = {_values(other, parent.columns): other for other in others}
        chosen = arrow.select(list(dict.fromkeys((*names, *filter(None, (parent.where_present,))))))
        starts = _changes(chosen)
        for start, row in zip(starts.to_pylist(), to_rows(chosen.take(starts)), strict=True):
            if parent.where_present and row[parent.where_present] is None:
                continue
            other = known.get(_values(row, parent.columns))
            if other is None:
                raise DamagedError(
                    f"{', '.join(parent.columns)} of {table.name} refers to nothing",
                    expected=f"a row of {parent.table}",
                    found=", ".join(map(str, _values(row, parent.columns))),
                    where=_place(table, arrow, start),
                )
            for name in parent.same:
                if row[name] != other[name]:
                    raise DamagedError(
                        f"{table.name}.{name} contradicts {parent.table}",
                        expected=other[name],
                        found=row[name],
                        where=_place(table, arrow, start),
                    )


def _check_times(arrow: Any) -> None:
    """Check that times are such as Python can say, without which no row of theirs can be named."""
    import pyarrow as pa

    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            for tick in _range(column.cast(pa.int64())):
                if tick is not None:
                    moment(tick, name)


def _check_keys(table: Table, arrow: Any) -> None:
    """Check that every row is greater than the one before it, by its key, null first."""
    import pyarrow.compute as pc

    keys = arrow.select(list(table.key))
    before, after = keys.slice(0, max(0, keys.num_rows - 1)), keys.slice(1)
    rising = None
    for name in reversed(table.key):
        less, same = _compared(before[name], after[name])
        rising = less if rising is None else pc.or_(less, pc.and_(same, rising))
    at = _first(pc.invert(rising))
    if at is not None:
        key, next_key = to_rows(keys.slice(at, 2))
        raise DamagedError(
            f"the rows of {table.name} are " + ("not unique" if key == next_key else "not sorted"),
            expected=f"unique and sorted by {', '.join(table.key)}",
            where=_place(table, arrow, at + 1),
        )


def _check_columns(table: Table, arrow: Any) -> None:
    """Check the values of columns; the first that is not allowed is named, by row and then by column."""
    first: tuple[int, Column, str, object] | None = None
    for column in table.columns:
        for row, problem, expected in _problems(column, arrow):
            if row is not None and (first is None or row < first[0]):
                first = row, column, problem, expected
    if first is not None:
        row, column, problem, expected = first
        raise DamagedError(
            f"{table.name}.{column.name} {problem}",
            expected=expected,
            found=arrow[column.name][row].as_py(),
            where=_place(table, arrow, row),
        )


def _problems(column: Column, arrow: Any) -> Iterator[tuple[int | None, str, object]]:
    """Yield what can be wrong with a column, with the first row in which it is: None where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = arrow[column.name]
    if values.null_count and not column.nullable:
        yield _first(values.is_null()), "is absent", "a value"
    elements = pc.list_flatten(values) if column.type.is_list else values
    if column.type.is_list and elements.null_count:
        row = _row_of(values, _first(elements.is_null()))
        yield row, "holds an absent value", "a value at every place of the list"
    if pa.types.is_floating(elements.type):
        row = _row_of(values, _first(pc.invert(pc.is_finite(elements))))
        yield row, "is not finite", "finite numbers" if column.type.is_list else "a finite number"
    if column.type.is_list:
        return
    if column.pairs:
        yield from _pair_problems(values.to_pylist())
    if column.choices is not None:
        unknown = set(values.unique().to_pylist()) - {None, *column.choices}
        first = min((pc.index(values, word).as_py() for word in unknown), default=None)
        yield first, "is not one of the allowed values", ", ".join(column.choices)
    least, greatest = (None, None) if column.low is column.high is None else _range(values)
    if least is not None and column.low is not None and least < column.low:
        low = pa.scalar(column.low, values.type)
        yield _first(pc.less(values, low)), "is too small", f"at least {column.low}"
    if greatest is not None and column.high is not None and greatest > column.high:
        high = pa.scalar(column.high, values.type)
        yield _first(pc.greater(values, high)), "is too large", f"at most {column.high}"
    for name in column.at_most:
        row = _first(pc.greater(values, arrow[name]))
        expected = "" if row is None else f"at most {name} = {arrow[name][row].as_py()}"
        yield row, "is larger than it can be", expected


def _pair_problems(texts: Sequence[str | None]) -> Iterator[tuple[int | None, str, object]]:
    """Yield what can be wrong with texts of pairs; the first row says which names there are."""
    names = None
    for row, text in enumerate(texts):
        try:
            said = None if text is None else [*read_attributes(text)]
        except DamagedError as error:
            yield row, "is no canonical JSON of texts", error.expected
            return
        names = names or said
        if said is not None and said != names:
            yield row, "has other names than the first row", ", ".join(names or ())
            return


def _check_sums(table: Table, arrow: Any) -> None:
    """Check that parts add up to their total wherever none of them is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for total, parts in table.sums:
        whole, *addends = (arrow[name].cast(pa.int64()) for name in (total, *parts))
        at = _first(pc.not_equal(reduce(pc.add_checked, addends), whole))
        if at is not None:
            (row,) = to_rows(arrow.slice(at, 1))
            raise DamagedError(
                f"{' and '.join(parts)} of {table.name} do not add up to {total}",
                expected=row[total],
                found=" + ".join(map(str, _values(row, parts))),
                where=_place(table, arrow, at),
            )


def _changes(chosen: Any) -> Any:
    """Return the positions of the rows that differ from the row before; Arrow's own grouping is slow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before, after = chosen.slice(0, max(0, chosen.num_rows - 1)), chosen.slice(1)
    same = reduce(pc.and_, (_compared(before[name], after[name])[1] for name in chosen.column_names))
    first = pa.nulls(min(1, chosen.num_rows)).is_null()
    return pc.indices_nonzero(pa.chunked_array([first, *pc.invert(same).chunks], pa.bool_()))


def _compared(left: Any, right: Any) -> tuple[Any, Any]:
    """Return, pair by pair, whether left is less than right and whether they are the same, null first."""
    import pyarrow.compute as pc

    less, same = pc.less(left, right), pc.equal(left, right)
    if not left.null_count and not right.null_count:
        return less, same
    no_left, no_right = pc.is_null(left), pc.is_null(right)
    return (pc.coalesce(less, pc.and_not(no_left, no_right)), pc.coalesce(same, pc.and_(no_left, no_right)))


def _range(values: Any) -> tuple[Any, Any]:
    """Return the least and the greatest value, (None, None) where there is none."""
    import pyarrow.compute as pc

    both = pc.min_max(values).as_py()
    return both["min"], both["max"]


def _first(truths: Any) -> int | None:
    """Return the position of the first that is true; null is not."""
    import pyarrow.compute as pc

    places = pc.indices_nonzero(truths)
    return places[0].as_py() if len(places) else None


def _row_of(values: Any, element: int | None) -> int | None:
    """Return the row that an element of a column's lists is in; in a column without lists it is its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if element is None or not pa.types.is_list(values.type):
        return element
    row: int = pc.list_parent_indices(values)[element].as_py()
    return row


def _values(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _place(table: Table, arrow: Any, row: int) -> str:
    """Return what an error names as the place: the key of a row."""
    (key,) = to_rows(arrow.select(list(table.key)).slice(row, 1))
    return f"{table.name} row " + ", ".join(f"{name}={value}" for name, value in key.items())


NEAR = 1e-9
"""Doubles from another processor may differ in their last digits: by far less than a verdict turns on."""

_REMEDY = "restore the file, or rebuild the registers from the rows"


def compare(table: str, derived: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> None:
    """Compare rows of a table with those that follow, in the columns that both have."""
    key = TABLES[table].key
    sources = " and ".join(TABLES[table].follows) or "the registration"
    mine, theirs = ({tuple(row[name] for name in key): row for row in rows} for rows in (derived, stored))
    for at in sorted({*mine, *theirs}, key=lambda at: tuple(map(str_key, at))):
        ours, recorded = mine.get(at), theirs.get(at)
        where = f"{table} row " + ", ".join(f"{n}={v}" for n, v in zip(key, at, strict=True))
        if ours is None or recorded is None:
            surplus = f"{table} has a row that does not follow from {sources}"
            lacking = f"{table} lacks a row that follows from {sources}"
            raise DamagedError(surplus if ours is None else lacking, where=where, remedy=_REMEDY)
        for name, value in ours.items():
            if name in recorded and not _is_same(value, recorded[name]):
                raise DamagedError(
                    f"{table}.{name} is not what follows from {sources}",
                    expected=value,
                    found=recorded[name],
                    where=where,
                    remedy=_REMEDY,
                )


def _is_same(derived: object, stored: object) -> bool:
    if isinstance(derived, float) and isinstance(stored, float):
        return isclose(derived, stored, rel_tol=NEAR, abs_tol=NEAR * NEAR)
    return derived == stored
