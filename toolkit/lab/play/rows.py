"""Rows of one run, read from that run's own file; adapters in them; checkpoints of another study."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, did_you_mean
from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.registers import arrow
from toolkit.registers.arrow import Row, to_rows
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

    def by_name() -> dict[str, list[Row]]:
        named: dict[str, list[Row]] = {}
        for row in study.rows("runs"):
            named.setdefault(row["run_id"], []).append(row)
        return named

    rows: list[Row] = study.kept("runs by name", by_name).get(run_id, [])
    if len(rows) != 1:
        raise DamagedError(
            f"runs has not one row of {run_id}", expected=1, found=len(rows), where=study.folder
        )
    return rows[0]


def keeps_checkpoints(run: Row) -> bool:
    """Whether a run's checkpoints are in its study's registers, as its specification says."""
    return bool(specification_document(run).get("registers", KEEPS_ALL) == KEEPS_ALL)


def specification_of(study: Study, run_id: str) -> Specification:
    """Return the specification that a run was made by."""
    where = f"{study.folder}, {run_id}"
    try:
        document = json.loads(run_row(study, run_id)["specification"] or "")
    except ValueError as error:
        raise DamagedError("the specification of a run is not JSON", found=error, where=where) from None
    return read_specification(document, where)


def read_adapter(row: arrow.Row, run_id: str) -> bytes:
    """Return the safetensors file of a row of `adapters`."""
    where = f"{run_id} at step {row['step']}"
    if row["run_id"] != run_id:
        raise DamagedError("the adapter belongs to another run", expected=run_id, found=row["run_id"])
    if row["adapter"] is None:
        problem = "the adapter is too large for its row, and is not here"
        expected = f"a safetensors file with SHA-256 {row['sha256']}"
        remedy = "probe where the run was trained, with its folder: toolkit study run"
        raise IncompleteError(problem, expected=expected, where=where, remedy=remedy)
    try:
        raw = base64.b64decode(row["adapter"], validate=True)
    except ValueError as error:
        raise DamagedError("the adapter is no base64", found=error, where=where) from None
    digest = hashlib.sha256(raw).hexdigest()
    if digest != row["sha256"]:
        problem = "the adapter is not the one that was written"
        expected = f"SHA-256 {row['sha256']}"
        raise DamagedError(problem, expected=expected, found=f"SHA-256 {digest}", where=where)
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


CHECKPOINTS = "checkpoints"

Given: TypeAlias = "Callable[[Specification, int], Row]"
"""Gives the checkpoint that a run evaluates at a step, as a row of the run's own."""

_KEPT = 8
"""Runs whose checkpoints are held at a time: no more are played side by side as a rule."""


def checkpoints_sha256(checkpoints: Iterable[tuple[int, str]]) -> str:
    """Return the digest of a run's checkpoints: of their steps and of the SHA-256 of each."""
    lines = "".join(f"{step} {digest}\n" for step, digest in sorted(checkpoints))
    return hashlib.sha256(lines.encode()).hexdigest()


def check_registered(specification: Specification, checkpoints: Sequence[Row], where: object) -> None:
    """Check that checkpoints are those that a run was registered to evaluate."""
    steps = tuple(sorted(row["step"] for row in checkpoints))
    if steps != specification.ends:
        raise DamagedError(
            f"{specification.run_id} evaluates checkpoints at other steps",
            expected=", ".join(map(str, specification.ends)),
            found=", ".join(map(str, steps)) or "none",
            where=where,
        )
    found = checkpoints_sha256((row["step"], row["sha256"]) for row in checkpoints)
    if found != specification.checkpoints["sha256"]:
        problem = f"the checkpoints are not those that {specification.run_id} was registered to evaluate"
        expected = f"SHA-256 {specification.checkpoints['sha256']}"
        remedy = "restore the study's checkpoints"
        raise DamagedError(problem, expected=expected, found=f"SHA-256 {found}", where=where, remedy=remedy)


def check_copies(study: Study, specification: Specification) -> None:
    """Check that a study's own copies are the checkpoints that a run was registered to evaluate."""
    _check_held(specification, study, specification.run_id)


def given_by(specifications: Iterable[Specification], open_study: Callable[[str], Study]) -> Given:
    """Return what gives runs the checkpoints that they evaluate, compared with their digests."""
    opened = cache(open_study)
    return _given(specifications, lambda run: (opened(run.checkpoints["study"]), run.checkpoints["run"]))


def given_by_copies(specifications: Iterable[Specification], study: Study) -> Given:
    """Return what gives runs the checkpoints that they evaluated, from their own study; as `given_by`."""
    return _given(specifications, lambda run: (study, run.run_id))


def _given(
    specifications: Iterable[Specification], held: Callable[[Specification], tuple[Study, str]]
) -> Given:
    places = {}
    for specification in specifications:
        if not specification.trains:
            study, run = held(specification)
            _check_held(specification, study, run)
            places[specification.run_id] = (study, CHECKPOINTS, run)

    @lru_cache(maxsize=_KEPT)
    def rows(run_id: str) -> dict[int, Row]:
        return {row["step"]: row for row in rows_of_run(*places[run_id])}

    def given(specification: Specification, step: int) -> Row:
        return {**rows(specification.run_id)[step], "run_id": specification.run_id}

    return given


def _check_held(specification: Specification, study: Study, run: str) -> None:
    if not study.has_rows(CHECKPOINTS, run):
        problem = f"{specification.run_id} evaluates checkpoints that are not here"
        expected = f"{CHECKPOINTS} of run {run}"
        found = f"study {study.name!r} without them"
        raise IncompleteError(problem, expected=expected, found=found, where=study.folder)
    held = to_rows(study.run_columns(CHECKPOINTS, run, ("step", "sha256")))
    check_registered(specification, held, f"{study.folder}, {CHECKPOINTS} of {run}")
