"""Rows: their hash and their shape in Arrow, and what contradicts itself or another register."""

import hashlib
import io
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import row_study
from tests.row_study import with_column
from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema, check_columns, row_sha256, shape, to_arrow, to_rows
from toolkit.registers.columns import Table, bits, numbers, seed, seeds, text
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study
from toolkit.registers.validation import NEAR, check_rows, check_table, compare

DEFECTS = [
    ("evaluations", {"successes": -1}, "too small"),
    ("evaluations", {"successes": 65}, "larger than it can be"),
    ("evaluations", {"observed_successes": 64, "successes": 1}, "larger than it can be"),
    ("evaluations", {"episodes": 0, "successes": 0, "observed_successes": 0}, "too small"),
    ("evaluations", {"regime": "stormy"}, "not one of the allowed values"),
    ("evaluations", {"run_id": "AAA-unknown"}, "refers to nothing"),
    ("evaluations", {"seed": 7}, "contradicts runs"),
    ("evaluations", {"arm": "independent"}, "contradicts runs"),
    ("evaluations", {"observed_successes": 1}, "do not add up to successes"),
    ("training_steps", {"observed_successes": 192}, "larger than it can be"),
    ("training_steps", {"run_id": "AAA-unknown", "condition": "C2"}, "refers to nothing"),
    ("attempts", {"attempt": 0}, "too small"),
    ("groups_summary", {"several_seeds": 1, "sharing_one_seed": 1}, "do not add up to groups"),
    ("luck_share_summary", {"interval_low": Decimal(5)}, "too large|larger than it can be"),
    ("luck_share_summary", {"run_id": "AAA-ghost", "condition": "C2"}, "refers to nothing"),
    ("intervals", {"low": Decimal("0.05")}, "larger than it can be"),
    ("intervals", {"high": Decimal("-0.5")}, "larger than it can be"),
    ("intervals", {"decimals": 0}, "too small"),
    ("probe", {"trajectory": "AA"}, "refers to nothing"),
]


@pytest.mark.parametrize(("table", "defect", "problem"), DEFECTS)
def test_figures_that_contradict_each_other_are_refused_with_their_place(
    published, table, defect, problem
) -> None:
    rows = {name: published.rows(name) for name in {table, "runs", "probe_checkpoints"}}
    rows[table][0].update(defect)
    with pytest.raises(DamagedError, match=problem) as caught:
        check_rows({name: to_arrow(TABLES[name], values) for name, values in rows.items()})
    assert str(caught.value.where).startswith(f"{table} row ")


def test_a_row_with_other_columns_is_refused(published: Study) -> None:
    rows = published.rows("runs")
    del rows[0]["status"]
    with pytest.raises(DamagedError, match="does not have the schema's columns"):
        to_arrow(TABLES["runs"], rows)


def test_a_time_outside_the_calendar_is_refused(published: Study) -> None:
    table = published.arrow("events")
    ticks = table["occurred_at"].cast(pa.int64()).to_pylist()
    late = pa.array([*ticks[:-1], 2**62], pa.int64()).cast(table.schema.field("occurred_at").type)
    with pytest.raises(DamagedError, match="a time lies outside the calendar"):
        check_table(TABLES["events"], row_study.with_column(table, "occurred_at", late))


KEY = {"pool": "test", "task": 2, "schedule": 0}
ROW = KEY | {"schedule_seed": 7}


@pytest.mark.parametrize(
    ("derived", "stored"),
    [
        ([], []),
        ([ROW], [ROW]),
        ([ROW], [ROW | {"beside": 1}]),
        ([ROW | {"beside": 1}], [ROW]),
        ([ROW, ROW | {"task": 1}], [ROW | {"task": 1}, ROW]),
    ],
    ids=["nothing", "the same", "more stored", "more derived", "another order"],
)
def test_rows_that_agree_in_what_both_say_pass(derived: list[Any], stored: list[Any]) -> None:
    compare("schedules", derived, stored)


