"""Rows of one run, read from that run's own file."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.registers.arrow import to_rows
from toolkit.registers.manifest import check_file
from toolkit.training.specification import read_specification

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row
    from toolkit.registers.study import Study
    from toolkit.training.specification import Specification

SHOWN = 5


def run_file(study: Study, table: str, run_id: str) -> str:
    """Return the name of the file that holds a run's rows of a table.

    Raises:
        IncompleteError: the study keeps no rows of that table.
        UsageError: there is no such run.
    """
    if not study.has(table):
        raise IncompleteError(
            f"study {study.name!r} holds no rows of {table}, so there is nothing to play again",
            where=study.folder,
            remedy="ask a study that ships its rows: --study embedded",
        )
    files = {PurePosixPath(name).stem: name for name in study.manifest.tables[table].files}
    if run_id not in files:
        named = ", ".join(sorted(files)[:SHOWN])
        raise UsageError(f"study {study.name!r} has no run {run_id!r}", expected=f"{named}, …")
    return files[run_id]


def rows_of_run(study: Study, table: str, run_id: str) -> list[Row]:
    """Return a run's rows of a table, after checking the file's SHA-256.

    Raises:
        IncompleteError, UsageError: as `run_file`, or the file is missing.
        DamagedError: the file is not the one that the manifest names.
    """
    import pyarrow.parquet as pq

    name = run_file(study, table, run_id)
    check_file(study.folder, name, study.manifest.files[name])
    return to_rows(pq.read_table(study.folder / name))


def specification_of(study: Study, run_id: str) -> Specification:
    """Return the specification that a run was made by.

    Raises:
        DamagedError: the register's specification is none of this package's.
    """
    row = next(row for row in study.rows("runs") if row["run_id"] == run_id)
    try:
        document: dict[str, Any] = json.loads(row["specification"])
        return read_specification(document)
    except (TypeError, ValueError, KeyError) as error:
        raise DamagedError(
            f"the specification of {run_id} is not one of this package's",
            found=f"{type(error).__name__}: {error}"[:200],
            where=study.folder,
        ) from None
