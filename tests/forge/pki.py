"""Certificates and revocation lists with a knob for every field a verifier looks at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from tests.forge import der
from tests.forge.keys import Key, Scheme, digest, key, sign, usual
from toolkit.structs import replace

TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
CODE_SIGNING = "1.3.6.1.5.5.7.3.3"
SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
OCSP_SIGNING = "1.3.6.1.5.5.7.3.9"
ANY_PURPOSE = "2.5.29.37.0"
USAGES = {
    "digital_signature": 0,
    "non_repudiation": 1,
    "key_encipherment": 2,
    "data_encipherment": 3,
    "key_agreement": 4,
    "certificate_signing": 5,
    "crl_signing": 6,
}
BORN = datetime(2020, 1, 1, tzinfo=UTC)
DIES = datetime(2040, 1, 1, tzinfo=UTC)


def name(common: str, organization: str = "Forge") -> bytes:
    parts = (("2.5.4.10", organization), ("2.5.4.3", common))
    return der.seq(*(der.set_of(der.seq(der.oid(kind), der.utf8(text))) for kind, text in parts))


def directory(distinguished: bytes) -> bytes:
    """Return a GeneralName that holds a directory name."""
    return der.explicit(4, distinguished)


def dns(host: str) -> bytes:
    return der.tlv(0x82, host.encode())


def extension(dotted: str, value: bytes, *, critical: bool = False) -> bytes:
    return der.seq(der.oid(dotted), der.boolean(True) if critical else b"", der.octets(value))


def name_constraints(*, permitted: tuple[bytes, ...] = (), excluded: tuple[bytes, ...] = ()) -> bytes:
    trees = ((0, permitted), (1, excluded))
    value = der.seq(*(der.explicit(n, *map(der.seq, bases)) for n, bases in trees if bases))
    return extension("2.5.29.30", value, critical=True)


def alternative_name(*names: bytes) -> bytes:
    return extension("2.5.29.17", der.seq(*names))


UNKNOWN_CRITICAL = extension("1.3.6.1.4.1.99999.1", der.NULL, critical=True)
UNKNOWN = extension("1.3.6.1.4.1.99999.1", der.NULL)


@dataclass(frozen=True)
class Cert:
    """A certificate to be made: every field a knob. `der` is its bytes, made once.

    `ca` None leaves basicConstraints out; `usages` and `purposes` None leave theirs out. `signed_by`
    replaces the issuer's key without touching the issuer's name.
    """

    common: str
    key: Key
    issuer: Cert | None = None
    organization: str = "Forge"
    serial: int | None = None
    born: datetime = BORN
    dies: datetime = DIES
    ca: bool | None = None
    path_length: int | None = None
    usages: tuple[str, ...] | None = ("digital_signature",)
    usages_critical: bool = True
    purposes: tuple[str, ...] | None = None
    purposes_critical: bool = True
    identifiers: bool = True
    extensions: tuple[bytes, ...] = ()
    version: int = 3
    scheme: Scheme | None = None
    signed_by: Key | None = None
    issuer_name: bytes | None = None
    subject_name: bytes | None = None
    damaged: bool = False

    @property
    def subject(self) -> bytes:
        return self.subject_name or name(self.common, self.organization)

    @property
    def number(self) -> int:
        if self.serial is not None:
            return self.serial
        return int.from_bytes(digest("sha256", self.common.encode())[:8], "big") >> 1

    @property
    def issued_by(self) -> bytes:
        return self.issuer_name or (self.issuer or self).subject

    @property
    def der(self) -> bytes:
        return _certificate(self)

    def but(self, **knobs: object) -> Cert:
        return replace(self, **knobs)


def _extensions(cert: Cert) -> list[bytes]:
    parts = []
    if cert.ca is not None:
        length = b"" if cert.path_length is None else der.integer(cert.path_length)
        value = der.seq(der.boolean(True) if cert.ca else b"", length)
        parts.append(extension("2.5.29.19", value, critical=cert.ca))
    if cert.usages is not None:
        value = der.named_bits(*(USAGES[usage] for usage in cert.usages))
        parts.append(extension("2.5.29.15", value, critical=cert.usages_critical))
    if cert.purposes is not None:
        value = der.seq(*map(der.oid, cert.purposes))
        parts.append(extension("2.5.29.37", value, critical=cert.purposes_critical))
    if cert.identifiers:
        issuing = cert.signed_by or (cert.issuer or cert).key
        parts.append(extension("2.5.29.14", der.octets(cert.key.identifier)))
        if cert.issuer:
            parts.append(extension("2.5.29.35", der.seq(der.tlv(0x80, issuing.identifier))))
    return parts + list(cert.extensions)


@cache
def _certificate(cert: Cert) -> bytes:
    issuing = cert.signed_by or (cert.issuer or cert).key
    scheme = cert.scheme or usual(issuing)
    extensions = _extensions(cert) if cert.version == 3 else []
    body = der.seq(
        der.explicit(0, der.integer(cert.version - 1)) if cert.version > 1 else b"",
        der.integer(cert.number),
        scheme.identifier(),
        cert.issued_by,
        der.seq(der.time(cert.born), der.time(cert.dies)),
        cert.subject,
        cert.key.spki,
        der.explicit(3, der.seq(*extensions)) if extensions else b"",
    )
    signature = sign(issuing, body if not cert.damaged else body + b"damaged", scheme)
    return der.seq(body, scheme.identifier(), der.bits(signature))


def root(common: str, kind: str = "rsa-2048", **knobs: object) -> Cert:
    plain = Cert(common, key(kind, common), ca=True, usages=("certificate_signing", "crl_signing"))
    return plain.but(**knobs)


def authority(common: str, issuer: Cert, kind: str = "ecdsa-p256", **knobs: object) -> Cert:
    """Return an intermediate authority."""
    return root(common, kind, issuer=issuer).but(**knobs)


def stamper(common: str, issuer: Cert | None, kind: str = "rsa-2048", **knobs: object) -> Cert:
    """Return a time-stamping signer as RFC 3161 wants it."""
    return Cert(common, key(kind, common), issuer, purposes=(TIME_STAMPING,)).but(**knobs)


@dataclass(frozen=True)
class House:
    """An authority as it is usually set up: root, intermediate, signer."""

    root: Cert
    intermediate: Cert
    signer: Cert


@cache
def house(label: str = "A") -> House:
    top = root(f"Forge Root {label}")
    middle = authority(f"Forge Issuing {label}", top)
    return House(top, middle, stamper(f"Forge Stamper {label}", middle))


REASONS = {
    "unspecified": 0,
    "key compromise": 1,
    "authority compromise": 2,
    "affiliation changed": 3,
    "superseded": 4,
    "cessation of operation": 5,
    "certificate hold": 6,
    "remove from list": 8,
    "privilege withdrawn": 9,
    "attribute authority compromise": 10,
}


@dataclass(frozen=True)
class Revoked:
    """One entry of a revocation list."""

    serial: int
    on: datetime
    reason: str | None = None
    extensions: tuple[bytes, ...] = ()

    def encode(self) -> bytes:
        parts = list(self.extensions)
        if self.reason is not None:
            parts.insert(0, extension("2.5.29.21", der.tlv(0x0A, bytes([REASONS[self.reason]]))))
        return der.seq(der.integer(self.serial), der.time(self.on), der.seq(*parts) if parts else b"")


@dataclass(frozen=True)
class Crl:
    """A revocation list to be made: every field a knob."""

    issuer: Cert
    issued: datetime
    revoked: tuple[Revoked, ...] = ()
    next_update: datetime | None = None
    scheme: Scheme | None = None
    signed_by: Key | None = None
    extensions: tuple[bytes, ...] = ()

    @property
    def der(self) -> bytes:
        signing = self.signed_by or self.issuer.key
        scheme = self.scheme or usual(signing)
        identifier = extension("2.5.29.35", der.seq(der.tlv(0x80, self.issuer.key.identifier)))
        number = extension("2.5.29.20", der.integer(7))
        body = der.seq(
            der.integer(1),
            scheme.identifier(),
            self.issuer.subject,
            der.time(self.issued),
            der.time(self.next_update) if self.next_update else b"",
            der.seq(*(entry.encode() for entry in self.revoked)) if self.revoked else b"",
            der.explicit(0, der.seq(identifier, number, *self.extensions)),
        )
        return der.seq(body, scheme.identifier(), der.bits(sign(signing, body, scheme)))


def issuing_point(*fields: bytes) -> bytes:
    """Return an issuingDistributionPoint; fields as encoded, e.g. `USER_CERTIFICATES`."""
    return extension("2.5.29.28", der.seq(*fields), critical=True)


USER_CERTIFICATES = der.tlv(0x81, b"\xff")
AUTHORITY_CERTIFICATES = der.tlv(0x82, b"\xff")
SOME_REASONS = der.implicit(3, der.named_bits(1, 4))
INDIRECT = der.tlv(0x84, b"\xff")
DELTA = extension("2.5.29.27", der.integer(3), critical=True)


def certificate_issuer(distinguished: bytes) -> bytes:
    """Return the entry extension that names whose certificate an indirect list speaks of."""
    return extension("2.5.29.29", der.seq(directory(distinguished)), critical=True)


def invalid_since(moment: datetime) -> bytes:
    return extension("2.5.29.24", der.generalized(moment.strftime("%Y%m%d%H%M%SZ")))
