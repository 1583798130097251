"""Rows of one run, read from that run's own file; adapters in them, whole or not at all."""

import base64
import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import Any

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, did_you_mean
from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study, specification_document
from toolkit.specification import KEEPS_ALL, Specification, read_specification

MOST_NAMES = 5
ADAPTER = "adapter_model.safetensors"
_LENGTH = 8
_METADATA = "__metadata__"


def run_file(study: Study, table: str, run_id: str) -> str:
    """Return the name of the file that holds a run's rows of a table."""
    if not study.has(table):
        raise IncompleteError(
            f"study {study.name!r} holds no rows of {table}, so there is nothing to play again",
            where=study.folder,
            remedy="ask a study that ships its rows: --study embedded",
        )
    names = study.manifest.tables[table].files
    files = study.kept(f"{table} by run", lambda: {PurePosixPath(name).stem: name for name in names})
    if run_id not in files:
        known = ", ".join(sorted(files)[:MOST_NAMES])
        remedy = did_you_mean(run_id, files)
        raise UsageError(f"study {study.name!r} has no run {run_id!r}", expected=f"{known}, …", remedy=remedy)
    return str(files[run_id])


def rows_of_run(study: Study, table: str, run_id: str) -> list[Any]:
    """Return a run's rows of a table, after checking the file's SHA-256."""
    return arrow.to_rows(table_of_run(study, table, run_id))


def table_of_run(study: Study, table: str, run_id: str) -> Any:
    """Return a run's rows of a table as a `pyarrow.Table`; errors as `rows_of_run`."""
    run_file(study, table, run_id)
    return study.run_columns(table, run_id, study.table(table).column_names)


def run_row(study: Study, run_id: str) -> Row:
    """Return a run's row of `runs`."""
    by_name: dict[str, list[Row]] = study.kept("runs by name", lambda: _by_name(study))
    rows = by_name.get(run_id, [])
    if len(rows) != 1:
        raise DamagedError(
            f"runs has not one row of {run_id}", expected=1, found=len(rows), where=study.folder
        )
    return rows[0]


def _by_name(study: Study) -> dict[str, list[Row]]:
    by_name: dict[str, list[Row]] = {}
    for row in study.rows("runs"):
        by_name.setdefault(row["run_id"], []).append(row)
    return by_name


def keeps_checkpoints(run: Row) -> bool:
    """Whether a run's checkpoints are in its study's registers, as its specification says."""
    return bool(specification_document(run).get("registers", KEEPS_ALL) == KEEPS_ALL)


def specification_of(study: Study, run_id: str) -> Specification:
    """Return the specification that a run was made by."""
    try:
        document: dict[str, Any] = json.loads(run_row(study, run_id)["specification"] or "")
        return read_specification(document)
    except (TypeError, ValueError, KeyError) as error:
        raise DamagedError(
            f"the specification of {run_id} is not one of this package's",
            found=f"{type(error).__name__}: {error}"[:200],
            where=study.folder,
        ) from None


def read_adapter(row: arrow.Row, run_id: str) -> bytes:
    """Return the safetensors file of a row of `adapters`."""
    where = f"{run_id} at step {row['step']}"
    if row["run_id"] != run_id:
        raise DamagedError("the adapter belongs to another run", expected=run_id, found=row["run_id"])
    if row["adapter"] is None:
        raise IncompleteError(
            "the adapter is too large for its row, and is not here",
            expected=f"a safetensors file with SHA-256 {row['sha256']}",
            where=where,
            remedy="probe where the run was trained, with its folder: toolkit study run",
        )
    try:
        raw = base64.b64decode(row["adapter"], validate=True)
    except ValueError as error:
        raise DamagedError("the adapter is no base64", found=error, where=where) from None
    digest = hashlib.sha256(raw).hexdigest()
    if digest != row["sha256"]:
        raise DamagedError(
            "the adapter is not the one that was written",
            expected=f"SHA-256 {row['sha256']}",
            found=f"SHA-256 {digest}",
            where=where,
        )
    return raw


def fingerprint(raw: bytes) -> str:
    """Return the SHA-256 of an adapter's numbers as its file holds them, tensors in order of their names."""
    start = _LENGTH + int.from_bytes(raw[:_LENGTH], "little")
    try:
        tensors: dict[str, Any] = json.loads(raw[_LENGTH:start])
        places = [tensors[name]["data_offsets"] for name in sorted(tensors) if name != _METADATA]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError("the adapter is no safetensors file", found=f"{error}"[:200]) from None
    digest = hashlib.sha256()
    for begin, end in places:
        digest.update(raw[start + begin : start + end])
    return digest.hexdigest()


def with_adapter(row: arrow.Row, folder: Path) -> arrow.Row:
    """Return a row with its adapter, taken from its run's folder where the row only names it."""
    if row.get("adapter", "") is not None:
        return row
    try:
        raw = read_bytes(folder / f"checkpoint-{row['step']}" / ADAPTER, LARGEST_ROWS)
    except ToolkitError:
        return row  # whoever needs it says that it is not here
    return {**row, "adapter": base64.b64encode(raw).decode()}
