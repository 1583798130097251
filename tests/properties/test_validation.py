"""Whole columns are judged as their rows are, one by one: the row-by-row code here is the oracle."""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.errors import DamagedError
from toolkit.registers import columns as c
from toolkit.registers.arrow import Row, arrow_schema, str_key, to_rows
from toolkit.registers.validation import check_parents, check_table

TABLE = c.Table(
    "things",
    "One row a thing.",
    (
        c.text("word", "First part of the key.", nullable=True),
        c.seed("seed", "Second part of the key.", nullable=True),
        c.moment("at", "Third part of the key."),
        c.text("choice", "Of a closed set.", choices=("a", "b"), nullable=True),
        c.exact("share", "A decimal.", low=0, high=1, at_most=("limit",), nullable=True),
        c.exact("limit", "Its bound.", nullable=True),
        c.real("real", "A double.", low=-1, high=0.1, nullable=True),
        c.bit("right", "A truth value.", at_most=("possible",), nullable=True),
        c.bit("possible", "Its bound."),
        c.short("part", "A part.", at_most=("whole",)),
        c.count("rest", "Another part.", nullable=True),
        c.count("whole", "Their sum.", high=3),
        c.bits("truths", "Truth values.", nullable=True),
        c.seeds("seeds", "Seeds."),
        c.numbers("reals", "Doubles."),
    ),
    key=("word", "seed", "at"),
    sums=(("whole", ("part", "rest")),),
)

some = st.sampled_from
TIMES = [datetime(2026, 9, day, tzinfo=UTC) for day in (1, 2)]
SHARES = [Decimal(digits) for digits in ("0.000000", "0.100000", "1.000000", "1.000001", "-0.000001")]
REALS = [0.0, 0.1, -1.0, 0.10000000000000002, float("nan"), float("inf")]
# Mostly values that are allowed, so that every kind of defect is met alone.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "word": some(["a", "b", "é", "\U0001f600", "\ue000", "", None]),
    "seed": some([0, 1, 2**63, 2**64 - 1, None]),
    "at": some(TIMES),
    "choice": some(["a", "b", "a", "b", None, "c"]),
    "share": some([*SHARES[:2]] * 4 + [None, *SHARES]),
    "limit": some([SHARES[2]] * 6 + [None, SHARES[0]]),
    "real": some(REALS[:3] * 4 + [None, *REALS]),
    "right": some([False, None, True]),
    "possible": some([True] * 6 + [False]),
    "part": some([0, 1, 1, 2, -1]),
    "rest": some([0, 1, 1, None]),
    "whole": some([1, 2, 2, 4]),
    "truths": some([[], [True], [True, False], None, [None]]),
    "seeds": some([[2**64 - 1], [], [0, 1], [0, 1], [None, 1]]),
    "reals": some([[0.0], [], [1.0, -1.0], [1.0, -1.0], [float("-inf")], [None]]),
}
GOOD = {"choice": "a", "share": SHARES[0], "limit": SHARES[2], "real": 0.0, "right": False, "possible": True}
GOOD |= {"part": 1, "rest": 1, "whole": 2, "truths": [True], "seeds": [0], "reals": [0.0]}
KEYS = [name for name in VALUES if name not in GOOD]
keys = st.fixed_dictionaries({name: VALUES[name] for name in KEYS})
spoilt = st.lists(
    some(sorted(GOOD)).flatmap(lambda name: st.tuples(st.integers(0, 5), st.just(name), VALUES[name])),
    max_size=3,
)


