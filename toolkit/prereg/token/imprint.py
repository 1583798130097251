"""Is the token for this document?"""

from __future__ import annotations

import hashlib
import hmac

from toolkit.prereg.token.signature import strong_hash
from toolkit.prereg.token.verdict import Refused


def check_imprint(
    algorithm: str, imprint: bytes, document: bytes | None, digest: tuple[str, bytes] | None
) -> None:
    """Check a token's imprint against a document or its known hash.

    Args:
        algorithm: the hash, as the token says.
        imprint: its value, as the token says.
        document: the document's bytes, or None where only a hash is known.
        digest: the document's hash: algorithm and bytes.

    Raises:
        Refused: a weak hash, or the hash of something else; the message says of what, where it can be told.
    """
    strong_hash(algorithm)
    if document is None and digest is None:
        raise Refused("neither a document nor its hash is known", is_incomplete=True)
    if digest is not None and digest[0] != algorithm:
        raise Refused(
            f"token is over a {algorithm} hash, and the hash given is {digest[0]}: the document is needed",
            is_incomplete=True,
        )
    found = (
        hashlib.new(algorithm, document).digest() if document is not None else digest[1] if digest else b""
    )
    if not hmac.compare_digest(found, imprint):
        hint = _hint(algorithm, imprint, document, found)
        raise Refused(
            f"token is for another document{hint}: the token has {algorithm} {imprint.hex()}, the document "
            f"{found.hex()}"
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
        slips[" (a byte order mark differs)"] = (
            b"\xef\xbb\xbf" + document,
            document.removeprefix(b"\xef\xbb\xbf"),
        )
    for slip, candidates in slips.items():
        if any(hashlib.new(algorithm, candidate).digest() == imprint for candidate in candidates):
            return slip
    return ""
