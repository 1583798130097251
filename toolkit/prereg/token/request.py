"""Does the reply answer this request?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.prereg.token.der import check_der, check_form
from toolkit.prereg.token.node import BOOLEAN, INTEGER, OID, SEQUENCE, Shape, parse
from toolkit.prereg.token.timestamp import IMPRINT, dotted, hash_name, integer
from toolkit.prereg.token.verdict import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.prereg.token.node import Node
    from toolkit.prereg.token.timestamp import Timestamp

_REQUEST: Shape = (
    ("version", INTEGER),
    ("imprint", SEQUENCE),
    ("policy?", OID),
    ("nonce?", INTEGER),
    ("certificates?", BOOLEAN),
    ("extensions?", 0xA0),
)


def read_request(raw: bytes) -> Mapping[str, Node]:
    """Return the fields of a request.

    Raises:
        Refused: it is none.
    """
    check_form(raw)
    check_der(raw)
    request = parse(raw).fields(_REQUEST)
    if integer(request["version"]) != 1:
        raise Refused(f"the request has version {integer(request['version'])} instead of 1")
    return request


def check_request(raw: bytes, timestamp: Timestamp) -> None:
    """Check a token against the request that it is said to answer (RFC 3161, section 2.2).

    Raises:
        Refused: the request is damaged, or asks for another imprint, nonce or policy.
    """
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
