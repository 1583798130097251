"""`--require`: what the registration of a verdict has to stand on, for commands that show verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cli import output
from toolkit.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.decisions.decision import Decision
    from toolkit.prereg.verification import Standing

require_option = click.option(
    "--require",
    "least",
    type=click.Choice(("public", "demonstration")),
    help="End with exit code 1 where a registration stands on less: for a gate in CI.",
)


def standings_of(decisions: Iterable[Decision]) -> dict[str, Standing]:
    """Return what registrations stand on, by name: of several studies the least."""
    from toolkit.prereg.verification import rank

    found: dict[str, Standing] = {}
    for decision in decisions:
        name = decision.registration[0]
        found[name] = min(found.get(name, decision.standing), decision.standing, key=rank)
    return found


def end(context: click.Context, standings: Mapping[str, Standing], least: str | None) -> None:
    """End with exit code 1 where a registration failed, or stands on less than is required.

    Called when everything is printed: a verdict is shown as what it is.
    """
    from toolkit.prereg.verification import require

    try:
        require(standings, least)
    except VerificationError as error:
        output.print_error(error)
        context.exit(error.exit_code)
