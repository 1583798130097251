"""Options of commands whose work other processes can do: how many, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from toolkit.study.executors.executor import Executor

MOST_PROCESSES = 4096

F = TypeVar("F", bound=Callable[..., Any])


def executor_options(command: F) -> F:
    """Add `--executor`, `--processes` and `--address` to a command that uses all processors."""
    return _with_options(command, "as many as there are processors if left out")


def placed_options(command: F) -> F:
    """Add the same to a command that works alone unless it is asked not to: each process opens a model."""
    return _with_options(command, "one if left out; with Ray, as many as there are processors")


def _with_options(command: F, left_out: str) -> F:
    options = (
        click.option(
            "--executor",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
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
    for option in reversed(options):
        command = option(command)
    return command


def chosen(executor: str, processes: int | None, address: str | None) -> Executor:
    """Return who is to do the work.

    Raises:
        UsageError: an address of Ray, and another executor.
    """
    from toolkit.study.executors.executor import RAY, Executor

    if address is not None and executor != RAY:
        raise UsageError(
            "--address is a Ray cluster's", remedy="add --executor ray, or leave the address out"
        )
    return Executor(executor, processes, address)
