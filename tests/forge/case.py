"""A token with what a verifier is given beside it, and what it must say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.forge import der
from tests.forge.pki import Cert, extension, house
from tests.forge.token import DOCUMENT, NOW, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


@dataclass(frozen=True)
class Case:
    """One case.

    `material` are the verifier's other inputs by name. `beyond_openssl` says why `openssl ts -verify`
    cannot be asked about a valid one.
    """

    token: bytes
    expected: str
    failed_check: str | None
    material: dict[str, Any] = field(default_factory=dict)
    at: datetime = NOW
    beyond_openssl: str | None = None


Cases = dict[str, "Callable[[], Case]"]


def _case(expected: str, check: str | None, token: Recipe | bytes, knobs: dict[str, Any]) -> Case:
    raw = token.make() if isinstance(token, Recipe) else token
    at = knobs.pop("at", NOW)
    beyond = knobs.pop("beyond_openssl", None)
    material = {"document": DOCUMENT, "roots": (house().root.der,), **knobs}
    return Case(raw, expected, check, material, at, beyond)


def verified(token: Recipe | bytes, **knobs: Any) -> Case:
    return _case("verified", None, token, knobs)


def refused(check: str, token: Recipe | bytes, **knobs: Any) -> Case:
    return _case("not_verified", check, token, knobs)


def incomplete(check: str, token: Recipe | bytes, **knobs: Any) -> Case:
    return _case("incomplete", check, token, knobs)


def recipe(**knobs: Any) -> Recipe:
    return Recipe().but(**knobs)


def edited(level: str, edit: Callable[[bytes], bytes], **knobs: Any) -> Recipe:
    """Return a recipe whose encoding is changed at one level."""
    return recipe(edits=((level, edit),), **knobs)


def by(signer: Cert, **knobs: Any) -> Recipe:
    """Return a recipe of another signer's token."""
    return recipe(signer=signer, **knobs)


def signer(**knobs: Any) -> Cert:
    """Return the usual signer's certificate with something else in it."""
    return house().signer.but(**knobs)


@cache
def signer_of_length_80(*extensions: bytes) -> Cert:
    """Return a signer's certificate whose length ends in the byte 0x80; an extension fills it up.

    An ECDSA signature is a byte longer or shorter by chance: another serial number is another chance.
    """
    for filling in range(300):
        for serial in range(100, 108):
            extra = extension("1.3.6.1.4.1.99999.6", der.octets(bytes(filling)))
            cert = signer(extensions=(extra, *extensions), serial=serial)
            if der.header(cert.der)[-1] == 0x80:
                return cert
    raise ValueError("no filling fits")
