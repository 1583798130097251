"""Edges of the checks, by what a verifier has to conclude."""

from collections.abc import Callable
from datetime import UTC, datetime

from tests.forge import der
from tests.forge.case import Cases, Made, also, by, given, issuing, recipe
from tests.forge.defects_chain import ISSUED, SECOND, crl
from tests.forge.keys import Scheme
from tests.forge.pki import SERVER_AUTH, UNKNOWN, Crl, Revoked, authority, house, root, stamper
from tests.forge.token import CONTENT_TYPE, MESSAGE_DIGEST, NOW, STAMPED, TST_INFO, Ess, accuracy, attribute

AFTER = datetime(2024, 6, 1, tzinfo=UTC)


def _text_for_octets() -> Made:
    raw = recipe().make()
    kind = der.oid("1.2.840.113549.1.9.16.1.4")
    at = raw.index(kind) + len(kind)
    inner = at + len(der.header(raw[at:]))
    assert (raw[at], raw[inner]) == (0xA0, 0x04)
    return raw[:inner] + b"\x0c" + raw[inner + 1 :]


def _with_list(**knobs: object) -> Made:
    return given(recipe(), crls=(Crl(house().intermediate, AFTER, **knobs).der,))


def _listed(issued: datetime, at: datetime = NOW) -> Callable[[], Made]:
    """A list vouches only for older tokens, and not before its time."""
    return lambda: given(recipe(), crls=(crl(issued=issued),), at=at)


def _insisting() -> Made:
    signer = stamper("Forge Insisting", house().intermediate, "pss-sha256")
    return by(signer, scheme=Scheme("pss", "sha512"), digest="sha512")


def _rolled() -> Made:
    """A self-issued authority, which does not lengthen its path."""
    top = root("Forge Short", path_length=1)
    old = authority("Forge Rolling", top, "rsa-2048")
    signer = stamper("Forge Rolled", authority("Forge Rolling", old, serial=7))
    return given(by(signer), roots=(top.der,))


def _below(*, is_pinned: bool = False) -> Made:
    """A token of a signer below an authority for web servers, which is pinned itself or not."""
    issuer = authority("Forge Web", house().root, purposes=(SERVER_AUTH,))
    return given(by(stamper("Forge Stray", issuer)), roots=(issuer.der if is_pinned else house().root.der,))


def _unlisted() -> Made:
    issuer = authority("Forge Listless", house().root, usages=("certificate_signing",))
    return given(by(stamper("Forge Unlisted", issuer)), crls=(crl(issuer=issuer),))


def _further(label: str) -> Made:
    """A token whose signed attributes name a further certificate."""
    return recipe(ess=(Ess(house().signer.der), Ess(issuing(label).der)))


TWO_VALUES = attribute("1.3.6.1.4.1.99999.7", der.integer(1), der.integer(2))
EDGES: dict[tuple[str, str | None], Cases] = {
    ("verified", None): {
        "valid: a self-issued authority below a short path": _rolled,
        "valid: an authority for web servers alone, pinned": lambda: _below(is_pinned=True),
        "valid: signer whose issuer signs no lists": _unlisted,
        "valid: a further certificate of the chain": lambda: _further("A"),
        "valid: an unknown attribute of several values": lambda: also(TWO_VALUES),
        "valid: signer taken off the list again": lambda: _with_list(
            revoked=(Revoked(house().signer.number, AFTER, "remove from list"),)
        ),
        "valid: list issued at genTime": _listed(STAMPED),
        "valid: list issued a second after genTime": _listed(STAMPED + SECOND),
        "valid: list issued at the present": _listed(ISSUED, ISSUED),
        "valid: list issued a second after the present": _listed(ISSUED, ISSUED - SECOND),
    },
    ("incomplete", "imprint"): {
        "neither document nor hash": lambda: given(recipe(), document=None),
        "a SHA-512 where only a SHA-256 is known": lambda: given(
            recipe(imprint_digest="sha512"), document=None, digest=("sha256", bytes(32))
        ),
    },
    ("not_verified", "chain"): {
        "an authority for web servers alone": _below,
        "a further certificate of another chain": lambda: _further("B"),
    },
    ("not_verified", "status"): {
        "a failure beside what is granted": lambda: recipe(failure=14),
        "a reply of more parts": lambda: der.with_more(recipe().make(), der.NULL),
    },
    ("not_verified", "structure"): {
        "content that is text for octets": _text_for_octets,
        "an absurd accuracy": lambda: recipe(accuracy=accuracy(9 * 10**12)),
        "a more absurd accuracy": lambda: recipe(accuracy=accuracy(10**14)),
    },
    ("not_verified", "signed_attributes"): {
        "a content type of which the first value is right": lambda: recipe(
            values=((CONTENT_TYPE, (der.oid(TST_INFO), der.oid(f"{TST_INFO}.1"))),)
        ),
        "a message digest that is text": lambda: recipe(
            values=((MESSAGE_DIGEST, (der.tlv(0x0C, b"x" * 32),)),)
        ),
    },
    ("not_verified", "signature"): {
        "SHA-1 in an Ed25519 signature": lambda: by(
            stamper("Forge Ed", house().intermediate, "ed25519"), digest="sha1"
        ),
        "PSS parameters that the key does not allow": _insisting,
    },
    ("not_verified", "revocation"): {
        "a list with an extension twice": lambda: _with_list(extensions=(UNKNOWN, UNKNOWN)),
    },
}
