"""The anchor of a registration: what nobody can have known before the authorities answered.

    anchor = SHA-256 of the lines: digest of the frozen files, SHA-256 of each token, in the record's order

An author knows the digest as soon as the text is final. A token holds its authority's signature, and cannot
be had before it is asked for: what derives from both cannot have been derived before the freeze. Authorities
made for the occasion answer to the author alone; theirs is a demonstration of this, too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.files import file_sha256

if TYPE_CHECKING:
    from toolkit.prereg.registration import Registration


def anchor(registration: Registration) -> str:
    """Return a registration's anchor, in hexadecimal.

    Raises:
        IncompleteError: a token is not here, or cannot be read.
    """
    tokens = (registration.folder / authority.token_place for authority in registration.record.authorities)
    lines = [registration.sha256, *map(file_sha256, tokens)]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
