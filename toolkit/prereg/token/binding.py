"""Is the token for this document and request, and which signer and content does it name (RFC 5035)?"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence

from asn1crypto import cms

from .certificate import Certificate, directory_name
from .der import ALGORITHM, ISSUER_AND_SERIAL, OCTETS, SET, Node, check_der, check_form, parse, shape
from .signature import strong_hash
from .timestamp import IMPRINT, Timestamp, dotted, hash_name, integer
from .verdict import Refused

_REQUEST = shape(
    "version INTEGER, imprint SEQUENCE, policy? OID, nonce? INTEGER, certificates? BOOLEAN, extensions? [0]"
)


def read_request(raw: bytes) -> Mapping[str, Node]:
    """Return the fields of a request."""
    check_form(raw)
    check_der(raw)
    request = parse(raw).fields(_REQUEST)
    if integer(request["version"]) != 1:
        raise Refused(f"the request has version {integer(request['version'])} instead of 1")
    return request


def check_request(raw: bytes, timestamp: Timestamp) -> None:
    """Check a token against the request that it is said to answer (RFC 3161, section 2.2)."""
    request = read_request(raw)
    imprint = request["imprint"].fields(IMPRINT)
    asked = (hash_name(imprint["algorithm"]), imprint["hash"].content)
    nonce = integer(request["nonce"]) if "nonce" in request else None
    mismatches = (
        ("imprint", asked != (timestamp.imprint_algorithm, timestamp.imprint)),
        ("nonce", nonce != timestamp.nonce),
        ("policy", "policy" in request and dotted(request["policy"]) != timestamp.policy),
    )
    wrong = [name for name, differs in mismatches if differs]
    if wrong:
        raise Refused(f"reply does not answer this request ({', '.join(wrong)} differs)")


def check_imprint(
    algorithm: str, imprint: bytes, document: bytes | None, digest: tuple[str, bytes] | None
) -> None:
    """Check a token's imprint against a document or its known hash."""
    strong_hash(algorithm)
    if document is None and digest is None:
        raise Refused("neither a document nor its hash is known", is_incomplete=True)
    if digest is not None and digest[0] != algorithm:
        raise Refused(
            f"token is over a {algorithm} hash, and the hash given is {digest[0]}: the document is needed",
            is_incomplete=True,
        )
    known = digest[1] if digest else b""
    computed = known if document is None else hashlib.new(algorithm, document).digest()
    if not hmac.compare_digest(computed, imprint):
        hint = _hint(algorithm, imprint, document, computed)
        raise Refused(
            f"token is for another document{hint}: the token has {algorithm} {imprint.hex()}, the document "
            f"{computed.hex()}"
        )


def _hint(algorithm: str, imprint: bytes, document: bytes | None, found: bytes) -> str:
    """Return what would explain a mismatch: slips that people make when they hash a file."""
    hexadecimal = found.hex().encode()
    slips = {
        " (it is for the hash of the hash)": (found,),
        " (it is for the hash as hexadecimal text)": (hexadecimal, hexadecimal + b"\n", hexadecimal.upper()),
    }
    if document is not None:
        unix = document.replace(b"\r\n", b"\n")
        slips[" (the line endings differ)"] = (unix, unix.replace(b"\n", b"\r\n"))
        slips[" (a line end at the end of the file differs)"] = (document + b"\n", document.rstrip(b"\r\n"))
        mark = b"\xef\xbb\xbf"
        slips[" (a byte order mark differs)"] = (mark + document, document.removeprefix(mark))
    for slip, candidates in slips.items():
        if any(hashlib.new(algorithm, candidate).digest() == imprint for candidate in candidates):
            return slip
    return ""


CONTENT_TYPE = "1.2.840.113549.1.9.3"
MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
SIGNING_TIME = "1.2.840.113549.1.9.5"
ALGORITHM_PROTECTION = "1.2.840.113549.1.9.52"
SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.12"
SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.47"

_NAMES = {
    CONTENT_TYPE: "content_type",
    MESSAGE_DIGEST: "message_digest",
    SIGNING_TIME: "signing_time",
    ALGORITHM_PROTECTION: "cms_algorithm_protection",
    SIGNING_CERTIFICATE: "signing_certificate",
    SIGNING_CERTIFICATE_V2: "signing_certificate_v2",
}
_ATTRIBUTE = shape("type OID, values SET")
_SIGNING_CERTIFICATE = shape("certificates SEQUENCE, policies? SEQUENCE")
_IDENTIFIER_V1 = shape("hash OCTETS, place? SEQUENCE")
_IDENTIFIER_V2 = shape("algorithm? SEQUENCE, hash OCTETS, place? SEQUENCE")
_PROTECTION = shape("digest SEQUENCE, signature? [1], code? [2]")


