"""Which time-stamping authorities are asked, and which are trusted: the options that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cli.output import FILE, say_line, with_options
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.prereg import evidence, timestamping, trust

DEFAULT = ("FreeTSA", "DigiCert")
DEMONSTRATED = ("Demonstration A", "Demonstration B")


trust_option = click.option(
    "--trust",
    "trust_files",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Trust file with further authorities that you know; the public ones shipped are known anyway.",
)
asking_options = with_options(
    click.option(
        "--authority",
        "addresses",
        multiple=True,
        metavar="URL",
        help="Authority to ask, at least two; else those of trust.toml, or FreeTSA and DigiCert.",
    ),
    trust_option,
    click.option(
        "--root",
        "roots",
        type=FILE,
        multiple=True,
        metavar="PEM",
        help="File with a pinned root certificate, where neither the token nor this system has it.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0.1, 600),
        default=30.0,
        help="Longest time for one exchange with an authority, in seconds.",
    ),
)


def demonstrated() -> tuple[timestamping.Source, ...]:
    """Return two authorities made for the occasion."""
    from toolkit.prereg.demonstration import DemonstrationAuthority

    return tuple(map(DemonstrationAuthority, DEMONSTRATED))


def online(
    addresses: Sequence[str],
    named: Sequence[trust.Trusted],
    known: Sequence[trust.Trusted],
    roots: Sequence[Path],
    timeout_s: float,
) -> tuple[timestamping.Source, ...]:
    """Return the authorities to ask over HTTP.

    Args:
        addresses: as the user gave them.
        named: those of the registration's own trust file.
        known: those that the user trusts.
        roots: files with root certificates.
        timeout_s: longest time for one exchange.

    Raises:
        UsageError: nobody trusted answers at an address, or they are fewer than two.
    """
    from toolkit.prereg.authority import Online
    from toolkit.prereg.pem import CERTIFICATE, find_pinned, read_blocks

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


def _known(address: str, known: Sequence[trust.Trusted]) -> trust.Trusted:
    for authority in known:
        if address.rstrip("/") == authority.address.rstrip("/"):
            return authority
    raise UsageError(
        f"nobody who is trusted answers at {address}",
        expected=", ".join(authority.address for authority in known),
        remedy="name the authority, its operator and its root's SHA-256 in a trust file: --trust FILE",
    )


def print_tokens(tokens: Sequence[evidence.Judged]) -> None:
    """Print one line a token."""
    for judged in tokens:
        verdict = judged.verdict
        line = f"  {judged.authority.name}: {verdict.gen_time:%Y-%m-%dT%H:%M:%SZ}, serial {verdict.serial}"
        say_line(line)
