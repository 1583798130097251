"""From the bytes of a reply to what its token says (RFC 3161, section 2.4.2; RFC 5652, section 5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from asn1crypto import algos, cms, core, tsp

from . import der
from .der import Node, check_algorithm, check_der, check_form, parse, shape
from .verdict import Refused

GRANTED = 0
GRANTED_WITH_MODIFICATIONS = 1

_STATUS = shape("status INTEGER, text? SEQUENCE, failure? BITS")
_CONTENT_INFO = shape("type OID, content [0]")
_SIGNED_DATA = shape(
    "version INTEGER, digest_algorithms SET, content SEQUENCE, certificates? [0], crls? [1], signers SET"
)
_ENCAPSULATED = shape("type OID, content? [0]")
_SIGNER = shape(
    "version INTEGER, signer_id ANY, digest_algorithm SEQUENCE, attributes? [0], "
    "signature_algorithm SEQUENCE, signature OCTETS, unsigned? [1]"
)
_INFO = shape(
    "version INTEGER, policy OID, imprint SEQUENCE, serial INTEGER, gen_time TIME, "
    "accuracy? SEQUENCE, ordering? BOOLEAN, nonce? INTEGER, tsa? [0], extensions? [1]"
)
_ACCURACY = shape("seconds? INTEGER, millis? [0]p, micros? [1]p")
_EXTENSION = shape("id OID, critical? BOOLEAN, value OCTETS")
IMPRINT = shape("algorithm SEQUENCE, hash OCTETS")

MAX_CERTIFICATES = 64
# A year: a clock that may be further off tells no time.
MAX_ACCURACY = timedelta(days=366)
_THOUSANDTHS = 999
_BY_KEY = 0x80
_CERTIFICATE_CHOICES = {der.SEQUENCE, 0xA0, 0xA1, 0xA2, 0xA3}
_GEN_TIME = re.compile(rb"(\d{14})(?:\.(\d+))?Z")
_MICROSECONDS = 6


@dataclass(frozen=True)
class Timestamp:
    """What a token says."""

    content: bytes  # the TSTInfo's bytes: what is signed, through its digest
    policy: str  # object identifier
    imprint_algorithm: str  # hash of the document, by its name
    imprint: bytes  # that hash
    serial: int  # serial number
    gen_time: datetime  # the stated time, UTC, cut to microseconds
    accuracy: timedelta | None  # how far off it may be, or None where the authority does not say
    nonce: int | None  # the request's, or None
    tsa: Node | None  # GeneralName of the authority, or None
    signer_id: Node  # SignerIdentifier
    digest_algorithm: str  # hash of the content, by its name
    attributes: Node | None  # the signed attributes, as they stand
    signature_algorithm: Node  # AlgorithmIdentifier of the signature
    signature: bytes  # the signature
    certificates: tuple[bytes, ...]  # embedded certificates, DER, in order
    notes: tuple[str, ...]  # what the signature does not cover


def granted_token(raw: bytes) -> tuple[Node, tuple[str, ...]]:
    """Return the token of a reply, or bytes that are a bare token themselves."""
    outer = parse(raw)
    parts = outer.children
    if parts and parts[0].tag == der.OID:
        return outer, ()
    if not parts:
        raise Refused("the reply is empty")
    parts[0].fields(_STATUS)
    status = tsp.PKIStatusInfo.load(parts[0].der, strict=True)
    code = int(status["status"])
    text = "; ".join(status["status_string"].native or ())
    failures = ", ".join(sorted(status["fail_info"].native or ()))
    stated = ", ".join(part for part in (text, failures) if part)
    if code not in {GRANTED, GRANTED_WITH_MODIFICATIONS}:
        raise Refused(f"authority refused: status {code}{f' ({stated})' if stated else ''}")
    if failures:
        raise Refused(f"the reply grants a token and reports a failure ({stated})")
    if len(parts) < 2:  # noqa: PLR2004 - status and token
        raise Refused("the reply says that a token was granted, and holds none")
    if len(parts) > 2:  # noqa: PLR2004 - status and token
        raise Refused("the reply has more parts than a status and a token")
    notes = [f"the reply's own text, which nobody signed: {text}"] if text else []
    if code == GRANTED_WITH_MODIFICATIONS:
        notes.append("granted with modifications")
    return parts[1], tuple(notes)


def read_timestamp(token: Node) -> Timestamp:
    """Read a token."""
    outer = token.fields(_CONTENT_INFO)
    kind = cms.ContentType.load(outer["type"].der).native
    if kind != "signed_data":
        raise Refused(f"it is no SignedData but {kind}")
    signed = outer["content"].only_child().fields(_SIGNED_DATA)
    content = _content(signed["content"])
    signers = signed["signers"].children
    if len(signers) != 1:
        raise Refused(f"it has {len(signers)} SignerInfos instead of one")
    signer = signers[0].fields(_SIGNER)
    digest = hash_name(signer["digest_algorithm"])
    algorithms = {hash_name(algorithm) for algorithm in signed["digest_algorithms"].children}
    if digest not in algorithms:
        raise Refused(
            f"it lists digest algorithms ({', '.join(sorted(algorithms)) or 'none'}), not its signer's"
        )
    certificates, notes = _certificates(signed.get("certificates"))
    _check_versions(signed["version"], signer, has_others=bool(notes))
    signer["signature_algorithm"].fields(der.ALGORITHM)
    if "crls" in signed:
        notes.append("embedded revocation lists were not used")
    if "unsigned" in signer:
        notes.append("it has unsigned attributes: nothing protects them, and nothing was taken from them")
    return Timestamp(
        content=content,
        **_info(content),
        signer_id=signer["signer_id"],
        digest_algorithm=digest,
        attributes=signer.get("attributes"),
        signature_algorithm=signer["signature_algorithm"],
        signature=signer["signature"].content,
        certificates=certificates,
        notes=tuple(notes),
    )


def embedded_certificates(raw: bytes) -> tuple[bytes, ...]:
    """Return the certificates that a token embeds, unexamined; none where it cannot be read."""
    try:
        check_form(raw)
        check_der(raw)
        return read_timestamp(granted_token(raw)[0]).certificates
    except (Refused, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        return ()


def hash_name(algorithm: Node) -> str:
    """Return the name of a hash algorithm."""
    check_algorithm(algorithm)
    return str(algos.DigestAlgorithm.load(algorithm.der, strict=True)["algorithm"].native)


def _content(encapsulated: Node) -> bytes:
    inner = encapsulated.fields(_ENCAPSULATED)
    kind = cms.ContentType.load(inner["type"].der).native
    if kind != "tst_info":
        raise Refused(f"its content is no TSTInfo but {kind}")
    if "content" not in inner:
        raise Refused("it has no content")
    octets = inner["content"].only_child()
    if octets.tag != der.OCTETS:
        raise Refused("its content is no OCTET STRING")
    check_der(octets.content)
    return octets.content


def _info(content: bytes) -> dict[str, Any]:
    info = parse(content).fields(_INFO)
    version = integer(info["version"])
    if version != 1:
        raise Refused(f"TSTInfo has version {version} instead of 1")
    for extension in info["extensions"].children if "extensions" in info else ():
        fields = extension.fields(_EXTENSION)
        if "critical" in fields and fields["critical"].content != b"\0":
            raise Refused(f"TSTInfo has a critical extension {dotted(fields['id'])}")
    imprint = info["imprint"].fields(IMPRINT)
    return {
        "policy": dotted(info["policy"]),
        "imprint_algorithm": hash_name(imprint["algorithm"]),
        "imprint": imprint["hash"].content,
        "serial": integer(info["serial"]),
        "gen_time": _gen_time(info["gen_time"].content),
        "accuracy": _accuracy(info["accuracy"].fields(_ACCURACY)) if "accuracy" in info else None,
        "nonce": integer(info["nonce"]) if "nonce" in info else None,
        "tsa": info["tsa"].only_child() if "tsa" in info else None,
    }


def dotted(node: Node) -> str:
    """Return an OBJECT IDENTIFIER as digits and points."""
    return str(core.ObjectIdentifier.load(node.der).native)


def integer(node: Node) -> int:
    """Return the value of an INTEGER."""
    return int.from_bytes(node.content, signed=True)


def _gen_time(text: bytes) -> datetime:
    match = _GEN_TIME.fullmatch(text)
    if match is None:
        raise Refused(f"genTime {text[:40]!r} is not written as YYYYMMDDhhmmss[.s]Z")
    try:
        moment = datetime.strptime(match[1].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise Refused(f"genTime {text[:40]!r} is no time") from None
    fraction = (match[2] or b"")[:_MICROSECONDS].ljust(_MICROSECONDS, b"0")
    return moment + timedelta(microseconds=int(fraction))


def _accuracy(fields: Mapping[str, Node]) -> timedelta:
    seconds, millis, micros = (
        integer(fields[name]) if name in fields else 0 for name in ("seconds", "millis", "micros")
    )
    longest = MAX_ACCURACY.total_seconds()
    if not 0 <= seconds <= longest or not (0 <= millis <= _THOUSANDTHS and 0 <= micros <= _THOUSANDTHS):
        raise Refused("its accuracy is out of range")
    return timedelta(seconds=seconds, milliseconds=millis, microseconds=micros)


def _check_versions(version: Node, signer: Mapping[str, Node], *, has_others: bool) -> None:
    """Check the versions that RFC 5652, sections 5.1 and 5.3, makes of what is there."""
    stated, allowed = integer(version), {3, 4, 5} if has_others else {3}
    if stated not in allowed:
        raise Refused(f"SignedData has version {stated} instead of 3")
    signer_id = signer["signer_id"]
    if signer_id.tag == der.SEQUENCE:
        signer_id.fields(der.ISSUER_AND_SERIAL)
    elif signer_id.tag != _BY_KEY:
        raise Refused("the signer is named in no way that there is")
    wanted = 1 if signer_id.tag == der.SEQUENCE else 3
    if integer(signer["version"]) != wanted:
        raise Refused(f"SignerInfo has version {integer(signer['version'])} instead of {wanted}")


def _certificates(embedded: Node | None) -> tuple[tuple[bytes, ...], list[str]]:
    choices = embedded.children if embedded else ()
    if any(choice.tag not in _CERTIFICATE_CHOICES for choice in choices):
        raise Refused("something that is no certificate is embedded as one")
    if len(choices) > MAX_CERTIFICATES:
        raise Refused(f"it embeds {len(choices)} certificates, more than {MAX_CERTIFICATES}")
    plain = tuple(choice.der for choice in choices if choice.tag == der.SEQUENCE)
    others = len(choices) - len(plain)
    return plain, [f"{others} embedded certificates of other kinds were not used"] if others else []
