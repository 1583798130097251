"""Strict DER (ITU-T X.690, sections 8.1.3, 10, 11), and its elements by name with the bytes they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .verdict import Refused

OCTETS, NULL, OID, SEQUENCE, SET = 0x04, 0x05, 0x06, 0x30, 0x31
ANY = -1

_TAGS = {"BOOLEAN": 0x01, "INTEGER": 0x02, "BITS": 0x03, "OCTETS": 0x04, "OID": 0x06, "TIME": 0x18}
_TAGS |= {"SEQUENCE": 0x30, "SET": 0x31, "ANY": ANY}

Shape = tuple[tuple[str, int], ...]
"""The fields of a SEQUENCE in order, each with its tag; a name that ends in `?` may be absent."""


def shape(text: str) -> Shape:
    """Return a shape that is written as `name TYPE, name? TYPE`; `[1]` is constructed, `[1]p` primitive."""
    fields = (field.split() for field in text.split(", "))
    return tuple((name, _TAGS[tag] if tag in _TAGS else _context(tag)) for name, tag in fields)


def _context(tag: str) -> int:
    return (0x80 if tag.endswith("p") else 0xA0) | int(tag.strip("[]p"))


ALGORITHM = shape("algorithm OID, parameters? ANY")
ISSUER_AND_SERIAL = shape("issuer SEQUENCE, serial INTEGER")

MAX_BYTES = 1 << 20
MAX_DEPTH = 40
# Ten times what tokens have; a megabyte of empty elements would otherwise keep us busy.
MAX_ELEMENTS = 10_000

_CONSTRUCTED = 0x20
_LONG_TAG = 0x1F
_LONG_LENGTH = 0x80
_MAX_LENGTH_BYTES = 4
_ALL_ONES = 0xFF
# EXTERNAL, EMBEDDED PDV, SEQUENCE and SET are constructed, every other universal type is primitive.
_CONSTRUCTED_TYPES = frozenset({8, 11, 16, 17})


class Element(NamedTuple):
    """Where an element of a DER text begins, where its content does, and where it ends."""

    tag: int
    start: int
    content: int
    end: int


def check_form(raw: bytes) -> None:
    """Check that bytes can be a token at all, and say what they look like otherwise."""
    if len(raw) > MAX_BYTES:
        raise Refused(f"not a DER token (more than {MAX_BYTES} bytes)")
    if raw[:1] != b"\x30":
        raise Refused(f"not a DER token ({_looks_like(raw)})")


def check_der(raw: bytes) -> None:
    """Check that bytes are one DER element and nothing else, to the innermost one."""
    first = _element(raw, 0, len(raw))
    if first.end != len(raw):
        raise Refused(f"damaged or has extra bytes ({len(raw) - first.end} after its end)")
    waiting = [(first, 1)]
    seen = 0
    while waiting:
        element, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH:
            raise Refused(f"damaged (nested deeper than {MAX_DEPTH})")
        if seen > MAX_ELEMENTS:
            raise Refused(f"damaged (more than {MAX_ELEMENTS} elements)")
        if element.tag & _CONSTRUCTED:
            position = element.content
            while position < element.end:
                child = _element(raw, position, element.end)
                waiting.append((child, depth + 1))
                position = child.end
                if len(waiting) > MAX_ELEMENTS:
                    raise Refused(f"damaged (more than {MAX_ELEMENTS} elements)")
        else:
            _check_primitive(element.tag, raw[element.content : element.end], element.start)


_BEGINNINGS = {b"-----BEGIN": "PEM", b"<": "HTML or XML", b"{": "JSON", b"[": "JSON"}


def _looks_like(raw: bytes) -> str:
    head = raw[:4096].lstrip()
    if not head:
        return "empty"
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return f"looks like {kind}"
    if head.startswith(b"M") and all(chr(c).isalnum() or c in b"+/=\r\n" for c in head):
        return "looks like base64"
    return f"begins with byte 0x{raw[0]:02x}"


def _element(raw: bytes, start: int, limit: int) -> Element:
    position = start
    tag = _byte(raw, position, limit)
    position += 1
    if tag & _LONG_TAG == _LONG_TAG:
        position = _skip_long_tag(raw, position, limit)
    length = _byte(raw, position, limit)
    position += 1
    if length >= _LONG_LENGTH:
        count = length - _LONG_LENGTH
        if not 0 < count <= _MAX_LENGTH_BYTES:
            raise Refused(f"damaged (an indefinite or absurd length at byte {start})")
        digits = raw[position : min(position + count, limit)]
        length = int.from_bytes(digits)
        position += count
        if len(digits) < count or digits[0] == 0 or length < _LONG_LENGTH:
            raise Refused(f"damaged (a length that is cut off or loosely written at byte {start})")
    if position + length > limit:
        raise Refused(f"damaged (an element at byte {start} is longer than what holds it)")
    _check_universal(tag, start)
    return Element(tag, start, position, position + length)


def _byte(raw: bytes, position: int, limit: int) -> int:
    if position >= limit:
        raise Refused(f"damaged (cut off at byte {position})")
    return raw[position]


def _skip_long_tag(raw: bytes, position: int, limit: int) -> int:
    first = _byte(raw, position, limit)
    number = 0
    for _ in range(_MAX_LENGTH_BYTES):
        digit = _byte(raw, position, limit)
        position += 1
        number = number << 7 | digit & 0x7F
        if digit < _LONG_LENGTH:
            if first == _LONG_LENGTH or number < _LONG_TAG:
                break
            return position
    raise Refused(f"damaged (a tag number that is loosely written or absurd before byte {position})")


def _check_universal(tag: int, start: int) -> None:
    """Check that a universal type comes in the one form that DER gives it."""
    if tag >> 6 == 0 and bool(tag & _CONSTRUCTED) != (tag & _LONG_TAG in _CONSTRUCTED_TYPES):
        raise Refused(f"damaged (a type in a form that DER does not have at byte {start})")
    if tag == 0:
        raise Refused(f"damaged (an end-of-contents mark at byte {start})")


def _check_primitive(tag: int, content: bytes, start: int) -> None:
    match tag:
        case 0x01:
            good = content in {b"\x00", b"\xff"}
        case 0x02 | 0x0A:
            good = bool(content) and not _has_needless_byte(content)
        case 0x03:
            good = bool(content) and _has_clean_padding(content)
        case 0x05:
            good = not content
        case 0x06:
            good = bool(content) and content[-1] < _LONG_LENGTH
        case _:
            good = True
    if not good:
        raise Refused(f"damaged (a value that DER writes otherwise at byte {start})")


def _has_needless_byte(integer: bytes) -> bool:
    return len(integer) > 1 and (
        (integer[0] == 0 and integer[1] < _LONG_LENGTH)
        or (integer[0] == _ALL_ONES and integer[1] >= _LONG_LENGTH)
    )


def _has_clean_padding(bits: bytes) -> bool:
    unused = bits[0]
    if unused > 7 or (unused and len(bits) == 1):  # noqa: PLR2004 - bits in a byte
        return False
    return not unused or bits[-1] & ((1 << unused) - 1) == 0


@dataclass(frozen=True)
class Node:
    """An element."""

    raw: bytes  # the input that it is cut from
    place: Element  # where it lies there

    @property
    def tag(self) -> int:
        """Its tag's first byte."""
        return self.place.tag

    @cached_property
    def der(self) -> bytes:
        """Its bytes."""
        return self.raw[self.place.start : self.place.end]

    @cached_property
    def content(self) -> bytes:
        """Its bytes without tag and length."""
        return self.raw[self.place.content : self.place.end]

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The elements it is made of."""
        nodes: list[Node] = []
        position = self.place.content
        while position < self.place.end:
            nodes.append(Node(self.raw, _element(self.raw, position, self.place.end)))
            position = nodes[-1].place.end
        return tuple(nodes)

    def only_child(self) -> Node:
        """Return the one element inside an explicit tag."""
        if len(self.children) != 1:
            raise Refused(f"damaged ({len(self.children)} elements where one belongs)")
        return self.children[0]

    def fields(self, shape: Shape) -> Mapping[str, Node]:
        """Return the elements of a SEQUENCE by name."""
        if self.tag != SEQUENCE:
            raise Refused("damaged (something else where a SEQUENCE belongs)")
        fields: dict[str, Node] = {}
        waiting = list(self.children)
        for name, tag in shape:
            if waiting and tag in {ANY, waiting[0].tag}:
                fields[name.removesuffix("?")] = waiting.pop(0)
            elif not name.endswith("?"):
                raise Refused(f"damaged (field {name} is missing or out of its place)")
        if waiting:
            raise Refused("damaged (a structure has a field too many, or out of its place)")
        return fields

    @property
    def bits(self) -> bytes:
        """The octets of a BIT STRING."""
        if self.content[:1] != b"\x00":
            raise Refused("damaged (bits that do not make whole octets)")
        return self.content[1:]


def check_algorithm(node: Node) -> None:
    """Hold an AlgorithmIdentifier whose algorithm has no parameters to none, or NULL."""
    fields = node.fields(ALGORITHM)
    if "parameters" in fields and fields["parameters"].tag != NULL:
        raise Refused("an algorithm has parameters that it does not take")


def parse(der: bytes) -> Node:
    """Return the outermost element of checked DER."""
    return Node(der, _element(der, 0, len(der)))
