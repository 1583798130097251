"""DER written by hand, so that any byte can be broken and no encoder is shared with the verifier."""

from collections.abc import Callable, Iterator
from datetime import datetime

NULL = b"\x05\x00"


def length(number: int) -> bytes:
    if number < 0x80:
        return bytes([number])
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(digits)]) + digits


def tlv(tag: int, *content: bytes) -> bytes:
    body = b"".join(content)
    return bytes([tag]) + length(len(body)) + body


def seq(*content: bytes) -> bytes:
    return tlv(0x30, *content)


def set_of(*content: bytes) -> bytes:
    return tlv(0x31, *sorted(content))


def explicit(number: int, *content: bytes) -> bytes:
    return tlv(0xA0 | number, *content)


def implicit(number: int, content: bytes) -> bytes:
    """Retag one value: [number] IMPLICIT, primitive or constructed as it was."""
    return bytes([0x80 | number | content[0] & 0x20]) + content[1:]


def integer(number: int) -> bytes:
    return tlv(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def boolean(value: bool) -> bytes:
    return tlv(0x01, b"\xff" if value else b"\x00")


def octets(value: bytes) -> bytes:
    return tlv(0x04, value)


def bits(value: bytes, unused: int = 0) -> bytes:
    return tlv(0x03, bytes([unused]), value)


def named_bits(*positions: int) -> bytes:
    """Encode a named bit list: no trailing zero bit."""
    if not positions:
        return bits(b"")
    size = max(positions) + 1
    whole = -(-size // 8)
    value = sum(1 << (whole * 8 - 1 - position) for position in set(positions))
    return bits(value.to_bytes(whole, "big"), whole * 8 - size)


def utf8(text: str) -> bytes:
    return tlv(0x0C, text.encode())


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    out = bytearray()
    for arc in (first * 40 + second, *rest):
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.append(arc & 0x7F | 0x80)
        out += bytes(reversed(groups))
    return tlv(0x06, bytes(out))


def utc_time(moment: datetime) -> bytes:
    return tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def generalized(text: str | bytes) -> bytes:
    return tlv(0x18, text.encode() if isinstance(text, str) else text)


def time(moment: datetime) -> bytes:
    """Encode a certificate's or CRL's time as RFC 5280 wants it: UTCTime through 2049."""
    return utc_time(moment) if moment.year < 2050 else generalized(moment.strftime("%Y%m%d%H%M%SZ"))


def body(value: bytes) -> bytes:
    """Return what stands in one TLV."""
    return value[len(header(value)) :]


def header(value: bytes) -> bytes:
    if value[1] < 0x80:
        return value[:2]
    return value[: 2 + (value[1] & 0x7F)]


def children(value: bytes) -> Iterator[bytes]:
    """Yield the values that stand in one TLV, each with its header."""
    rest = body(value)
    while rest:
        head = header(rest)
        size = head[1] if head[1] < 0x80 else int.from_bytes(head[2:], "big")
        yield rest[: len(head) + size]
        rest = rest[len(head) + size :]


def change(value: bytes, path: tuple[int, ...], edit: Callable[[bytes], bytes]) -> bytes:
    """Change the element that a path of positions leads to; every length round it follows."""
    if not path:
        return edit(value)
    parts = list(children(value))
    parts[path[0]] = change(parts[path[0]], path[1:], edit)
    return tlv(value[0], *parts)


def with_more(value: bytes, *extra: bytes) -> bytes:
    """Add to what stands in a value, and let its length count it."""
    return tlv(value[0], body(value), *extra)


def flipped(value: bytes) -> bytes:
    """Return bytes whose last bit is another."""
    return value[:-1] + bytes([value[-1] ^ 1])


# What is not DER.


def indefinite(value: bytes) -> bytes:
    """Give a constructed value an indefinite length (BER)."""
    return bytes([value[0]]) + b"\x80" + body(value) + b"\x00\x00"


def long_length(value: bytes) -> bytes:
    """Give a value a length of one byte more than it needs (BER)."""
    content = body(value)
    size = len(content).to_bytes(len(header(value)) - 1, "big")
    return bytes([value[0], 0x80 | len(size)]) + size + content


def constructed(value: bytes) -> bytes:
    """Split a string into two segments under a constructed tag (BER)."""
    content = body(value)
    half = len(content) // 2
    return tlv(value[0] | 0x20, tlv(value[0], content[:half]), tlv(value[0], content[half:]))


def nested(depth: int) -> bytes:
    """Return SEQUENCEs nested so deep, without recursion and in linear time."""
    heads = []
    size = 0
    for _ in range(depth):
        heads.append(b"\x30" + length(size))
        size += len(heads[-1])
    return b"".join(reversed(heads))
