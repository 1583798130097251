"""Check 10: signature."""

from collections.abc import Callable
from dataclasses import replace

from tests.forge import der, keys
from tests.forge.case import Case, Cases, by, edited, recipe
from tests.forge.keys import digest, digest_identifier, explicit_spki, key, pss_parameters, rsa_spki, sign
from tests.forge.pki import house, stamper
from tests.forge.token import attribute


def _signer(kind: str, **knobs: object) -> object:
    return by(stamper(f"Forge {kind}", house().intermediate, kind), **knobs)


def _pss(algorithm: bytes | None = None, **scheme: object) -> object:
    """Return a recipe signed with RSASSA-PSS under this name."""
    return recipe(scheme=keys.Scheme("pss", **scheme), algorithm=algorithm)


def _named(*parameters: object) -> bytes:
    return der.seq(der.oid(keys.PSS), pss_parameters(*parameters))


def _odd_mask() -> bytes:
    parts = (
        der.explicit(0, digest_identifier("sha256")),
        der.explicit(1, der.seq(der.oid("1.2.840.113549.1.1.99"), digest_identifier("sha256"))),
        der.explicit(2, der.integer(32)),
    )
    return der.seq(der.oid(keys.PSS), der.seq(*parts))


def _numbers(modulus: int, exponent: int, signature: bytes) -> Case:
    """A signer whose certified RSA key has these numbers."""
    odd = replace(key("rsa-2048", "odd"), spki=rsa_spki(modulus, exponent))
    return by(stamper("Forge odd", house().intermediate, key=odd), signature=signature)


def _exponent_one() -> Case:
    """With the exponent 1 a signature is the padded hash itself: anybody can write it."""
    odd = replace(key("rsa-2048", "odd"), spki=rsa_spki(2**2047 + 1, 1))
    token = by(stamper("Forge one", house().intermediate, key=odd))
    attributes = der.set_of(*token.signed_attributes(token.tst_info()))
    hashed = der.seq(digest_identifier("sha256"), der.octets(digest("sha256", attributes)))
    padded = b"\x00\x01" + b"\xff" * (256 - 3 - len(hashed)) + b"\x00" + hashed
    return token.but(signature=padded)


def _explicit_curve() -> Case:
    plain = key("ecdsa-p256", "explicit")
    odd = replace(plain, spki=explicit_spki(plain))
    return by(stamper("Forge explicit", house().intermediate, key=odd))


def _elliptic(edit: Callable[[bytes], bytes]) -> Case:
    last = stamper("Forge elliptic", house().intermediate, "ecdsa-p256")
    return edited("signature", edit, signer=last)


def _with_attribute(signer_info: bytes, extra: bytes) -> bytes:
    parts = list(der.children(signer_info))
    parts[3] = der.explicit(0, *sorted([*der.children(parts[3]), extra]))
    return der.seq(*parts)


def _signed_under_context_tag() -> object:
    """Sign the attributes as they stand in the token, [0], not as the SET OF that RFC 5652 wants."""
    plain = recipe()
    content = plain.tst_info()
    encoded = der.implicit(0, der.set_of(*plain.signed_attributes(content)))
    return plain.but(signature=sign(plain.signer.key, encoded, keys.Scheme("rsa")))


