"""Somebody's log, whatever program wrote it, as a table with a row an episode."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.registers.episode_counts import OUTCOMES
from toolkit.registers.imported.source import ROW

if TYPE_CHECKING:
    import polars as pl

ON_THE_HUB = "hf://"
FILE = "file"
"""Column with the file that a row came from: its name without its ending, or its path below a folder."""


@dataclass(frozen=True)
class Log:
    """A log.

    Args:
        format: what wrote it, in words.
        table: a row an episode, numbered in `ROW`. A column has a register's name where the log says what the
            register's column means (`task`, `schedule` from 0, `seed`, `step`, `true_success`, `score`,
            `launched_at`, `prompt`), and a name of its own otherwise.
        of_run: columns that say something of a whole run, such as its model: arms are looked for among them.
        left_out: what the log says of its episodes or runs and no column has, in words.
        files: what was read, in order.
        is_history: whether rows are steps of a run, and an empty outcome says that it was not measured there.
    """

    format: str
    table: pl.DataFrame
    of_run: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    is_history: bool = False

    def measured(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return the rows of the log; of a history those at which the outcome was measured.

        Args:
            columns: column of the registers → column of the log.
        """
        told = [columns[name] for name in OUTCOMES if columns.get(name) in self.table.columns]
        return self.table.drop_nulls(told) if self.is_history and told else self.table


def read_log(sources: Sequence[str | Path], say: Callable[[str], None] = lambda _: None) -> Log:
    """Read a log.

    1. Patterns are expanded: `logs/*.eval` where no shell did it; what is on the Hub is fetched.
    2. The first format that knows every source reads them all.
    3. Rows are numbered across the sources.

    Args:
        sources: files, folders and patterns of one format; `hf://datasets/OWNER/NAME[@REVISION][/PATH]`.
        say: told what the reader of a log of the Hub has to know, such as that it was not asked.

    Raises:
        UsageError: nothing knows a source, or they are of several formats.
        IncompleteError: a file is missing, or a package that reads the format.
        DamagedError: a file is not what its name says, or there is no row.
    """
    from toolkit.registers.imported.readers import READERS

    paths = _expanded(sources, say)  # 1
    for path in paths:
        if not path.exists():
            raise IncompleteError("there is no such file", where=path, remedy="give the path of a log")
    reader = next((one for one in READERS if all(map(one.recognizes, paths))), None)  # 2
    if reader is None:
        raise UsageError(
            "the log is of a format that is not read, or of several",
            expected="; ".join(f"{one.NAME}: {one.SOURCES}" for one in READERS),
            found=", ".join(str(path) for path in paths[:5]),
        )
    log = reader.read(paths)
    if not log.table.height:
        raise DamagedError("the log has no rows, and no data is not zero", where=paths[0])
    numbered = log.table.drop(ROW, strict=False).with_row_index(ROW, offset=1)  # 3
    return replace(log, table=numbered, files=log.files or tuple(paths))


def _expanded(sources: Sequence[str | Path], say: Callable[[str], None]) -> list[Path]:
    paths = []
    for source in sources:
        given = Path(source)
        if str(source).startswith(ON_THE_HUB):
            from toolkit.registers.hub.log_files import fetch_log  # brings what asks the Hub

            paths += fetch_log(str(source), say)
        elif given.exists():
            paths.append(given)
        else:
            matches = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207 - as a shell does
            paths += [Path(match) for match in matches] or [given]
    return paths
