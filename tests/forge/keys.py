"""Throw-away keys and what signs with them; made once a process, never written anywhere."""

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa

from tests.forge import der

DIGEST_OIDS = {
    "md5": "1.2.840.113549.2.5",
    "sha1": "1.3.14.3.2.26",
    "sha224": "2.16.840.1.101.3.4.2.4",
    "sha256": "2.16.840.1.101.3.4.2.1",
    "sha384": "2.16.840.1.101.3.4.2.2",
    "sha512": "2.16.840.1.101.3.4.2.3",
    "sha3_256": "2.16.840.1.101.3.4.2.8",
}
DIGESTS: dict[str, hashes.HashAlgorithm] = {name: getattr(hashes, name.upper())() for name in DIGEST_OIDS}
RSA = "1.2.840.113549.1.1.1"
PSS = "1.2.840.113549.1.1.10"
MGF1 = "1.2.840.113549.1.1.8"
ED25519 = "1.3.101.112"
SIGNATURE_OIDS = {
    ("rsa", "md5"): "1.2.840.113549.1.1.4",
    ("rsa", "sha1"): "1.2.840.113549.1.1.5",
    ("rsa", "sha224"): "1.2.840.113549.1.1.14",
    ("rsa", "sha256"): "1.2.840.113549.1.1.11",
    ("rsa", "sha384"): "1.2.840.113549.1.1.12",
    ("rsa", "sha512"): "1.2.840.113549.1.1.13",
    ("ecdsa", "sha1"): "1.2.840.10045.4.1",
    ("ecdsa", "sha224"): "1.2.840.10045.4.3.1",
    ("ecdsa", "sha256"): "1.2.840.10045.4.3.2",
    ("ecdsa", "sha384"): "1.2.840.10045.4.3.3",
    ("ecdsa", "sha512"): "1.2.840.10045.4.3.4",
    ("dsa", "sha1"): "1.2.840.10040.4.3",
    ("dsa", "sha256"): "2.16.840.1.101.3.4.3.2",
}


def digest(name: str, data: bytes) -> bytes:
    return hashlib.new(name, data, usedforsecurity=False).digest()


def digest_identifier(name: str, *, null: bool = True) -> bytes:
    return der.seq(der.oid(DIGEST_OIDS[name]), der.NULL if null else b"")


def pss_parameters(digest_name: str, mgf: str, salt: int, trailer: int = 1) -> bytes:
    """Write RSASSA-PSS-params as DER has it: what is the default (SHA-1, 20, 1) is left out."""
    parts = []
    if digest_name != "sha1":
        parts.append(der.explicit(0, digest_identifier(digest_name)))
    if mgf != "sha1":
        parts.append(der.explicit(1, der.seq(der.oid(MGF1), digest_identifier(mgf))))
    if salt != 20:
        parts.append(der.explicit(2, der.integer(salt)))
    if trailer != 1:
        parts.append(der.explicit(3, der.integer(trailer)))
    return der.seq(*parts)


@dataclass(frozen=True)
class Key:
    """A private key and the SubjectPublicKeyInfo that certificates state for it."""

    kind: str
    private: Any
    spki: bytes

    @property
    def identifier(self) -> bytes:
        """The SHA-1 of the public key's bits: RFC 5280's way 1 to a key identifier."""
        *_, public = der.children(self.spki)
        return digest("sha1", der.body(public)[1:])

    @property
    def family(self) -> str:
        if self.kind.startswith("pss"):
            return "pss"
        return self.kind.split("-", maxsplit=1)[0]


@dataclass(frozen=True)
class Scheme:
    """A signature algorithm with its parameters."""

    family: str
    digest: str = "sha256"
    mgf: str | None = None
    salt: int | None = None
    trailer: int = 1
    plain: bool = False  # rsaEncryption in place of sha…WithRSAEncryption

    @property
    def salt_size(self) -> int:
        return DIGESTS[self.digest].digest_size if self.salt is None else self.salt

    def identifier(self) -> bytes:
        if self.family == "pss":
            mgf = self.mgf or self.digest
            return der.seq(der.oid(PSS), pss_parameters(self.digest, mgf, self.salt_size, self.trailer))
        if self.family == "ed25519":
            return der.seq(der.oid(ED25519))
        if self.plain:
            return der.seq(der.oid(RSA), der.NULL)
        name = der.oid(SIGNATURE_OIDS[self.family, self.digest])
        return der.seq(name, der.NULL) if self.family == "rsa" else der.seq(name)


