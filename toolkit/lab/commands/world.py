"""`toolkit world`: worlds of other projects, and whether they are graded here as there."""

from __future__ import annotations

import click

from toolkit.cli.options import argument, group, json_option, option
from toolkit.cli.output import stepped, tell
from toolkit.errors import UsageError

NAMES = ("bfcl",)


@group()
def world() -> None:
    """Work with worlds of other projects."""


@world.command()
def check(
    *,
    name: str = argument(metavar="WORLD"),
    changes: int = option(
        type=click.IntRange(0, 100_000), default=3000, show_default=True, help="Number of altered turns."
    ),
    as_json: bool = json_option,
) -> None:
    """Compare our grading of WORLD with that of its own project.

    All answers and altered turns are graded.

    Studies in such a world do this before anything else. WORLD is bfcl, which needs: pip install --no-deps
    bfcl-eval==2025.6.8 mpmath

    \b
    Examples:
      toolkit world check bfcl
      toolkit world check bfcl --changes 10000 --json
    """
    from toolkit.lab.worlds.bfcl.world import check_parity, steps_of

    if name not in NAMES:
        raise UsageError(f"there is no foreign world {name!r}", expected=", ".join(NAMES))
    with stepped("comparing verdicts", steps_of(changes)) as say:
        found = check_parity(changes, say)
    same = f"{found.changed} of {found.changed} get one verdict here and there"
    tell(
        found,
        *(
            f"{of:14}  {number} of {number} answers pass here and there"
            for of, number in found.answers.items()
        ),
        f"{'changed turns':14}  {same}; {found.passing} pass",
        as_json=as_json,
    )
