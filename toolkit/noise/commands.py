"""`toolkit noise`: faults in front of anybody's tools."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.options import FILE, argument, command, flag, json_option, option
from toolkit.cli.output import print_json, remark, say_line, shorten, visible_lines
from toolkit.errors import UsageError, VerificationError
from toolkit.noise.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.noise.mcp.record import Difference, Record
    from toolkit.noise.session import Session

SHOWN = 300
WHOLE_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,20}|[0-9]{1,25}")


class Seed(click.ParamType[int]):
    """A whole number in [0, 2^64), in decimal or, after 0x, in hexadecimal."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seed."""
        if isinstance(value, int):
            return value
        if not WHOLE_NUMBER.fullmatch(value):
            self.fail(f"{value[:30]!r} is no whole number", param, ctx)
        seed = int(value, 16 if value.startswith("0x") else 10)
        if seed >= 1 << 64:
            self.fail("a seed lies in [0, 2^64)", param, ctx)
        return seed


timeout_option = option(
    "--timeout",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=60.0,
    help="Time limit for an answer of the server, in seconds.",
)


@command()
def mcp(
    *,
    command: tuple[str, ...] = argument(nargs=-1, required=True),
    regime: str = option(
        type=click.Choice(list(REGIMES)),
        metavar="REGIME",
        required=True,
        help=f"The noise: {', '.join(REGIMES)}.",
    ),
    schedule: int = option(type=Seed(), required=True, help="Seed of the schedule."),
    tools: Path | None = option(type=FILE, help="Declaration of the tools, in TOML."),
    proposed: bool = flag(help="Without a declaration: use what the server says of its tools."),
    record: Path | None = option(type=FILE, help="File to which each call is written as a line of JSON."),
    timeout: float = timeout_option,
    as_json: bool = json_option,  # noqa: ARG001 - read where errors are printed
) -> None:
    """Inject noise into the calls of an MCP server.

    It is a proxy on stdin and stdout.

    COMMAND starts the server. The schedule decides what happens to a call by its event key (tool, resource,
    repeat index), whatever else was called. Everything else passes through unchanged, except that the list of
    tools gains wait(seconds), for rate limits, and under faults loses its output schemas, which a fault would
    violate. Calls are made one at a time. stdout belongs to the protocol: --json affects errors only.

    \b
    Examples:
      toolkit noise mcp --regime faults_p025 --schedule 7 --tools tools.toml \\
        -- npx some-server
      toolkit noise mcp --regime clean --schedule 7 --tools tools.toml \\
        --record calls.jsonl -- npx some-server
    """
    from toolkit.files import check_target
    from toolkit.noise.declaration import read_declaration
    from toolkit.noise.mcp.proxy import Noise, serve

    if (tools is None) != proposed:
        raise UsageError(
            "the kinds of the server's tools have to be confirmed" if tools is None else "one of two, please",
            expected="either --tools DECLARATION.toml or --proposed",
            remedy="toolkit noise propose -- COMMAND > tools.toml, look at it, and give --tools tools.toml",
        )
    if record is not None:
        check_target(record)
    declaration = None if tools is None else read_declaration(tools)
    serve(Noise(REGIMES[regime], schedule, declaration, record, timeout), command)


@command()
def propose(
    *,
    command: tuple[str, ...] = argument(nargs=-1),
    openapi: Path | None = option(
        type=FILE, help="OpenAPI 3 document (JSON or YAML) to read instead of a server."
    ),
    timeout: float = timeout_option,
    as_json: bool = json_option,
) -> None:
    """Propose a declaration of tools for you to check.

    It is made from a server's list of tools, or from an OpenAPI document.

    \b
    Examples:
      toolkit noise propose --openapi interface.yaml > tools.toml
      toolkit noise propose --json -- npx some-server
    """
    from toolkit.noise.mcp import proposal

    if bool(command) == (openapi is not None):
        raise UsageError("name one source of tools", expected="either -- COMMAND… or --openapi FILE")
    if openapi is not None:
        name, proposed = proposal.from_openapi(proposal.read_openapi(openapi), openapi)
    else:
        name, proposed = asyncio.run(proposal.ask(command, timeout))
    text = proposal.text_of(name, proposed)
    if as_json:
        doubts = {each.tool.name: list(each.doubts) for each in proposed if each.doubts}
        declared = proposal.confirmed(name, proposed).document()
        print_json(proposal.ProposalDocument(declared, doubts))
    else:
        click.echo(visible_lines(text), nl=False)


@command()
def replay(
    *,
    file: Path = argument(type=FILE),
    command: tuple[str, ...] = argument(nargs=-1),
    timeout: float = timeout_option,
    as_json: bool = json_option,
) -> None:
    """Draw every fate in a record anew.

    With COMMAND its calls are also made again, on a fresh server.

    Offline, each call has to meet what the record's schedule gives, and each faulty answer has to be what its
    fault makes of the server's. On a fresh server, under the same noise, each answer is compared. Exit code
    1: the record does not hold, or an answer differs.

    \b
    Examples:
      toolkit noise replay calls.jsonl
      toolkit noise replay calls.jsonl --json -- npx some-server
    """
    from toolkit.noise.mcp.record import NoiseReplayDocument, play_again, read_record, verify

    record = read_record(file)
    session = verify(record)
    found = asyncio.run(play_again(record, command, timeout)) if command else None
    if as_json:
        print_json(
            NoiseReplayDocument(
                verdict="verified",
                regime=record.regime,
                schedule=record.schedule,
                calls=len(session.calls),
                faults=len(session.exposures),
                end=None if record.end is None else record.end.end,
                is_cut=record.is_cut,
                differences=found,
            )
        )
    else:
        _print(record, session, found)
    if found:
        raise click.exceptions.Exit(VerificationError.exit_code)


def _print(record: Record, session: Session, found: Sequence[Difference] | None) -> None:
    made = f"calls: {len(session.calls)}, faults: {len(session.exposures)}"
    say_line(f"{made}; every fate is what schedule {record.schedule} gives under {record.regime}")
    if record.end is None:
        half = ", half a line is dropped" if record.is_cut else ""
        remark(f"the record has no last line: the proxy was killed{half}")
    for each in found or ():
        say_line(f"call {each.call}, {each.tool}: answered otherwise")
        for name, answer in (("recorded", each.recorded), ("now", each.found)):
            say_line(f"  {name}: {shorten(json.dumps(answer), SHOWN)}")
    if found is not None:
        say_line(f"on the fresh server {len(found)} of {len(record.calls)} calls are answered otherwise")
