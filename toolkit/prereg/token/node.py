"""Elements of checked DER by name, with the very bytes they have.

`asn1crypto` reads values well and structures kindly: it passes over surplus fields, takes an explicit tag's
first child for its only one, and writes some elements anew when asked for their bytes. Whatever is hashed,
compared or signed is therefore cut from the input here, and every structure is held to its fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from toolkit.prereg.token.der import Element, children, element_at
from toolkit.prereg.token.verdict import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

BOOLEAN, INTEGER, BITS, OCTETS, NULL, OID = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
SEQUENCE, SET, TIME = 0x30, 0x31, 0x18
ANY = -1

Shape = tuple[tuple[str, int], ...]
"""The fields of a SEQUENCE in order, each with its tag; a name that ends in `?` may be absent."""

ALGORITHM: Shape = (("algorithm", OID), ("parameters?", ANY))
ISSUER_AND_SERIAL: Shape = (("issuer", SEQUENCE), ("serial", INTEGER))


@dataclass(frozen=True)
class Node:
    """An element.

    Args:
        raw: the input that it is cut from.
        place: where it lies there.
    """

    raw: bytes
    place: Element

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
        return tuple(Node(self.raw, child) for child in children(self.raw, self.place))

    def only_child(self) -> Node:
        """Return the one element inside an explicit tag.

        Raises:
            Refused: there is none, or more than one.
        """
        if len(self.children) != 1:
            raise Refused(f"damaged ({len(self.children)} elements where one belongs)")
        return self.children[0]

    def fields(self, shape: Shape) -> Mapping[str, Node]:
        """Return the elements of a SEQUENCE by name.

        Raises:
            Refused: a field is missing, out of its place, or too many.
        """
        if self.tag != SEQUENCE:
            raise Refused("damaged (something else where a SEQUENCE belongs)")
        found: dict[str, Node] = {}
        waiting = list(self.children)
        for name, tag in shape:
            if waiting and tag in {ANY, waiting[0].tag}:
                found[name.removesuffix("?")] = waiting.pop(0)
            elif not name.endswith("?"):
                raise Refused(f"damaged (field {name} is missing or out of its place)")
        if waiting:
            raise Refused("damaged (a structure has a field too many, or out of its place)")
        return found

    @property
    def bits(self) -> bytes:
        """The octets of a BIT STRING.

        Raises:
            Refused: it does not hold whole octets.
        """
        if self.content[:1] != b"\x00":
            raise Refused("damaged (bits that do not make whole octets)")
        return self.content[1:]


def check_algorithm(node: Node) -> None:
    """Hold an AlgorithmIdentifier whose algorithm has no parameters to none, or NULL.

    Raises:
        Refused: it has others.
    """
    fields = node.fields(ALGORITHM)
    if "parameters" in fields and fields["parameters"].tag != NULL:
        raise Refused("an algorithm has parameters that it does not take")


def parse(der: bytes) -> Node:
    """Return the outermost element of checked DER."""
    return Node(der, element_at(der))
