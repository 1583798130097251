"""The difference of two tables is what a brute-force comparison of their rows finds."""

import hashlib
import math
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.row_study import REF
from toolkit.registers.arrow import parquet_bytes, to_arrow
from toolkit.registers.diff import diff_studies
from toolkit.registers.manifest import FileEntry, Manifest, TableEntry
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study

NAME = "luck_share_summary"
TABLE = TABLES[NAME]  # two columns of its key may be null

FIXED = {
    "environment": "v3",
    "policy": "p",
    "regime": "clean",
    "condition": None,
    "arm": None,
    "seed": None,
    "interval_low": None,
    "interval_high": None,
    "variance_within": 0.0,
    "tasks": 16,
}
VALUES = ("luck_share", "variance_between", "tasks_defined", "luck_share_pooled")

Rows = dict[tuple[Any, ...], tuple[Any, ...]]

keys = st.tuples(
    st.sampled_from(["a", "b"]),
    st.integers(0, 2),
    st.sampled_from([None, "test", "None"]),
    st.sampled_from([None, "observed_reward"]),
)
values = st.tuples(
    st.sampled_from([0.0, 0.25, 1.0, math.nan]),
    st.sampled_from([0.0, 1e-300, math.inf]),
    st.integers(0, 2),
    st.sampled_from([None, 0.0, 0.5]),
)
tables = st.dictionaries(keys, values, min_size=1, max_size=12)
edits = st.dictionaries(keys, st.none() | values, max_size=6)


def study_of(folder: Path, rows: Rows, split: int) -> Study:
    """Return a study of one table, its rows in up to two files."""
    arrow = to_arrow(
        TABLE,
        [
            FIXED | dict(zip(TABLE.key, key, strict=True)) | dict(zip(VALUES, value, strict=True))
            for key, value in rows.items()
        ],
    )
    files = {}
    (folder / NAME).mkdir(parents=True)
    for part in (arrow.slice(0, split), arrow.slice(split)):
        if part.num_rows:
            name, content = f"{NAME}/{len(files)}.parquet", parquet_bytes(NAME, part)
            (folder / name).write_bytes(content)
            files[name] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), part.num_rows)
    entry = TableEntry(arrow.num_rows, row_sha256(arrow), TABLE.column_names, tuple(files))
    return Study(folder, Manifest("s", "rows", SCHEMA_VERSION, "0", REF, {}, {NAME: entry}, files))


def plain(values: tuple[Any, ...]) -> list[str]:
    """Return values so that NaN is equal to itself."""
    return [repr(value) for value in values]


def order(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Order keys as SQL does: null comes last."""
    return [(part is None, part or 0) for part in key]


@given(tables, edits, st.integers(0, 4), st.integers(0, 4))
def test_added_removed_and_changed_rows_are_those_that_brute_force_finds(
    first: Rows, edited: dict[tuple[Any, ...], tuple[Any, ...] | None], split: int, other_split: int
) -> None:
    second = {key: value for key, value in {**first, **edited}.items() if value is not None}
    if not second:
        return
    with tempfile.TemporaryDirectory() as scratch:
        a = study_of(Path(scratch) / "a", first, split)
        b = study_of(Path(scratch) / "b", second, other_split)
        found = diff_studies(a, b, examples=100)
    added = sorted(second.keys() - first.keys(), key=order)
    removed = sorted(first.keys() - second.keys(), key=order)
    changed = sorted(
        (key for key in first.keys() & second.keys() if plain(first[key]) != plain(second[key])), key=order
    )
    differing = {
        name: count
        for at, name in enumerate(VALUES)
        if (count := sum(repr(first[key][at]) != repr(second[key][at]) for key in changed))
    }
    if not (added or removed or changed):
        assert found.is_empty
        assert found.same_tables == (NAME,)
        return
    (table,) = found.tables
    assert table.rows == (len(first), len(second))
    assert (table.added, table.removed, table.changed) == (len(added), len(removed), len(changed))
    assert table.columns == differing
    assert [tuple(key.values()) for key in table.added_examples] == added
    assert [tuple(key.values()) for key in table.removed_examples] == removed
    assert [tuple(row.key.values()) for row in table.changed_examples] == changed
    for row in table.changed_examples:
        key = tuple(row.key.values())
        expected = {
            name: (repr(mine), repr(theirs))
            for name, mine, theirs in zip(VALUES, first[key], second[key], strict=True)
            if repr(mine) != repr(theirs)
        }
        assert {name: (repr(m), repr(t)) for name, (m, t) in row.values.items()} == expected
