"""Progress on stderr, where a person is watching."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
