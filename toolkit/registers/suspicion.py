"""May a row of a table break a rule? Looked for in whole columns, and sure only where the answer is no."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from toolkit.registers.arrow import is_in_calendar

if TYPE_CHECKING:
    from toolkit.registers.columns import Column

# Whole numbers narrower than this many bits have sums that fit in as many.
_WIDEST = 64


def of_times(arrow: Any) -> bool:
    """Return whether a time may lie outside the calendar."""
    import pyarrow as pa

    for column in arrow.columns:
        if pa.types.is_timestamp(column.type):
            low, high = _range(column.cast(pa.int64()))
            if low is not None and not (is_in_calendar(low) and is_in_calendar(high)):
                return True
    return False


def of_keys(arrow: Any, key: tuple[str, ...]) -> bool:
    """Return whether a row may not be greater than the one before it, by its key, null first."""
    import pyarrow.compute as pc

    if arrow.num_rows < 2:  # noqa: PLR2004 - a row alone is sorted
        return False
    rising = None
    for name in reversed(key):
        column = arrow[name]
        less, same = _compared(column.slice(0, len(column) - 1), column.slice(1))
        rising = less if rising is None else pc.or_(less, pc.and_(same, rising))
    return not _all(rising)


def of_column(column: Column, arrow: Any) -> bool:
    """Return whether a value of a column may be one that it must not hold."""
    import pyarrow.compute as pc

    values = arrow[column.name]
    if values.null_count and not column.nullable:
        return True
    if column.type.is_list:
        values = pc.list_flatten(values)
        return bool(values.null_count) or not _are_finite(values)
    if not _are_finite(values) or not _are_chosen(column, values):
        return True
    return _is_out_of_bounds(column, values) or any(_exceeds(values, arrow[name]) for name in column.at_most)


def of_sum(arrow: Any, total: str, parts: tuple[str, ...]) -> bool:
    """Return whether parts may not add up to their total in a row in which none of them is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [arrow[name] for name in (total, *parts)]
    if not all(pa.types.is_signed_integer(c.type) and c.type.bit_width < _WIDEST for c in columns):
        return True
    whole, *addends = (column.cast(pa.int64()) for column in columns)
    return not _all(pc.equal(reduce(pc.add_checked, addends), whole))


def changing(arrow: Any, names: tuple[str, ...]) -> Any:
    """Return some columns of the rows in which they say something else than in the row before.

    In a table sorted by what it refers to with, these are few. (Arrow's own grouping imports pandas where it
    is installed.)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = arrow.select(list(dict.fromkeys(names)))
    first, others = chosen.slice(0, 1), chosen.slice(1)
    before = chosen.slice(0, others.num_rows)
    same = [_compared(before[name], others[name])[1] for name in chosen.column_names]
    return pa.concat_tables([first, others.filter(pc.invert(reduce(pc.and_, same)))])


def _compared(left: Any, right: Any) -> tuple[Any, Any]:
    """Return, pair by pair, whether left is less than right and whether they are the same, null first."""
    import pyarrow.compute as pc

    less, same = pc.less(left, right), pc.equal(left, right)
    if not left.null_count and not right.null_count:
        return less, same
    no_left, no_right = pc.is_null(left), pc.is_null(right)
    return (
        pc.coalesce(less, pc.and_not(no_left, no_right)),
        pc.coalesce(same, pc.and_(no_left, no_right)),
    )


def _are_finite(values: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return not pa.types.is_floating(values.type) or _all(pc.is_finite(values))


def _are_chosen(column: Column, values: Any) -> bool:
    return column.choices is None or set(values.unique().to_pylist()) <= {None, *column.choices}


def _is_out_of_bounds(column: Column, values: Any) -> bool:
    """Return whether the least or the greatest value is; Python compares numbers of any type exactly."""
    if column.low is None and column.high is None:
        return False
    least, greatest = _range(values)
    return least is not None and (
        (column.low is not None and least < column.low)
        or (column.high is not None and greatest > column.high)
    )


def _exceeds(values: Any, bounds: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(values.type) and pa.types.is_boolean(bounds.type):
        return not _all(pc.or_(pc.invert(values), bounds))
    if values.type != bounds.type and not (
        pa.types.is_signed_integer(values.type) and pa.types.is_signed_integer(bounds.type)
    ):
        return True  # Arrow would round one of them
    return not _all(pc.less_equal(values, bounds))


def _range(values: Any) -> tuple[Any, Any]:
    """Return the least and the greatest value, (None, None) where there is none."""
    import pyarrow.compute as pc

    both = pc.min_max(values).as_py()
    return both["min"], both["max"]


def _all(truths: Any) -> bool:
    """Return whether no value is false; null is not."""
    import pyarrow.compute as pc

    return bool(pc.all(truths, min_count=0).as_py())
