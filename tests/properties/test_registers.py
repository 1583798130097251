"""What must hold for every table: the row hash sees rows and nothing else."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from toolkit.registers.rowhash import row_sha256

SCHEMA = pa.schema(
    [("word", pa.string()), ("count", pa.int32()), ("real", pa.float64()), ("flag", pa.bool_())]
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "word": st.none() | st.text(max_size=6),
            "count": st.none() | st.integers(-(2**31), 2**31 - 1),
            "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flag": st.none() | st.booleans(),
        }
    ),
    max_size=12,
)


def table(listed: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(listed, schema=SCHEMA)


@given(rows, st.sampled_from(["zstd", "snappy", "none"]), st.integers(1, 5), st.booleans())
def test_the_encoding_of_a_parquet_file_does_not_matter(
    listed: list[dict[str, Any]], compression: str, group: int, dictionary: bool
) -> None:
    sink = io.BytesIO()
    pq.write_table(
        table(listed), sink, compression=compression, row_group_size=group, use_dictionary=dictionary
    )
    assert row_sha256(pq.ParquetFile(sink).read()) == row_sha256(table(listed))


@given(rows, rows)
def test_different_rows_have_different_hashes(
    left: list[dict[str, Any]], right: list[dict[str, Any]]
) -> None:
    # By column: the order in which a row names its columns means nothing.
    one, other = ([[repr(row[name]) for name in SCHEMA.names] for row in listed] for listed in (left, right))
    same = one == other
    assert (row_sha256(table(left)) == row_sha256(table(right))) == same


@given(rows, st.integers(0, 12))
def test_the_cut_between_chunks_does_not_matter(listed: list[dict[str, Any]], cut: int) -> None:
    whole = table(listed)
    assert row_sha256(pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])) == row_sha256(whole)