@pytest.mark.parametrize(
    ("derived", "stored", "problem"),
    [
        ([ROW], [], "lacks a row that follows from"),
        ([], [ROW], "has a row that does not follow from"),
        ([ROW], [ROW | {"schedule_seed": 8}], "schedules.schedule_seed is not what follows"),
        ([ROW], [ROW | {"schedule_seed": None}], "schedules.schedule_seed is not what follows"),
        ([ROW | {"schedule_seed": None}], [ROW], "schedules.schedule_seed is not what follows"),
    ],
)
def test_a_row_that_differs_is_named(derived: list[Any], stored: list[Any], problem: str) -> None:
    with pytest.raises(DamagedError, match=problem) as caught:
        compare("schedules", derived, stored)
    assert caught.value.where == "schedules row pool=test, task=2, schedule=0"


def test_the_first_row_by_its_key_is_named() -> None:
    derived = [ROW | {"task": task} for task in (10, 2, 1)]
    stored = [row | {"schedule_seed": row["task"]} for row in derived]
    with pytest.raises(DamagedError) as caught:
        compare("schedules", derived, stored)
    assert "task=1, " in str(caught.value.where)
    assert (caught.value.expected, caught.value.found) == ("7", "1")


def test_the_tables_that_a_row_follows_from_are_named() -> None:
    row = {"run_id": "r", "groups": 1}
    with pytest.raises(DamagedError, match=r"groups_summary\.groups is not what follows from groups"):
        compare("groups_summary", [row], [row | {"groups": 2}])


@pytest.mark.parametrize(
    ("value", "off", "agrees"),
    [(0.5, 0.4 * NEAR, True), (0.5, 4 * NEAR, False), (0.0, 1e-19, True), (0.0, 1e-12, False)],
)
def test_doubles_agree_but_for_their_last_digits(value: float, off: float, agrees: bool) -> None:
    row = {"run_id": "r", "groups": 1, "mean_max_abs_advantage": value}
    other = row | {"mean_max_abs_advantage": value + off}
    if agrees:
        compare("groups_summary", [row], [other])
    else:
        with pytest.raises(DamagedError, match="mean_max_abs_advantage"):
            compare("groups_summary", [row], [other])


LISTS = Table(
    "lists",
    "One row a list of each type.",
    (
        text("name", "Name."),
        seed("one", "A seed."),
        bits("truths", "Truth values.", nullable=True),
        seeds("many", "Seeds."),
        numbers("reals", "Doubles."),
    ),
    key=("name",),
)
ROWS: list[dict[str, Any]] = [
    {"name": "a", "one": 2**64 - 1, "truths": [True, False], "many": [0, 2**64 - 1], "reals": [0.1, -0.0]},
    {"name": "b", "one": 0, "truths": None, "many": [], "reals": [1e300]},
]


def through_parquet(table: pa.Table, **options: Any) -> pa.Table:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pq.ParquetFile(sink).read()


def with_elements_that_cannot_be_null(table: pa.Table) -> pa.Table:
    fields = [
        pa.field(f.name, pa.list_(pa.field("element", f.type.value_type, nullable=False)), f.nullable)
        if pa.types.is_list(f.type)
        else f
        for f in table.schema
    ]
    return through_parquet(table.cast(pa.schema(fields)), store_schema=False)


as_written_here = partial(through_parquet, store_schema=False)
with_elements_of_another_name = partial(as_written_here, use_compliant_nested_type=False)
WRITERS = [
    *(as_written_here, through_parquet),  # the other writes Arrow's own schema, too
    *(with_elements_of_another_name, with_elements_that_cannot_be_null),
]


def test_lists_and_seeds_come_back_as_they_were() -> None:
    assert to_rows(to_arrow(LISTS, ROWS)) == ROWS


def test_a_file_of_this_project_has_exactly_the_schema() -> None:
    assert as_written_here(to_arrow(LISTS, ROWS)).schema.equals(arrow_schema(LISTS))


@pytest.mark.parametrize("written", WRITERS)
def test_what_a_writer_calls_an_element_is_no_other_type(written: Callable[[pa.Table], pa.Table]) -> None:
    table = written(to_arrow(LISTS, ROWS))
    check_columns(LISTS, table.schema, "here")
    assert shape(LISTS, table).equals(to_arrow(LISTS, ROWS))


