"""The anchor of a registration: what nobody can have known before the authorities answered.

    anchor = SHA-256 of the lines: digest of the frozen files, SHA-256 of each token, in the record's order

An author knows the digest as soon as the text is final. A token holds its authority's signature, and cannot
be had before it is asked for: what derives from both cannot have been derived before the freeze. Authorities
made for the occasion answer to the author alone; theirs is a demonstration of this, too. What an amendment
registers is anchored in the amendment likewise:

    anchor = SHA-256 of the lines: anchor of the registration, link of the amendment, SHA-256 of what each of
             its authorities signed, in the order of the trust file

That nobody knew an anchor before does not say that nobody chose it: an author can ask an authority again, and
keep the answer that suits.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.files import file_sha256, read_bytes
from toolkit.prereg.evidence import places
from toolkit.prereg.token.timestamp import granted_token, read_timestamp
from toolkit.prereg.token.verdict import Refused

if TYPE_CHECKING:
    from toolkit.prereg.registration import Registration


def anchor(registration: Registration) -> str:
    """Return a registration's anchor, in hexadecimal.

    Raises:
        IncompleteError: a token is not here, or cannot be read.
    """
    tokens = (registration.folder / authority.token_place for authority in registration.record.authorities)
    return _digest([registration.sha256, *map(file_sha256, tokens)])


def amendment_anchor(registration: Registration, amendment: str) -> str:
    """Return the anchor of what an amendment registers, in hexadecimal.

    Args:
        registration: the registration.
        amendment: id of one of its amendments.

    Raises:
        IncompleteError: a token of the freeze or of the amendment is not here, or cannot be read.
        DamagedError: a token of the amendment is none.
    """
    entry = next(entry for entry in registration.entries if entry.id == amendment)
    signed = []
    for authority in registration.trust_in(entry):
        place = registration.folder / places(amendment, authority)[0]
        try:
            token, _ = granted_token(read_bytes(place))
            content = read_timestamp(token).content
        except (Refused, ValueError, TypeError) as error:
            raise DamagedError(
                f"a token of amendment {amendment} is none, and what it registers is anchored in it",
                found=error,
                where=place,
                remedy="restore the registration's evidence",
            ) from None
        signed.append(hashlib.sha256(content).hexdigest())
    return _digest([anchor(registration), entry.link, *signed])


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
