"""Options of commands that play runs: which runs, where, and who does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from toolkit.cli import offers
from toolkit.cli.output import FOLDER, F, with_options
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from toolkit.lab.executors.executor import Executor

MOST_PROCESSES = 4096


def _options(left_out: str) -> Callable[[F], F]:
    return with_options(
        click.option(
            "--executor",
            type=click.Choice(["local", "ray"]),
            default="local",
            help="Who does the work: processes of this machine, or Ray; what they leave is the same.",
        ),
        click.option(
            "--processes",
            type=click.IntRange(1, MOST_PROCESSES),
            help=f"How many work at the same time; {left_out}.",
        ),
        click.option(
            "--address",
            metavar="HOST:PORT",
            help="The Ray cluster to work on, or `auto`; Ray is started on this machine if left out.",
        ),
    )


executor_options = _options("as many as there are processors if left out")
"""Of a command that uses all processors."""

placed_options = _options("one if left out; with Ray, as many as there are processors")
"""Of a command that works alone unless it is asked not to: each process opens a model."""

selection_options = with_options(
    click.option("--tier", "tiers", type=int, multiple=True, help="Only runs of this tier; may be repeated."),
    click.option(
        "--rule",
        "rules",
        multiple=True,
        shell_complete=offers.rules,
        help="Only runs that serve this rule; may be repeated.",
    ),
    click.option(
        "--run",
        "runs",
        multiple=True,
        metavar="GLOB",
        shell_complete=offers.runs,
        help="Only runs of this name; may be repeated.",
    ),
)


def folder_option(done: str) -> Callable[[F], F]:
    """Return the option that says where runs are played, or trained."""
    about = f"Where runs are {done} and kept; `runs/STUDY` of the project if left out."
    return click.option("--folder", type=FOLDER, help=about)


def chosen(executor: str, processes: int | None, address: str | None) -> Executor:
    """Return who is to do the work."""
    from toolkit.lab.executors.executor import RAY, Executor

    if address is not None and executor != RAY:
        raise UsageError(
            "--address is a Ray cluster's", remedy="add --executor ray, or leave the address out"
        )
    return Executor(executor, processes, address)