def test_some_columns_can_be_shaped() -> None:
    part = with_elements_of_another_name(to_arrow(LISTS, ROWS)).select(["reals", "name"])
    assert shape(LISTS, part).equals(to_arrow(LISTS, ROWS).select(["reals", "name"]))


OTHER_TYPES = {
    "one": pa.array([1, 2], pa.int64()),
    "truths": pa.array([[1], [0]], pa.list_(pa.uint8())),
    "many": pa.array([[1], []], pa.list_(pa.int64())),
    "reals": pa.array([[0.5], []], pa.list_(pa.float32())),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_elements_of_another_type_are_refused(name: str) -> None:
    other = with_column(to_arrow(LISTS, ROWS), name, OTHER_TYPES[name])
    with pytest.raises(DamagedError, match=f"column '{name}' of lists has another type"):
        check_columns(LISTS, other.schema, "here")


@pytest.mark.parametrize(
    ("name", "value"), [("one", -1), ("one", 2**64), ("many", [-1]), ("reals", ["x"]), ("truths", [2])]
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(DamagedError, match="a value of lists has the wrong type"):
        to_arrow(LISTS, [{**ROWS[0], name: value}])


def test_rows_are_sorted_by_their_key_null_first() -> None:
    table = Table("names", "One row a name.", (text("name", "Name.", nullable=True),), key=("name",))
    names = to_arrow(table, [{"name": "b"}, {"name": None}, {"name": "a"}])["name"].to_pylist()
    assert names == [None, "a", "b"]


PACK = {"int16": "<h", "int32": "<i", "int64": "<q", "uint64": "<Q", "double": "<d", "bool": "<?"}


def by_definition(columns: dict[str, tuple[str, list[Any]]]) -> str:
    """Hash columns value by value, with struct only, as the module's docstring defines it."""
    out = bytearray(b"rows/v1\0")
    for name, (kind, values) in columns.items():
        for word in (name, kind):
            out += struct.pack("<q", len(word.encode())) + word.encode()
        out += struct.pack("<q", len(values))
        out += bytes(value is not None for value in values)
        there = [value for value in values if value is not None]
        if kind.startswith("list<"):
            kind = kind.removeprefix("list<").removesuffix(">")  # noqa: PLW2901 - as the elements go on
            out += b"".join(struct.pack("<q", len(value)) for value in there)
            there = [element for value in there for element in value]
        if kind.startswith("timestamp"):
            epoch = datetime(1970, 1, 1, tzinfo=UTC)
            for value in there:
                out += struct.pack("<q", round((value - epoch).total_seconds() * 1_000_000))
        elif kind in PACK:
            out += b"".join(struct.pack(PACK[kind], value) for value in there)
        else:
            texts = [str(value).encode() for value in there]
            out += b"".join(struct.pack("<q", len(text)) for text in texts) + b"".join(texts)
    return hashlib.sha256(bytes(out)).hexdigest()


MOMENT = datetime(2026, 9, 8, 12, 33, 49, tzinfo=UTC)
DECIMALS = [Decimal(digits) for digits in ("0.950000", "-0.003900", "12.000000")]
SEEDS = pa.list_(pa.field("element", pa.uint64(), nullable=False))
# Column → its type as the hash names it, its Arrow type, its values.
COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "word": ("string", pa.string(), ["a", None, "Ω·é", ""]),
    "flag": ("bool", pa.bool_(), [True, None, False, True]),
    "small": ("int16", pa.int16(), [1, -2, None, 3]),
    "count": ("int32", pa.int32(), [0, 2**31 - 1, None, -5]),
    "large": ("int64", pa.int64(), [2**62, None, -1, 0]),
    "seed": ("uint64", pa.uint64(), [2**64 - 1, None, 2**63, 0]),
    "real": ("double", pa.float64(), [0.1, None, -1.5, 1e300]),
    "exact": ("decimal128(9, 6)", pa.decimal128(9, 6), [DECIMALS[0], None, *DECIMALS[1:]]),
    "at": ("timestamp[us, tz=UTC]", pa.timestamp("us", tz="UTC"), [MOMENT, None, MOMENT, None]),
    "truths": ("list<bool>", pa.list_(pa.bool_()), [[True, False], None, [], [True]]),
    "seeds": ("list<uint64>", SEEDS, [[2**64 - 1], None, [1, 2, 3], []]),
    "reals": ("list<double>", pa.large_list(pa.float64()), [[], [0.1, -0.0], None, [1e-300]]),
    "words": ("list<string>", pa.list_(pa.string()), [["a", ""], None, ["Ω"], []]),
}
FIRST = {
    "evaluations": "2ef7f1eafb660e8ac513eec9871255f850b3f126d88990ba2bec522c1368ac03",
    "events": "8c1c97c9382b5cfd6e37851c7caa0c14251aa67bc84dde8e218206ec31460a18",
    "intervals": "207bfb6ad91b9ac0f7ae1cdbae3defdef0bfb2c0a1d58bbe392a078b1238772b",
}


def table() -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (_, kind, values) in COLUMNS.items()})