def in_order(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((row[name] is not None, row[name]) for name in KEYS)


def verdict(check: Callable[[], None]) -> str:
    try:
        check()
    except DamagedError as error:
        return str(error)
    return "sound"


def at(table: c.Table, row: Row) -> str:
    return f"{table.name} row " + ", ".join(f"{name}={row[name]}" for name in table.key)


def complaints(column: c.Column, row: Row) -> Iterator[tuple[str, object]]:
    value = row[column.name]
    values = value if column.type.is_list else (value,)
    if value is None:
        if not column.nullable:
            yield "is absent", "a value"
    elif None in values:
        yield "holds an absent value", "a value at every place of the list"
    elif not all(math.isfinite(v) for v in values if isinstance(v, float)):
        yield "is not finite", "finite numbers" if column.type.is_list else "a finite number"
    else:
        if column.choices is not None and value not in column.choices:
            yield "is not one of the allowed values", ", ".join(column.choices)
        if column.low is not None and value < column.low:
            yield "is too small", f"at least {column.low}"
        if column.high is not None and value > column.high:
            yield "is too large", f"at most {column.high}"
        for bound in column.at_most:
            if row[bound] is not None and value > row[bound]:
                yield "is larger than it can be", f"at most {bound} = {row[bound]}"


def one_by_one(table: c.Table, rows: list[Row]) -> None:
    """Raise what is wrong with the first row that breaks a rule."""
    keys = [[str_key(row[name]) for name in table.key] for row in rows]
    for before, key, row in zip(keys, keys[1:], rows[1:], strict=False):
        if key <= before:
            raise DamagedError(
                f"the rows of {table.name} are " + ("not unique" if key == before else "not sorted"),
                expected=f"unique and sorted by {', '.join(table.key)}",
                where=at(table, row),
            )
    for row in rows:
        for column in table.columns:
            for problem, expected in complaints(column, row):
                place, value = f"{table.name}.{column.name}", row[column.name]
                raise DamagedError(f"{place} {problem}", expected=expected, found=value, where=at(table, row))
    for total, parts in table.sums:
        for row in rows:
            values = [row[part] for part in parts]
            if row[total] is not None and None not in values and sum(values) != row[total]:
                raise DamagedError(
                    f"{' and '.join(parts)} of {table.name} do not add up to {total}",
                    expected=row[total],
                    found=" + ".join(map(str, values)),
                    where=at(table, row),
                )


def referring_one_by_one(table: c.Table, known: Mapping[tuple[Any, ...], Row], rows: list[Row]) -> None:
    (parent,) = table.parents
    for row in rows:
        reference = tuple(row[name] for name in parent.columns)
        if parent.where_present and row[parent.where_present] is None:
            continue
        if reference not in known:
            raise DamagedError(
                f"{', '.join(parent.columns)} of {table.name} refers to nothing",
                expected=f"a row of {parent.table}",
                found=", ".join(map(str, reference)),
                where=at(table, row),
            )
        for name in parent.same:
            value, other = row[name], known[reference][name]
            if value != other:
                problem = f"{table.name}.{name} contradicts {parent.table}"
                raise DamagedError(problem, expected=other, found=value, where=at(table, row))


def both(arrow: pa.Table) -> tuple[str, str]:
    return verdict(lambda: check_table(TABLE, arrow)), verdict(lambda: one_by_one(TABLE, to_rows(arrow)))


def table_of(listed: list[dict[str, Any]], cut: int = 0) -> pa.Table:
    whole = pa.Table.from_pylist(listed, schema=arrow_schema(TABLE))
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


@given(st.lists(keys, max_size=6), spoilt, st.integers(0, 6))
def test_a_table_is_judged_as_its_rows_are(listed, defects, cut) -> None:
    rows = [{**GOOD, **key} for key in sorted(listed, key=in_order)]
    for position, name, value in defects:
        if position < len(rows):
            rows[position][name] = value
    whole, single = both(table_of(rows, cut))
    assert whole == single


@given(st.lists(keys, max_size=4))
@example([{"word": "\ue000", "seed": 0, "at": TIMES[0]}, {"word": "\U0001f600", "seed": 0, "at": TIMES[0]}])
def test_keys_are_in_order_where_python_says_so(listed: list[dict[str, Any]]) -> None:
    whole, single = both(table_of([{**GOOD, **key} for key in listed]))
    assert whole == single


def test_sound_rows_are_sound() -> None:
    """The properties above would hold for a table that is never sound."""
    rows = [{**GOOD, "word": word, "seed": 2**63, "at": TIMES[0]} for word in (None, "", "a")]
    assert both(table_of(rows)) == ("sound", "sound")


# The properties above meet the rarer ones by chance alone.
SPOILT: dict[str, dict[str, Any]] = {
    "a truth beyond its bound": {"right": True, "possible": False},
    "a share beyond its bound": {"share": SHARES[1], "limit": SHARES[0]},
    "a share below zero": {"share": SHARES[4]},
    "a share above one": {"share": SHARES[3], "limit": SHARES[3]},
    "a part beyond the whole": {"part": 3, "rest": None},
    "parts that are not the whole": {"part": 0},
    "a double above its bound": {"real": REALS[3]},
    "a double that is no number": {"real": REALS[4]},
    "a choice that there is not": {"choice": "c"},
    "null where none may be": {"whole": None},
    "null in a list": {"seeds": [None]},
    "a list that is not finite": {"reals": [float("-inf")]},
    "the same key again": {"word": "a"},
    "a key that falls": {"word": None},
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_every_kind_of_defect_is_found(spoilt: dict[str, Any]) -> None:
    rows = [{**GOOD, "word": word, "seed": 0, "at": TIMES[0]} for word in ("a", "b")]
    whole, single = both(table_of([rows[0], {**rows[1], **spoilt}]))
    assert whole == single != "sound"


PARENT = c.Parent("others", ("word", "seed"), same=("choice",), where_present="real")
OTHERS = c.Table("others", "One row another.", TABLE.columns[:2] + TABLE.columns[3:4], key=("word", "seed"))
REFERRING = c.Table(
    "referring",
    "One row a reference.",
    tuple(column for column in TABLE.columns if column.name in ("word", "seed", "choice", "real")),
    key=("word",),
    parents=(PARENT,),
)
few = {"word": some(["a", "b", None]), "seed": some([0, 2**64 - 1, None]), "choice": some(["a", "b", None])}


@given(
    st.lists(st.fixed_dictionaries(few), max_size=6),
    st.lists(st.fixed_dictionaries({**few, "real": some([None, 0.0, 0.0])}), max_size=4),
    st.booleans(),
)
@example(
    others=[{"word": "a", "seed": 0, "choice": "a"}],
    listed=[{"word": "a", "seed": 0, "choice": "b", "real": 0.0}],
    here=True,
)
def test_references_are_judged(others, listed, here) -> None:
    known = {(row["word"], row["seed"]): row for row in others} if here else {}
    arrow = pa.Table.from_pylist(listed, schema=arrow_schema(REFERRING))
    tables = {"others": pa.Table.from_pylist(others, schema=arrow_schema(OTHERS))} if here else {}
    whole = verdict(lambda: check_parents(REFERRING, arrow, tables))
    assert whole == verdict(lambda: referring_one_by_one(REFERRING, known, listed))
