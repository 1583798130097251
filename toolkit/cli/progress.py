"""Progress on stderr, where a person is watching."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Watch = Callable[[int, int, str], None]
    Say = Callable[[str], None]


@contextmanager
def steps(task: str) -> Iterator[Callable[[str], None]]:
    """Show what is being worked on, on a terminal; say nothing elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(task) as status:
        yield lambda step: status.update(f"{task}: {step}")


@contextmanager
def counted(task: str) -> Iterator[tuple[Watch, Say]]:
    """Show how much of a known number of steps is done, and the time left, on a terminal.

    Yields:
        What is told (done, total, doing) after every step, and what prints a message on stderr in between.
    """
    import click
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from toolkit.cli.output import visible

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_: None, lambda text: click.echo(visible(text), err=True)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        bar = shown.add_task(task, total=None)

        def watch(done: int, total: int, doing: str) -> None:
            shown.update(bar, completed=done, total=total, description=f"{task}: {doing}")

        yield watch, lambda text: shown.console.print(visible(text), markup=False, highlight=False)
