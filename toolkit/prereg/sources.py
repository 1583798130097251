"""Which time-stamping authorities are asked: those made for the occasion, or those on the network."""

from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.prereg.authority import Online
from toolkit.prereg.demonstration import DemonstrationAuthority
from toolkit.prereg.pem import CERTIFICATE, find_pinned, read_blocks
from toolkit.prereg.timestamping import Source
from toolkit.prereg.trust import Trusted

DEFAULT = ("FreeTSA", "DigiCert")
DEMONSTRATED = ("Demonstration A", "Demonstration B")


def demonstrated() -> tuple[Source, ...]:
    """Return two authorities made for the occasion."""
    return tuple(map(DemonstrationAuthority, DEMONSTRATED))


def online(
    addresses: Sequence[str],
    named: Sequence[Trusted],
    known: Sequence[Trusted],
    roots: Sequence[Path],
    timeout_s: float,
) -> tuple[Source, ...]:
    """Return the authorities to ask over HTTP."""
    given = [der for path in roots for der in read_blocks(path, CERTIFICATE)]
    chosen = [_known(address, (*named, *known)) for address in addresses]
    chosen = chosen or list(named) or [authority for authority in known if authority.name in DEFAULT]
    if len({authority.operator for authority in chosen}) < 2:  # noqa: PLR2004 - two say more than one
        raise UsageError(
            "at least two authorities of different operators are needed",
            found=", ".join(f"{authority.name} ({authority.operator})" for authority in chosen) or "none",
            remedy="--authority URL, once each",
        )
    return tuple(
        Online(authority, find_pinned(authority.roots, given), timeout_s)
        for authority in dict.fromkeys(chosen)
    )


def _known(address: str, known: Sequence[Trusted]) -> Trusted:
    for authority in known:
        if address.rstrip("/") == authority.address.rstrip("/"):
            return authority
    raise UsageError(
        f"nobody who is trusted answers at {address}",
        expected=", ".join(authority.address for authority in known),
        remedy="name the authority, its operator and its root's SHA-256 in a trust file: --trust FILE",
    )
