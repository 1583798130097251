"""A hash of rows that does not depend on how Parquet encoded them.

For every column in schema order the hash takes its name, its type, the number of rows, one validity byte
a row, and the values that are there: fixed-width values little-endian, strings as their 64-bit lengths
followed by their UTF-8 bytes. Decimals count as the strings that print them. Lengths, also those of names
and types, are 64-bit little-endian.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from toolkit.errors import DamagedError


def row_sha256(table: Any) -> str:
    """Return the logical SHA-256 of an Arrow table's rows, in their order.

    Args:
        table: a `pyarrow.Table`.

    Raises:
        DamagedError: a column type has no canonical form.
    """
    import pyarrow as pa

    digest = hashlib.sha256(b"rows/v1\0")
    for field in table.schema:
        array = table.column(field.name).combine_chunks()
        if pa.types.is_dictionary(field.type):
            array = array.dictionary_decode()
        kind = "string" if pa.types.is_large_string(array.type) else str(array.type)
        for name in (field.name, kind):
            digest.update(struct.pack("<q", len(name.encode())) + name.encode())
        digest.update(struct.pack("<q", len(array)))
        digest.update(bytes_of(array.is_valid()))
        digest.update(_values(array))
    return digest.hexdigest()


def _values(array: Any) -> bytes:
    import pyarrow as pa

    array = array.drop_null()
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = [text.encode() for text in array.to_pylist()]
        return struct.pack(f"<{len(texts)}q", *map(len, texts)) + b"".join(texts)
    if pa.types.is_timestamp(kind):
        return bytes_of(array.cast(pa.int64()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return bytes_of(array)
    raise DamagedError("a column type has no canonical form", found=kind)


def bytes_of(array: Any) -> bytes:
    """Return the little-endian values of a fixed-width array without nulls; one byte a Boolean."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None:
        return b""
    start = array.offset * width
    return bytes(buffer[start : start + len(array) * width])
