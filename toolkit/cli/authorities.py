"""Which time-stamping authorities are asked, and which are trusted: the options that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cli.output import FILE, say_line, with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.prereg import evidence


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


def print_tokens(tokens: Sequence[evidence.Judged]) -> None:
    """Print one line a token."""
    for judged in tokens:
        verdict = judged.verdict
        line = f"  {judged.authority.name}: {verdict.gen_time:%Y-%m-%dT%H:%M:%SZ}, serial {verdict.serial}"
        say_line(line)
