"""`toolkit pairing`: noise in front of anybody's tools, and what training under it recorded."""

from __future__ import annotations

from pathlib import Path

import click

from toolkit.cli.output import FILE, json_option, print_json


@click.group()
def pairing() -> None:
    """Noise in front of anybody's tools: what was recorded of it."""


@pairing.command()
@click.argument("log", type=FILE)
@json_option
def verify(*, log: Path, as_json: bool) -> None:
    """Verify LOG, a record of training groups that `toolkit.pairing` wrote.

    Every schedule seed is derived again from design, seed, step, task and slot; observed rewards have to
    follow from true outcomes and schedules, and flags from both. True outcomes are taken at their word.

    \b
    Examples:
      toolkit pairing verify groups.jsonl
      toolkit pairing verify groups.jsonl --json
    """
    from toolkit.pairing.groups import verify as verified

    found = verified(log)
    if as_json:
        print_json({"record": str(log), **found._asdict()})
        return
    click.echo(
        f"verified   {found.groups} groups of {found.steps} steps, {found.rollouts} rollouts; "
        f"{found.zero_variance} without variance, {found.spurious} spurious"
    )