def check_certificate_id(timestamp: Timestamp, signer: Certificate) -> list[str]:
    """Check that the signed attributes name the signing certificate by its hash."""
    first, second = (_values(timestamp, wanted) for wanted in (SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2))
    if not first and not second:
        raise Refused("no signing certificate is named in the signed attributes")
    for value in (*first, *second):
        identifiers = value.fields(_SIGNING_CERTIFICATE)["certificates"].children
        if not identifiers:
            raise Refused("the list of signing certificates is empty")
        _check_identifier(identifiers[0], signer, is_first_version=value in first)
    return [] if second else ["it names its signing certificate by SHA-1 alone (ESSCertID, version 1)"]


def check_further_ids(timestamp: Timestamp, path: Sequence[Certificate]) -> None:
    """Check that further certificates named by signed attributes are those of the path (RFC 5035, 5.4)."""
    for kind in (SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2):
        for value in _values(timestamp, kind):
            for identifier in value.fields(_SIGNING_CERTIFICATE)["certificates"].children[1:]:
                if not any(_is_named(identifier, kind, certificate) for certificate in path):
                    raise Refused("the signed attributes name a certificate that is not of the chain")


def _is_named(identifier: Node, kind: str, certificate: Certificate) -> bool:
    try:
        _check_identifier(identifier, certificate, is_first_version=kind == SIGNING_CERTIFICATE)
    except Refused:
        return False
    return True


def check_attributes(timestamp: Timestamp) -> None:
    """Check that the signed attributes are there once each, and sign this content."""
    seen = set()
    for kind, values in _attributes(timestamp):
        name = _NAMES.get(kind, kind)
        if kind in seen or (kind in _NAMES and len(values) != 1):
            raise Refused(f"signed attribute {name} is not there once, with one value")
        seen.add(kind)
    content_type = _values(timestamp, CONTENT_TYPE)
    if not content_type or cms.ContentType.load(content_type[0].der).native != "tst_info":
        raise Refused("signed attribute content_type is missing, or is not TSTInfo")
    digest = _values(timestamp, MESSAGE_DIGEST)
    if not digest or digest[0].tag != OCTETS:
        raise Refused("signed attribute message_digest is missing")
    if timestamp.digest_algorithm not in hashlib.algorithms_available:
        raise Refused(f"digest algorithm {timestamp.digest_algorithm} is unknown")
    computed = hashlib.new(timestamp.digest_algorithm, timestamp.content, usedforsecurity=False).digest()
    if digest[0].content != computed:
        raise Refused("signed attribute message_digest is not the hash of the content")
    for protection in _values(timestamp, ALGORITHM_PROTECTION):
        _check_protection(protection, timestamp)


def signed_bytes(timestamp: Timestamp) -> bytes:
    """Return what the signature is over: the attributes as a SET OF (RFC 5652, section 5.4)."""
    return b"" if timestamp.attributes is None else bytes([SET]) + timestamp.attributes.der[1:]


def _attributes(timestamp: Timestamp) -> list[tuple[str, tuple[Node, ...]]]:
    nodes = timestamp.attributes.children if timestamp.attributes else ()
    fields = [attribute.fields(_ATTRIBUTE) for attribute in nodes]
    return [(dotted(attribute["type"]), attribute["values"].children) for attribute in fields]


def _values(timestamp: Timestamp, wanted: str) -> list[Node]:
    return [value for kind, values in _attributes(timestamp) if kind == wanted for value in values]


def _check_identifier(identifier: Node, signer: Certificate, *, is_first_version: bool) -> None:
    fields = identifier.fields(_IDENTIFIER_V1 if is_first_version else _IDENTIFIER_V2)
    algorithm = "sha1" if is_first_version else "sha256"
    if "algorithm" in fields:
        algorithm = hash_name(fields["algorithm"])
        strong_hash(algorithm)
    if fields["hash"].content != hashlib.new(algorithm, signer.der, usedforsecurity=False).digest():
        raise Refused("the signed attributes name another certificate")
    if "place" not in fields:
        return
    named = fields["place"].fields(ISSUER_AND_SERIAL)
    issuers = [directory_name(name) for name in named["issuer"].children]
    if issuers != [signer.issuer] or integer(named["serial"]) != signer.serial:
        raise Refused("the signed attributes name another issuer or serial number")


def _check_protection(protection: Node, timestamp: Timestamp) -> None:
    """Check the algorithms that the signed attributes repeat (RFC 6211)."""
    fields = protection.fields(_PROTECTION)
    named = fields["signature"].children[0].der if "signature" in fields else b""
    wanted = timestamp.signature_algorithm.fields(ALGORITHM)["algorithm"].der
    if (hash_name(fields["digest"]), named) != (timestamp.digest_algorithm, wanted):
        raise Refused("signed attribute cms_algorithm_protection names other algorithms")
