"""The logical row hash against an independent implementation of its definition."""

from __future__ import annotations

import hashlib
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from toolkit.registers.rowhash import row_sha256

PACK = {"int16": "<h", "int32": "<i", "int64": "<q", "double": "<d"}


def by_definition(columns: dict[str, tuple[str, list[Any]]]) -> str:
    """Hash columns value by value, with struct only, as the module's docstring defines it."""
    out = bytearray(b"rows/v1\0")
    for name, (kind, values) in columns.items():
        for text in (name, kind):
            out += struct.pack("<q", len(text.encode())) + text.encode()
        out += struct.pack("<q", len(values))
        out += bytes(value is not None for value in values)
        there = [value for value in values if value is not None]
        if kind == "bool":
            out += bytes(there)
        elif kind.startswith("timestamp"):
            epoch = datetime(1970, 1, 1, tzinfo=UTC)
            for value in there:
                out += struct.pack("<q", round((value - epoch).total_seconds() * 1_000_000))
        elif kind in PACK:
            out += b"".join(struct.pack(PACK[kind], value) for value in there)
        else:
            texts = [str(value).encode() for value in there]
            out += b"".join(struct.pack("<q", len(text)) for text in texts) + b"".join(texts)
    return hashlib.sha256(bytes(out)).hexdigest()


COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "word": ("string", ["a", None, "Ω·é", ""]),
    "flag": ("bool", [True, None, False, True]),
    "small": ("int16", [1, -2, None, 3]),
    "count": ("int32", [0, 2**31 - 1, None, -5]),
    "large": ("int64", [2**62, None, -1, 0]),
    "real": ("double", [0.1, None, -1.5, 1e300]),
    "exact": ("decimal128(9, 6)", [Decimal("0.950000"), None, Decimal("-0.003900"), Decimal("12.000000")]),
    "at": ("timestamp[us, tz=UTC]", [datetime(2026, 9, 8, 12, 33, 49, tzinfo=UTC), None] * 2),
}
TYPES = {
    "word": pa.string(),
    "flag": pa.bool_(),
    "small": pa.int16(),
    "count": pa.int32(),
    "large": pa.int64(),
    "real": pa.float64(),
    "exact": pa.decimal128(9, 6),
    "at": pa.timestamp("us", tz="UTC"),
}


def table() -> pa.Table:
    return pa.table({name: pa.array(values, TYPES[name]) for name, (_, values) in COLUMNS.items()})


def test_the_hash_is_the_one_defined() -> None:
    assert row_sha256(table()) == by_definition(COLUMNS)


def test_chunks_slices_and_dictionaries_do_not_matter() -> None:
    whole = table()
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 3)])
    padded = pa.concat_tables([whole, whole]).slice(2, 4)
    rolled = pa.concat_tables([whole.slice(2, 2), whole.slice(0, 2)])
    encoded = whole.set_column(0, "word", whole["word"].dictionary_encode())
    assert row_sha256(chunked) == row_sha256(encoded) == row_sha256(whole)
    assert row_sha256(padded) == row_sha256(rolled) != row_sha256(whole)


def test_an_empty_table_has_a_hash() -> None:
    assert row_sha256(table().slice(0, 0)) == by_definition({n: (k, []) for n, (k, _) in COLUMNS.items()})


@pytest.mark.parametrize("name", COLUMNS)
def test_null_is_not_zero(name: str) -> None:
    zero = {"string": "", "bool": False, "exact": Decimal(0)}.get(COLUMNS[name][0], 0)
    values = list(COLUMNS[name][1])
    values[values.index(None)] = Decimal(0) if name == "exact" else zero
    filled = table().set_column(list(COLUMNS).index(name), name, pa.array(values, TYPES[name]))
    assert row_sha256(filled) != row_sha256(table())


def test_text_cannot_move_between_rows() -> None:
    left = pa.table({"w": ["ab", "c"]})
    right = pa.table({"w": ["a", "bc"]})
    assert row_sha256(left) != row_sha256(right)
