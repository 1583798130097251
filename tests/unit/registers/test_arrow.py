"""Rows to Arrow and back, and whether an Arrow table is the schema's."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.row_study import with_column
from toolkit.errors import DamagedError
from toolkit.registers.arrow import arrow_schema, check_columns, shape, to_arrow, to_rows
from toolkit.registers.columns import Table, bits, numbers, seed, seeds, text

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