def test_the_hash_is_the_one_defined() -> None:
    assert row_sha256(table()) == by_definition(
        {name: (kind, values) for name, (kind, _, values) in COLUMNS.items()}
    )


def test_chunks_slices_and_dictionaries_do_not_matter() -> None:
    whole = table()
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 3)])
    padded = pa.concat_tables([whole, whole]).slice(2, 4)
    rolled = pa.concat_tables([whole.slice(2, 2), whole.slice(0, 2)])
    encoded = with_column(whole, "word", whole["word"].dictionary_encode())
    assert row_sha256(chunked) == row_sha256(encoded) == row_sha256(whole)
    assert row_sha256(padded) == row_sha256(rolled) != row_sha256(whole)


def test_an_empty_table_has_a_hash() -> None:
    assert row_sha256(table().slice(0, 0)) == by_definition({n: (k, []) for n, (k, _, _) in COLUMNS.items()})


@pytest.mark.parametrize("name", COLUMNS)
def test_null_is_not_zero(name: str) -> None:
    kind, _, given = COLUMNS[name]
    zero = {"string": "", "bool": False}.get(kind, Decimal(0) if name == "exact" else 0)
    values = [([] if kind.startswith("list<") else zero) if value is None else value for value in given]
    assert row_sha256(with_column(table(), name, values)) != row_sha256(table())


@pytest.mark.parametrize(
    ("left", "right"),
    [(["ab", "c"], ["a", "bc"]), ([[1, 2], [3]], [[1], [2, 3]]), ([None, [1]], [[], [1]])],
    ids=["text between rows", "elements between lists", "null and an empty list"],
)
def test_what_rows_hold_cannot_move_or_be_mistaken(left: list[Any], right: list[Any]) -> None:
    assert row_sha256(pa.table({"w": left})) != row_sha256(pa.table({"w": right}))


def test_what_lies_under_a_null_list_is_no_row() -> None:
    hidden = pa.ListArray.from_arrays([0, 1, 3], [7, 8, 9], mask=pa.array([True, False]))
    plain = pa.array([None, [8, 9]], pa.list_(pa.int64()))
    assert row_sha256(pa.table({"w": hidden})) == row_sha256(pa.table({"w": plain}))


@pytest.mark.parametrize("value", [[None], [0.5, None]])
def test_a_null_element_has_no_canonical_form(value: list[float | None]) -> None:
    table = pa.table({"w": pa.array([[1.0], value], pa.list_(pa.float64()))})
    with pytest.raises(DamagedError, match="an element of a list is null"):
        row_sha256(table)


def test_a_type_without_canonical_form_is_refused() -> None:
    with pytest.raises(DamagedError, match="no canonical form"):
        row_sha256(pa.table({"w": [{"a": 1}]}))


def test_the_shipped_hashes_are_those_of_the_first_definition(published: Study) -> None:
    """Taken from the manifest that was written before lists had a form."""
    assert {name: published.sha256(name) for name in FIRST} == FIRST


def test_a_slice_and_a_large_text_hash_as_the_rows_that_they_hold() -> None:
    whole = pa.table({"n": [7, 8, 9], "word": pa.array(["a", "b", "c"], pa.large_string())})
    assert row_sha256(whole.slice(1)) == row_sha256(pa.table({"n": [8, 9], "word": ["b", "c"]}))