SIGNATURE: Cases = {
    "signature with a bit flipped": lambda: edited("signature", der.flipped),
    "signature of zeros": lambda: edited("signature", lambda v: bytes(len(v))),
    "signature empty": lambda: recipe(signature=b""),
    "signature cut short": lambda: edited("signature", lambda v: v[:-1]),
    "signature with a trailing byte": lambda: edited("signature", lambda v: v + b"\x00"),
    "signature with a leading zero": lambda: edited("signature", lambda v: b"\x00" + v),
    "signature by another key": lambda: recipe(signing_key=key("rsa-2048", "nobody")),
    "attribute changed after signing": lambda: edited(
        "signer_info",
        lambda v: v.replace(b"signing time 1", b"signing time 2"),
        extra_attributes=(attribute("1.3.6.1.4.1.99999.9", der.utf8("signing time 1")),),
    ),
    "attribute added after signing": lambda: edited(
        "signer_info", lambda v: _with_attribute(v, attribute("1.3.6.1.4.1.99999.9", der.utf8("later")))
    ),
    "attributes signed under their context tag": _signed_under_context_tag,
    "ECDSA signature not encoded": lambda: _signer("ecdsa-p256", signature=bytes(range(1, 65))),
    "ECDSA signature with a trailing byte": lambda: _elliptic(lambda v: v + b"\x00"),
    "ECDSA signature with a byte too many in its length": lambda: _elliptic(der.long_length),
    "ECDSA signature with a third number": lambda: _elliptic(lambda v: der.with_more(v, der.integer(1))),
    "ECDSA signature with a needless byte": lambda: _elliptic(
        lambda v: der.change(v, (0,), lambda r: der.tlv(0x02, b"\x00\x00", der.body(r)))
    ),
    "curve written out in numbers": _explicit_curve,
    "RSA key of exponent 1": _exponent_one,
    "RSA key of 65 536 bits": lambda: _numbers(2**65535 + 1, 65537, b"\x01" * 8192),
    "RSA key of an exponent of 2047 bits": lambda: _numbers(2**2047 + 1, 2**2046 + 1, b"\x01" * 256),
    "RSA key of modulus zero": lambda: _numbers(0, 65537, b""),
    "RSA key of a negative modulus": lambda: _numbers(-(2**2047), 65537, b"\x01" * 256),
    "ECDSA signature of zeros": lambda: _signer(
        "ecdsa-p256", signature=der.seq(der.integer(0), der.integer(0))
    ),
    "RSA name over an elliptic key": lambda: _signer(
        "ecdsa-p256", algorithm=keys.Scheme("rsa").identifier(), scheme=keys.Scheme("ecdsa")
    ),
    "ECDSA name over an RSA key": lambda: recipe(algorithm=keys.Scheme("ecdsa").identifier()),
    "Ed25519 name over an RSA key": lambda: recipe(algorithm=der.seq(der.oid(keys.ED25519))),
    "unknown signature algorithm": lambda: recipe(algorithm=der.seq(der.oid("1.3.6.1.4.1.99999.8"))),
    "a digest's name as signature algorithm": lambda: recipe(algorithm=digest_identifier("sha256")),
    "signature's hash named wrongly": lambda: recipe(algorithm=keys.Scheme("rsa", "sha512").identifier()),
    "digest SHA-1": lambda: recipe(digest="sha1"),
    "digest MD5": lambda: recipe(digest="md5"),
    "digest SHA-224": lambda: recipe(digest="sha224"),
    "digest SHA-256 signed with SHA-1": lambda: recipe(scheme=keys.Scheme("rsa", "sha1")),
    "digest SHA-1 signed with SHA-256": lambda: recipe(digest="sha1", scheme=keys.Scheme("rsa")),
    "ECDSA with SHA-1": lambda: _signer("ecdsa-p256", digest="sha1"),
    "RSA key of 1024 bits": lambda: _signer("rsa-1024"),
    "curve of 224 bits": lambda: _signer("ecdsa-p224"),
    "DSA key": lambda: _signer("dsa"),
    "PSS with SHA-1": lambda: _pss(digest="sha1"),
    "PSS with SHA-1 in its mask": lambda: _pss(mgf="sha1"),
    "PSS with its salt named wrongly": lambda: _pss(_named("sha256", "sha256", 20)),
    "PSS with its mask named wrongly": lambda: _pss(_named("sha256", "sha512", 32)),
    "PSS with another trailer": lambda: _pss(trailer=2),
    "PSS with another mask than MGF1": lambda: _pss(_odd_mask()),
    "PSS with a salt of less than nothing": lambda: _pss(_named("sha256", "sha256", -1)),
    "PSS hash with something empty for its NULL": lambda: _pss(
        keys.Scheme("pss").identifier().replace(der.NULL, der.octets(b""), 1)
    ),
    "PSS mask's hash with something empty for its NULL": lambda: _pss(
        der.octets(b"").join(keys.Scheme("pss").identifier().rsplit(der.NULL, 1))
    ),
    "Ed448 name over an Ed25519 key": lambda: _signer(
        "ed25519", digest="sha512", algorithm=der.seq(der.oid("1.3.101.113"))
    ),
    "PSS without parameters": lambda: _pss(der.seq(der.oid(keys.PSS))),
    "PSS name over a PKCS #1 v1.5 signature": lambda: recipe(algorithm=keys.Scheme("pss").identifier()),
    "PKCS #1 v1.5 with a key that is for keys.PSS only": lambda: _signer("pss", scheme=keys.Scheme("rsa")),
    "PSS key of SHA-512 used with SHA-256": lambda: _signer("pss-sha512"),
    "PSS key with a short salt": lambda: _signer("pss-sha256", scheme=keys.Scheme("pss", salt=20)),
    "Ed25519 signature with a bit flipped": lambda: _signer(
        "ed25519", digest="sha512", edits=(("signature", der.flipped),)
    ),
}
