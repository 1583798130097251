"""Time-stamp tokens with a knob for every field (RFC 3161, RFC 5652, RFC 5035)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.forge import der
from tests.forge.keys import Key, Scheme, digest, digest_identifier, sign, usual
from tests.forge.pki import Cert, directory, house
from toolkit.structs import replace

DOCUMENT = b"# Protocol\n\nSuccess is a mean difference above 0.01.\n"
PAGE = b"<!DOCTYPE html>\n<html><body>Please log in to the network.</body></html>\n"
STAMPED = datetime(2024, 3, 1, 12, tzinfo=UTC)
NOW = datetime(2025, 6, 1, tzinfo=UTC)
POLICY = "1.3.6.1.4.1.99999.2.1"

DATA = "1.2.840.113549.1.7.1"
SIGNED_DATA = "1.2.840.113549.1.7.2"
TST_INFO = "1.2.840.113549.1.9.16.1.4"
CONTENT_TYPE = "1.2.840.113549.1.9.3"
MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
SIGNING_TIME = "1.2.840.113549.1.9.5"
ALGORITHM_PROTECTION = "1.2.840.113549.1.9.52"
SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.12"
SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.47"
BOTH_IDS = (CONTENT_TYPE, MESSAGE_DIGEST, SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2)


@dataclass(frozen=True)
class Ess:
    """One ESSCertID or ESSCertIDv2; `hashed` are the bytes of the certificate that it names."""

    hashed: bytes
    digest: str = "sha256"
    issuer: bytes | None = None
    serial: int | None = None
    stated: bool = False  # the default algorithm, SHA-256, is written out all the same
    value: bytes | None = None  # instead of the hash

    def encode(self, version: int) -> bytes:
        algorithm = "sha1" if version == 1 else self.digest
        parts = [der.octets(digest(algorithm, self.hashed) if self.value is None else self.value)]
        if version == 2 and (self.stated or self.digest != "sha256"):
            parts.insert(0, digest_identifier(self.digest))
        if self.issuer is not None:
            parts.append(der.seq(der.seq(directory(self.issuer)), der.integer(self.serial or 0)))
        return der.seq(*parts)


def attribute(dotted: str, *values: bytes) -> bytes:
    return der.seq(der.oid(dotted), der.set_of(*values))


def protection(digest_name: str, scheme: Scheme) -> bytes:
    """Return the attribute that repeats the algorithms (RFC 6211)."""
    repeated = der.implicit(1, scheme.identifier())
    return attribute(ALGORITHM_PROTECTION, der.seq(digest_identifier(digest_name), repeated))


def accuracy(seconds: int | None = None, millis: int | None = None, micros: int | None = None) -> bytes:
    parts = [] if seconds is None else [der.integer(seconds)]
    if millis is not None:
        parts.append(der.implicit(0, der.integer(millis)))
    if micros is not None:
        parts.append(der.implicit(1, der.integer(micros)))
    return der.seq(*parts)


def same(value: bytes) -> bytes:
    return value


@dataclass(frozen=True)
class Recipe:
    """A token to be made. None means: what an honest authority would write.

    `edits` change the encoded bytes of one level before the next is built round it: imprint, tst_info,
    content, attributes, signature, certificates, signer_info, signed_data, content_info, response.
    """

    document: bytes = DOCUMENT
    signer: Cert = field(default_factory=lambda: house().signer)
    # The response
    bare: bool = False
    status: int = 0
    text: str | None = None
    failure: int | None = None  # a bit of PKIFailureInfo
    with_token: bool = True
    # SignedData
    outer_type: str = SIGNED_DATA
    version: int = 3
    digest_algorithms: tuple[str, ...] | None = None
    content_type: str = TST_INFO
    detached: bool = False
    certificates: tuple[bytes, ...] | None = None
    sort_certificates: bool = True
    crls: tuple[bytes, ...] = ()
    signer_infos: int = 1
    # SignerInfo
    signer_version: int | None = None
    by_key: bool = False  # the signer is named by its key's identifier
    sid: bytes | None = None
    digest: str = "sha256"
    digest_null: bool = True
    scheme: Scheme | None = None
    algorithm: bytes | None = None  # the signature algorithm as stated, where it differs from what signs
    signing_key: Key | None = None
    signature: bytes | None = None
    attributes: tuple[str, ...] = (CONTENT_TYPE, MESSAGE_DIGEST, SIGNING_CERTIFICATE_V2)
    extra_attributes: tuple[bytes, ...] = ()
    values: tuple[tuple[str, tuple[bytes, ...]], ...] = ()  # instead of an attribute's honest values
    ess: tuple[Ess, ...] | None = None
    unsigned: tuple[bytes, ...] = ()
    # TSTInfo
    tst_version: int = 1
    policy: str = POLICY
    imprint_digest: str = "sha256"
    imprint_null: bool = True
    imprint: bytes | None = None
    serial: int = 20240301
    gen_time: str | bytes = "20240301120000Z"
    accuracy: bytes = b""
    ordering: bytes = b""
    nonce: int | None = None
    tsa: bytes | None = None  # a GeneralName
    extensions: tuple[bytes, ...] = ()
    edits: tuple[tuple[str, Callable[[bytes], bytes]], ...] = ()

    def but(self, **knobs: object) -> Recipe:
        return replace(self, **knobs)

    def _edited(self, level: str, value: bytes) -> bytes:
        for where, edit in self.edits:
            if where == level:
                value = edit(value)
        return value

    def message_imprint(self) -> bytes:
        value = digest(self.imprint_digest, self.document) if self.imprint is None else self.imprint
        algorithm = digest_identifier(self.imprint_digest, null=self.imprint_null)
        return self._edited("imprint", der.seq(algorithm, der.octets(value)))

    def tst_info(self) -> bytes:
        value = der.seq(
            der.integer(self.tst_version),
            der.oid(self.policy),
            self.message_imprint(),
            der.integer(self.serial),
            der.generalized(self.gen_time),
            self.accuracy,
            self.ordering,
            b"" if self.nonce is None else der.integer(self.nonce),
            b"" if self.tsa is None else der.explicit(0, self.tsa),
            der.explicit(1, *self.extensions) if self.extensions else b"",
        )
        return self._edited("tst_info", value)

    def signed_attributes(self, content: bytes) -> list[bytes]:
        ids = self.ess if self.ess is not None else (Ess(self.signer.der),)
        honest = {
            CONTENT_TYPE: (der.oid(self.content_type),),
            MESSAGE_DIGEST: (der.octets(digest(self.digest, content)),),
            SIGNING_CERTIFICATE: (der.seq(der.seq(*(each.encode(1) for each in ids))),),
            SIGNING_CERTIFICATE_V2: (der.seq(der.seq(*(each.encode(2) for each in ids))),),
        }
        honest.update(dict(self.values))
        return [attribute(kind, *honest[kind]) for kind in self.attributes] + list(self.extra_attributes)

    def signer_info(self, content: bytes) -> bytes:
        attributes = self.signed_attributes(content)
        encoded = self._edited("attributes", der.set_of(*attributes)) if attributes else b""
        scheme = self.scheme or usual(self.signing_key or self.signer.key, self.digest)
        signature = self.signature
        if signature is None:
            signature = sign(self.signing_key or self.signer.key, encoded or content, scheme)
        sid = self.sid
        if sid is None and self.by_key:
            sid = der.tlv(0x80, self.signer.key.identifier)
        version = self.signer_version or (3 if self.by_key else 1)
        value = der.seq(
            der.integer(version),
            sid or der.seq(self.signer.issued_by, der.integer(self.signer.number)),
            digest_identifier(self.digest, null=self.digest_null),
            der.implicit(0, encoded) if encoded else b"",
            scheme.identifier() if self.algorithm is None else self.algorithm,
            der.octets(self._edited("signature", signature)),
            der.implicit(1, der.set_of(*self.unsigned)) if self.unsigned else b"",
        )
        return self._edited("signer_info", value)

    def embedded(self) -> tuple[bytes, ...]:
        if self.certificates is not None:
            return self.certificates
        chain, issuer = [self.signer.der], self.signer.issuer
        while issuer is not None and issuer.issuer is not None:
            chain.append(issuer.der)
            issuer = issuer.issuer
        return tuple(chain)

    def signed_data(self) -> bytes:
        content = self.tst_info()
        certificates = self.embedded()
        if self.sort_certificates:
            certificates = tuple(sorted(certificates))
        algorithms = (self.digest,) if self.digest_algorithms is None else self.digest_algorithms
        infos = [self.signer_info(content) for _ in range(self.signer_infos)]
        wrapped = self._edited("content", der.octets(content))
        value = der.seq(
            der.integer(self.version),
            der.set_of(*(digest_identifier(algorithm, null=self.digest_null) for algorithm in algorithms)),
            der.seq(der.oid(self.content_type), b"" if self.detached else der.explicit(0, wrapped)),
            self._edited("certificates", der.explicit(0, *certificates) if certificates else b""),
            der.explicit(1, *self.crls) if self.crls else b"",
            der.set_of(*infos),
        )
        return self._edited("signed_data", value)

    def token(self) -> bytes:
        value = der.seq(der.oid(self.outer_type), der.explicit(0, self.signed_data()))
        return self._edited("content_info", value)

    def status_info(self) -> bytes:
        return der.seq(
            der.integer(self.status),
            b"" if self.text is None else der.seq(der.utf8(self.text)),
            b"" if self.failure is None else der.named_bits(self.failure),
        )

    def make(self) -> bytes:
        if self.bare:
            return self.token()
        value = der.seq(self.status_info(), self.token() if self.with_token else b"")
        return self._edited("response", value)


@dataclass(frozen=True)
class Request:
    """A TimeStampReq to be made."""

    document: bytes = DOCUMENT
    digest: str = "sha256"
    imprint: bytes | None = None
    nonce: int | None = None
    policy: str | None = None
    certificates: bool = True
    version: int = 1

    @property
    def der(self) -> bytes:
        value = digest(self.digest, self.document) if self.imprint is None else self.imprint
        return der.seq(
            der.integer(self.version),
            der.seq(digest_identifier(self.digest), der.octets(value)),
            der.oid(self.policy) if self.policy else b"",
            b"" if self.nonce is None else der.integer(self.nonce),
            der.boolean(True) if self.certificates else b"",
        )


def stamped(moment: datetime) -> str:
    """Write a moment as a genTime of whole seconds."""
    return moment.strftime("%Y%m%d%H%M%SZ")


def own_id(**knobs: object) -> Ess:
    """Return what names the usual signer."""
    return Ess(house().signer.der, **knobs)


def with_ids(*ids: Ess, version: int = 2, **knobs: object) -> Recipe:
    """Return a recipe whose signed attributes, the fewest there can be, name these certificates."""
    kind = SIGNING_CERTIFICATE if version == 1 else SIGNING_CERTIFICATE_V2
    return Recipe(attributes=(CONTENT_TYPE, MESSAGE_DIGEST, kind), ess=ids, **knobs)
