"""What must hold for every table: the row hash sees rows and nothing else."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.registers.test_validation import by_definition
from toolkit.registers.arrow import row_sha256

SCHEMA = pa.schema(
    [("word", pa.string()), ("count", pa.int32()), ("real", pa.float64()), ("flag", pa.bool_())]
)
VALUES = {
    "word": st.none() | st.text(max_size=6),
    "count": st.none() | st.integers(-(2**31), 2**31 - 1),
    "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.none() | st.booleans(),
}
rows = st.lists(st.fixed_dictionaries(VALUES), max_size=12)


def table(listed: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(listed, schema=SCHEMA)


@given(rows, st.sampled_from(["zstd", "snappy", "none"]), st.integers(1, 5), st.booleans())
def test_the_encoding_of_a_parquet_file_does_not_matter(listed, compression, group, dictionary) -> None:
    sink = io.BytesIO()
    pq.write_table(
        table(listed), sink, compression=compression, row_group_size=group, use_dictionary=dictionary
    )
    assert row_sha256(pq.ParquetFile(sink).read()) == row_sha256(table(listed))


@given(rows, rows)
def test_other_rows_have_other_hashes(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    # By column: the order in which a row names its columns means nothing.
    mine, other = (
        [[repr(row[name]) for name in SCHEMA.names] for row in rows_of_one] for rows_of_one in (left, right)
    )
    same = mine == other
    assert (row_sha256(table(left)) == row_sha256(table(right))) == same


@given(rows, st.integers(0, 12))
def test_the_cut_between_chunks_does_not_matter(listed: list[dict[str, Any]], cut: int) -> None:
    whole = table(listed)
    assert row_sha256(pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])) == row_sha256(whole)


words = st.lists(st.none() | st.text(max_size=5), max_size=10)


Texts = list[str | None]


def hidden(texts: Texts) -> pa.Array:
    """Nulls with text under them, as a mask leaves it."""
    full = pa.array(["hidden" if text is None else text for text in texts], pa.string())
    there = pa.array([text is not None for text in texts], pa.bool_())
    _, offsets, content = full.buffers()
    return pa.StringArray.from_buffers(len(full), offsets, content, there.buffers()[1])


# One column, as it may lie in memory: a window's buffers hold more than its rows.
FORMS: list[Callable[[Texts], list[pa.Array]]] = [
    lambda texts: [pa.array(texts, pa.string())],
    lambda texts: [pa.array(texts, pa.large_string())],
    lambda texts: [pa.array(["before", None, *texts, "after"], pa.string()).slice(2, len(texts))],
    lambda texts: [pa.array(texts, pa.string()).dictionary_encode()],
    lambda texts: [pa.array([text], pa.string()) for text in texts] or [pa.array([], pa.string())],
    lambda texts: [hidden(texts)],
]


@given(words, st.sampled_from(FORMS))
def test_strings_are_hashed_as_defined(texts: Texts, form: Callable[[Texts], list[pa.Array]]) -> None:
    assert row_sha256(pa.table({"w": pa.chunked_array(form(texts))})) == by_definition(
        {"w": ("string", texts)}
    )


lists = st.lists(st.none() | st.lists(st.integers(0, 2**64 - 1), max_size=4), max_size=8)


@given(lists, st.integers(0, 8))
def test_lists_are_hashed_as_defined_wherever_cut(values: list[list[int] | None], cut: int) -> None:
    kind = pa.list_(pa.uint64())
    whole = pa.array([[1], None, *values, [2, 3]], kind)
    cut = min(cut, len(values))
    column = pa.chunked_array([whole.slice(2, cut), whole.slice(2 + cut, len(values) - cut)], kind)
    assert row_sha256(pa.table({"w": column})) == by_definition({"w": ("list<uint64>", values)})
