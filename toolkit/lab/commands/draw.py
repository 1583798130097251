"""`toolkit draw`: one draw, explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from toolkit.cli.options import argument, command, json_option
from toolkit.cli.output import print_json, remark, say_line
from toolkit.errors import UsageError
from toolkit.noise.commands import Seed
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from toolkit.noise.draws import Draw

LONGEST_NAME = 200


class DrawDocument(Document, frozen=True):
    """A draw of a schedule, which anybody can recompute."""

    digest: Annotated[str, about("SHA-256 of the seed and the event key, hexadecimal.")]
    gate: Annotated[float, about("Its first word, in [0, 1): whether anything happens.")]
    type: Annotated[float, about("Its second word: which fault.")]
    magnitude: Annotated[float, about("Its third word: how much of it.")]


@command()
def draw(
    *,
    seed: int = argument(type=Seed()),
    tool: str = argument(),
    resource: str | None = argument(required=False),
    repeat: int | None = argument(required=False, type=click.IntRange(min=0, max=(1 << 64) - 1)),
    as_json: bool = json_option,
) -> None:
    """Draw the noise of one event: what schedule SEED gives for (TOOL, RESOURCE, REPEAT), or for the grader.

    RESOURCE is the record that a call is about: a customer for get_customer, list_orders and create_ticket, a
    product for check_inventory and reserve_stock, an order for every other tool, and * for search_customers.
    REPEAT counts from 0. `toolkit episode play --full` shows the keys of an episode.

    To recompute a draw: SHA-256 of "noise/v1", a zero byte, the seed, and each field as a tag (i or
    s), its length in 4 bytes and its payload (a number in 8 bytes, or UTF-8), numbers big endian. The first
    three words of 8 bytes, shifted right by 11 and divided by 2^53, are gate, type and magnitude.

    \b
    Examples:
      toolkit draw 0 get_order O-10233 0
      toolkit draw 42 grader --json
    """
    from toolkit.noise.draws import Schedule

    if tool == "grader" and resource is None:
        drawn = Schedule(seed).grader()
    elif resource is None or repeat is None:
        raise UsageError(
            "an event key has a tool, a resource and a repeat index",
            expected="toolkit draw SEED TOOL RESOURCE REPEAT, or toolkit draw SEED grader",
        )
    else:
        _check_text(tool, resource)
        _hint(tool, resource)
        drawn = Schedule(seed).draw(tool, resource, repeat)
    numbers = {"gate": drawn.gate, "type": drawn.type, "magnitude": drawn.magnitude}
    if as_json:
        print_json(DrawDocument(drawn.digest.hex(), **numbers))
        return
    say_line(f"digest     {drawn.digest.hex()}")
    for name, number in numbers.items():
        say_line(f"{name:10} {number:.17g}")
    say_line()
    for regime, fate in _fates(tool, resource, repeat or 0, drawn):
        say_line(f"{regime:24}  {fate}")


def _check_text(*names: str) -> None:
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError("a name must be text in Unicode", found=ascii(name)) from None
        if len(name) > LONGEST_NAME:
            raise UsageError(f"a name has at most {LONGEST_NAME} characters", found=len(name))


def _hint(tool: str, resource: str) -> None:
    """Say so where no episode draws this key: no such tool, or an identifier that is not in upper case."""
    from difflib import get_close_matches

    from toolkit.lab.backoffice.tools import TOOLS

    if tool not in TOOLS:
        meant = "".join(f"; {name} is one" for name in get_close_matches(tool, TOOLS, 1))
        remark(f"note: {tool} is no tool of the back office{meant}")
    elif resource != resource.upper():
        remark(f"note: in episodes identifiers are in upper case: {resource.upper()}")


def _fates(tool: str, resource: str | None, repeat: int, drawn: Draw) -> list[tuple[str, str]]:
    from toolkit.lab.backoffice.tools import TOOLS
    from toolkit.noise import regimes

    if resource is None:
        return [
            (regime.name, "a success is graded a failure" if drawn.gate < regime.flip_rate else "no flip")
            for regime in regimes.REGIMES.values()
            if regime.flip_rate
        ]
    if tool not in TOOLS:
        return [("every regime", f"{tool} is no tool of the back office: nothing happens")]
    fates = []
    for regime in regimes.REGIMES.values():
        if regime.ceiling:
            fault = regime.fault(TOOLS[tool], repeat, drawn)
            fates.append((regime.name, f"{fault}: {regimes.ABOUT[fault]}" if fault else "no fault"))
    return fates
