"""Is the token for this document, and does it answer this request?"""

import hashlib
import hmac
from collections.abc import Mapping

from .der import Node, check_der, check_form, parse, shape
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
