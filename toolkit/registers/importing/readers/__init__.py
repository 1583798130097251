"""Readers of logs: one module a format, the more particular first.

Each has `NAME` and `SOURCES`, words for people; `recognizes(path)`, which looks at a path's name and
the first bytes of what is there and never fails; and `read(paths)`, which gives the whole log or one clear
error.
"""

from pathlib import Path
from typing import Protocol

from toolkit.registers.importing.log import Log
from toolkit.registers.importing.readers import (
    every_eval_ever,
    groups,
    history,
    hub_dataset,
    inspect_logs,
    lm_eval,
    tables,
    trl,
    verl,
)


class Reader(Protocol):
    """A module that reads a format."""

    NAME: str
    SOURCES: str

    def recognizes(self, path: Path) -> bool:
        """Whether a path is of the format."""

    def read(self, paths: list[Path]) -> Log:
        """Read a log."""


READERS: tuple[Reader, ...] = (
    *(inspect_logs, lm_eval, every_eval_ever, trl, verl, groups),
    *(hub_dataset, history, tables),
)
