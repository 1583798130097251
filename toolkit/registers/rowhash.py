"""A hash of rows that does not depend on how Parquet encoded them.

For every column in schema order the hash takes its name, its type, the number of rows, one validity byte
a row, and the values that are there: fixed-width values little-endian, strings as their 64-bit lengths
followed by their UTF-8 bytes, lists as their 64-bit lengths followed by their elements, one list after the
other, in the form of their own type. Decimals count as the strings that print them. A list's type is
`list<…>` with the type of its elements; null elements have no form. Lengths, also those of names and types,
are 64-bit little-endian.
"""

import hashlib
import struct
from collections.abc import Iterator
from typing import Any

from toolkit.errors import DamagedError


def row_sha256(table: Any) -> str:
    """Return the logical SHA-256 of an Arrow table's rows, in their order."""
    digest = hashlib.sha256(b"rows/v1\0")
    for name in table.schema.names:
        chunks = _plain(table.column(name))
        for text in (name, _kind(chunks[0].type)):
            digest.update(struct.pack("<q", len(text.encode())) + text.encode())
        digest.update(struct.pack("<q", sum(map(len, chunks))))
        for chunk in chunks:
            digest.update(bytes_of(chunk.is_valid()))
        for part in _values([chunk.drop_null() for chunk in chunks]):
            digest.update(part)
    return digest.hexdigest()


def _plain(column: Any) -> list[Any]:
    """Return the arrays of a column, at least one, without dictionaries."""
    import pyarrow as pa

    chunks = column.chunks or [pa.nulls(0, column.type)]
    return [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_kind(kind.value_type)}>"
    return "string" if pa.types.is_large_string(kind) else str(kind)


def _values(chunks: list[Any]) -> Iterator[Any]:
    """Yield the canonical bytes of arrays of one type without nulls, as if they were one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = chunks[0].type
    if pa.types.is_decimal(kind):
        chunks = [chunk.cast(pa.string()) for chunk in chunks]
        kind = pa.string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from (bytes_of(pc.binary_length(chunk).cast(pa.int64())) for chunk in chunks)
        yield from map(_characters, chunks)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from (bytes_of(pc.list_value_length(chunk).cast(pa.int64())) for chunk in chunks)
        yield from _values([_elements(chunk) for chunk in chunks])
    elif pa.types.is_timestamp(kind):
        yield from (bytes_of(chunk.cast(pa.int64())) for chunk in chunks)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        yield from map(bytes_of, chunks)
    else:
        raise DamagedError("a column type has no canonical form", found=kind)


def _elements(array: Any) -> Any:
    """Return the elements of an array of lists, one list after the other."""
    elements = array.flatten()
    if elements.null_count:
        raise DamagedError("an element of a list is null", expected="lists of values", found=array.type)
    return elements


def _characters(array: Any) -> Any:
    """Return the UTF-8 bytes of an array of strings without nulls: they lie together in its buffer."""
    import pyarrow as pa

    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return b""
    code, width = ("<q", 8) if pa.types.is_large_string(array.type) else ("<i", 4)
    (start,) = struct.unpack_from(code, offsets, array.offset * width)
    (end,) = struct.unpack_from(code, offsets, (array.offset + len(array)) * width)
    return memoryview(data)[start:end]


def bytes_of(array: Any) -> Any:
    """Return the little-endian values of a fixed-width array without nulls; one byte a Boolean."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return b""
    start = array.offset * width
    return memoryview(buffer)[start : start + len(array) * width]
