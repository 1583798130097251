"""A token with what a verifier is given beside it, and what it must say."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from tests.forge import der
from tests.forge.pki import Cert, authority, directory, extension, house, root, stamper
from tests.forge.token import DOCUMENT, NOW, Recipe, own_id, with_ids


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


Made = "Case | Recipe | bytes | tuple[Recipe | bytes, dict[str, Any]]"
Cases = dict[str, "Callable[[], Made]"]


def given(token: Recipe | bytes, **knobs: Any) -> tuple[Recipe | bytes, dict[str, Any]]:
    """Return a token with what else is to be given beside it, or in place of the usual."""
    return token, knobs


def case(made: Made, check: str | None, expected: str) -> Case:
    """Return the case of a token: what has to be said of it, and which check refuses it."""
    if isinstance(made, Case):
        return made
    token, knobs = made if isinstance(made, tuple) else (made, {})
    raw = token.make() if isinstance(token, Recipe) else token
    own = {name: knobs[name] for name in ("at", "beyond_openssl") if name in knobs}
    others = {name: value for name, value in knobs.items() if name not in own}
    material = {"document": DOCUMENT, "roots": (house().root.der,), **others}
    return Case(raw, expected, check, material, **own)


def refused(check: str, token: Made) -> Case:
    return case(token, check, "not_verified")


def verified(token: Made) -> Case:
    return case(token, None, "verified")


def incomplete(check: str, token: Made) -> Case:
    return case(token, check, "incomplete")


def recipe(**knobs: Any) -> Recipe:
    return Recipe().but(**knobs)


def embedding(*certificates: Cert | bytes, **knobs: Any) -> Recipe:
    """Return a recipe of a token that embeds these certificates."""
    embedded = tuple(each.der if isinstance(each, Cert) else each for each in certificates)
    return recipe(certificates=embedded, **knobs)


def edited(level: str, edit: Callable[[bytes], bytes], **knobs: Any) -> Recipe:
    """Return a recipe whose encoding is changed at one level."""
    return recipe(edits=((level, edit),), **knobs)


def padded(level: str, *extra: bytes) -> Recipe:
    """Return a recipe with more in one level."""
    return edited(level, lambda value: der.with_more(value, *extra))


def changed(level: str, path: tuple[int, ...], edit: Callable[[bytes], bytes]) -> Recipe:
    """Return a recipe with an element below one level changed."""
    return edited(level, lambda value: der.change(value, path, edit))


def by(signer: Cert, **knobs: Any) -> Recipe:
    """Return a recipe of another signer's token."""
    return recipe(signer=signer, **knobs)


def issuing(label: str = "A") -> Cert:
    return house(label).intermediate


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


def chain(
    *below: tuple[str, dict[str, object]], top: dict[str, object] | None = None, **last: object
) -> Made:
    """Return a token of a chain: a pinned root, authorities below it, and a signer, each with its knobs."""
    first = issuer = root("Forge Root of a chain", "ecdsa-p256", **(top or {}))
    for common, knobs in below:
        issuer = authority(common, issuer, **knobs)
    return given(by(stamper("Forge Stamper of a chain", issuer).but(**last)), roots=(first.der,))


def middle(top: dict[str, object] | None = None, **knobs: object) -> Made:
    """Return a token of a chain with one authority below the root, each with its knobs."""
    return chain(("Forge Issuing of a chain", knobs), top=top)


def also(*extra: bytes) -> Recipe:
    """Return a recipe of a token with more signed attributes."""
    return recipe(extra_attributes=extra)


def placed(serial: int, label: str = "A", version: int = 2) -> Recipe:
    """Return a recipe whose signed attributes name the signer's issuer, of a house, and its number."""
    return with_ids(own_id(issuer=issuing(label).subject, serial=serial), version=version)


def organization(text: str, tag: int = 0x0C) -> bytes:
    """Return the directory name of an organization alone, as the base of a subtree."""
    return directory(der.seq(der.set_of(der.seq(der.oid("2.5.4.10"), der.tlv(tag, text.encode())))))
