"""Somebody's log, whatever program wrote it, as a table with a row an episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.registers.episode_counts import OUTCOMES

if TYPE_CHECKING:
    import polars as pl

FILE = "file"
"""Column with the file that a row came from: its name without its ending, or its path below a folder."""


@dataclass(frozen=True)
class Log:
    """A log."""

    format: str  # what wrote it, in words
    # A row an episode, numbered in `ROW`. A column has a register's name where the log says what the
    # register's column means (`task`, `schedule` from 0, `seed`, `step`, `true_success`, `score`,
    # `launched_at`, `prompt`), and a name of its own otherwise.
    table: pl.DataFrame
    # Columns that say something of a whole run, such as its model: arms are looked for among them
    of_run: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what the log says of its episodes or runs and no column has, in words
    files: tuple[Path, ...] = ()  # what was read, in order
    # Whether rows are steps of a run, and an empty outcome says that it was not measured there
    is_history: bool = False

    def measured(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return the rows of the log; of a history those at which the outcome was measured."""
        told = [columns[name] for name in OUTCOMES if columns.get(name) in self.table.columns]
        return self.table.drop_nulls(told) if self.is_history and told else self.table
