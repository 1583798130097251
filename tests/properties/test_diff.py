"""The difference of two tables is what a brute-force comparison of their rows finds."""

import hashlib
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.row_study import REF
from toolkit.registers.arrow import parquet_bytes, row_sha256, to_arrow
from toolkit.registers.diff import diff_studies
from toolkit.registers.manifest import FileEntry, Manifest, TableEntry
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
    names = (*TABLE.key, *VALUES)
    listed = [FIXED | dict(zip(names, (*key, *value), strict=True)) for key, value in rows.items()]
    arrow = to_arrow(TABLE, listed)
    files = {}
    (folder / NAME).mkdir(parents=True)
    for part in (arrow.slice(0, split), arrow.slice(split)):
        if part.num_rows:
            name, content = f"{NAME}/{len(files)}.parquet", parquet_bytes(NAME, part)
            (folder / name).write_bytes(content)
            files[name] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), part.num_rows)
    entry = TableEntry(arrow.num_rows, row_sha256(arrow), TABLE.column_names, tuple(files))
    return Study(folder, Manifest("s", "tasks", SCHEMA_VERSION, "0", REF, {}, {NAME: entry}, files))


def order(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Order keys as SQL does: null comes last."""
    return [(part is None, part or 0) for part in key]


def differing(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> dict[str, tuple[str, str]]:
    """Return two rows' values where they differ, in words: NaN is equal to itself."""
    pairs = zip(VALUES, map(repr, mine), map(repr, theirs), strict=True)
    return {name: (one, other) for name, one, other in pairs if one != other}


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
        diff = diff_studies(a, b, examples=100)
    added = sorted(second.keys() - first.keys(), key=order)
    removed = sorted(first.keys() - second.keys(), key=order)
    common = sorted(first.keys() & second.keys(), key=order)
    changed = {key: by for key in common if (by := differing(first[key], second[key]))}
    if not (added or removed or changed):
        assert not diff.differs
        assert diff.same_tables == (NAME,)
        return
    (table,) = diff.tables
    assert table.rows == (len(first), len(second))
    assert (table.added, table.removed, table.changed) == (len(added), len(removed), len(changed))
    assert table.columns == dict(Counter(name for by in changed.values() for name in by))
    assert [tuple(key.values()) for key in table.added_examples] == added
    assert [tuple(key.values()) for key in table.removed_examples] == removed
    shown = {tuple(row.key.values()): row.values for row in table.changed_examples}
    assert list(shown) == list(changed)
    assert {
        key: {name: tuple(map(repr, two)) for name, two in by.items()} for key, by in shown.items()
    } == changed