CURVES = {"p256": ec.SECP256R1, "p384": ec.SECP384R1, "p521": ec.SECP521R1, "p224": ec.SECP224R1}


def usual(signing: Key, digest_name: str = "sha256") -> Scheme:
    """Return the scheme that belongs to a key."""
    return Scheme(signing.family, digest_name)


@cache
def key(kind: str, label: str = "") -> Key:
    """Make a key of a kind; the same label gives the same key for as long as the process lives.

    Kinds: rsa-1024, rsa-2048, rsa-3072; pss (RSA-2048 whose SubjectPublicKeyInfo says id-RSASSA-PSS,
    without parameters), pss-sha256, pss-sha512 (with parameters); ecdsa-p256 and so on; ed25519; dsa.
    """
    private: Any
    if kind.startswith("rsa-"):
        private = rsa.generate_private_key(65537, int(kind.removeprefix("rsa-")))
    elif kind.startswith("pss"):
        private = key("rsa-2048", f"{kind} {label}").private
        parameters = b""
        if name := kind.removeprefix("pss").removeprefix("-"):
            parameters = pss_parameters(name, name, DIGESTS[name].digest_size)
        _, public = der.children(_spki(private))
        return Key(kind, private, der.seq(der.seq(der.oid(PSS), parameters), public))
    elif kind.startswith("ecdsa-"):
        private = ec.generate_private_key(CURVES[kind.removeprefix("ecdsa-")]())
    elif kind == "ed25519":
        private = ed25519.Ed25519PrivateKey.generate()
    else:
        private = dsa.generate_private_key(1024)  # noqa: S505 - to be refused
    return Key(kind, private, _spki(private))


def _spki(private: Any) -> bytes:
    return private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def rsa_spki(modulus: int, exponent: int) -> bytes:
    """Write a SubjectPublicKeyInfo for numbers that no key generator gives."""
    numbers = der.seq(der.integer(modulus), der.integer(exponent))
    return der.seq(der.seq(der.oid(RSA), der.NULL), der.bits(numbers))


def explicit_spki(signing: Key) -> bytes:
    """Write a P-256 key with its curve's numbers in place of its name, as RFC 5480 forbids."""
    prime = 2**256 - 2**224 + 2**192 + 2**96 - 1
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    point = bytes.fromhex(
        "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
    )
    b = bytes.fromhex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b")
    curve = der.seq(
        der.integer(1),
        der.seq(der.oid("1.2.840.10045.1.1"), der.integer(prime)),
        der.seq(der.octets((prime - 3).to_bytes(32, "big")), der.octets(b)),
        der.octets(point),
        der.integer(order),
        der.integer(1),
    )
    _, public = der.children(signing.spki)
    return der.seq(der.seq(der.oid("1.2.840.10045.2.1"), curve), public)


def sign(signing: Key, data: bytes, scheme: Scheme) -> bytes:
    """Sign as the scheme says; what the scheme cannot do with the key raises."""
    if scheme.family == "ed25519":
        return signing.private.sign(data)
    algorithm = DIGESTS[scheme.digest]
    if scheme.family == "rsa":
        return signing.private.sign(data, padding.PKCS1v15(), algorithm)
    if scheme.family == "pss":
        mgf = padding.MGF1(DIGESTS[scheme.mgf or scheme.digest])
        return signing.private.sign(data, padding.PSS(mgf, scheme.salt_size), algorithm)
    if scheme.family == "ecdsa":
        return signing.private.sign(data, ec.ECDSA(algorithm))
    return signing.private.sign(data, algorithm)
