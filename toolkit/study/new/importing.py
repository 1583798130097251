"""Importing a study that somebody else ran: their table, their registration, and what it decides on them.

1. The mapping and the table are read; the registration is the frozen one that the mapping names.
2. Rows are converted, named, numbered and counted.
3. The registers are written beside their place and verified.
4. The registration decides on them; its decisions become a register, too, and the study is put in its place.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit import errors, files
from toolkit.decisions import rulebook, stored
from toolkit.decisions.case import Case
from toolkit.decisions.plan import Plan, place_of
from toolkit.findings import card_text, read_findings
from toolkit.prereg.registration import Registration
from toolkit.registers import arrow, row_tables, writer
from toolkit.registers.imported import source
from toolkit.registers.imported.log import Log, read_log
from toolkit.registers.imported.mapping import read_mapping
from toolkit.registers.imported.tables import tables_of, write_imported
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.study import Study, open_study

if TYPE_CHECKING:
    import polars as pl

MAPPING = "source/mapping.toml"
ORIGIN = "source/table.json"
REGISTRATION = "prereg"


@dataclass(frozen=True)
class Import:
    """What is to be imported.

    Args:
        sources: files, folders and patterns of the log of episodes.
        mapping: file that says how to read it.
        card: file with the source of the dataset card; the findings stand beside it.
        registration: the frozen registration that the mapping names.
        open_case: puts a study and its registration together, verified.
    """

    sources: tuple[str, ...]
    mapping: Path
    card: Path
    registration: Registration
    open_case: Callable[..., Case]


@dataclass(frozen=True)
class Imported:
    """What an import gave.

    Args:
        manifest: of the study.
        decided: rule → verdict.
        present: registered runs that are there.
        absent: registered runs that are not: condition, arm and seed, in words.
        unregistered: runs that are there, and that no line of the registered matrix has.
        unused: columns of the log that the mapping does not name.
        left_out: what the log says beyond its columns.
    """

    manifest: Manifest
    decided: dict[str, str]
    present: tuple[str, ...]
    absent: tuple[str, ...]
    unregistered: tuple[str, ...]
    unused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def import_study(wanted: Import, folder: Path, progress: Callable[[str], None]) -> Imported:
    """Import a study; the same files give the same bytes.

    Args:
        wanted: what to import.
        folder: the study's repository; an earlier import of the same study is replaced.
        progress: told what is being done.

    Raises:
        IncompleteError: a file is missing, or the folder holds something else.
        DamagedError: the table, the mapping, the card or the rules do not fit each other.
    """
    progress("reading the log")
    card, mapping = files.read_text(wanted.card), read_mapping(wanted.mapping)  # 1
    registration = wanted.registration
    if mapping.registration != registration.name:
        raise errors.DamagedError(
            "the mapping belongs to another registration",
            expected=registration.name,
            found=mapping.registration,
            where=wanted.mapping,
        )
    log = read_log(wanted.sources)
    progress("converting rows")
    tables = tables_of(log.table, mapping)  # 2
    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    book = rulebook.rulebook_of(registration)
    documents = {
        MAPPING: mapping.text.encode(),
        ORIGIN: _origin(log),
        **_registered(registration),
    }

    write = partial(
        write_imported,
        study=mapping.study,
        registration=RegistrationRef(registration.name, registration.sha256, amendments),
        words=book.terms.words,
        documents=documents,
    )
    with tempfile.TemporaryDirectory() as scratch:
        progress("writing registers")
        write(Path(scratch) / mapping.study, tables)  # 3
        progress("deciding")
        study = open_study(Path(scratch) / mapping.study)
        case = wanted.open_case(study, registration)  # 4
        decisions = case.binding
        rows = stored.decision_rows(decisions, stored.inputs_sha256(study))
        compared = _compared(book.plan, study)
        found = card_text(read_findings(wanted.card.parent, [case], holding_alone=True), mapping.study)
    progress("writing registers")
    manifest = write(
        folder,
        {**tables, row_tables.DECISIONS.name: _frame(rows)},
        card=card,
        outcomes=[row | {"title": made.title} for row, made in zip(rows, decisions, strict=True)],
        standing=str(case.standing),
        findings=found,
    )
    used = {source.ROW, *mapping.columns.values()}
    return Imported(
        manifest,
        {decision.rule: decision.verdict for decision in decisions},
        *compared,
        unused=tuple(name for name in log.table.columns if name not in used),
        left_out=log.left_out,
    )


def check_import(wanted: Import, folder: Path, progress: Callable[[str], None]) -> Imported:
    """Check that a study is, byte for byte, what its table gives; arguments and errors as `import_study`.

    Raises:
        VerificationError: a file differs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        done = import_study(wanted, Path(scratch) / folder.name, progress)
        writer.compare_built(folder, Path(scratch) / folder.name, done.manifest, "import the table again")
    return done


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(arrow.to_arrow(row_tables.DECISIONS, rows))
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(frame)
    return frame


def _origin(log: Log) -> bytes:
    """Return which files the registers were made from: they need not lie beside them."""
    document = {
        "format": log.format,
        "files": [
            {"name": file.name, "bytes": file.stat().st_size, "sha256": files.file_sha256(file)}
            for file in log.files
        ],
        "rows": log.table.height,
    }
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def _registered(registration: Registration) -> dict[str, bytes]:
    """Return the registration's files: registers that travel alone can be decided where they arrive."""
    folder = registration.folder
    return {
        f"{REGISTRATION}/{registration.name}/{path.relative_to(folder).as_posix()}": files.read_bytes(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def _compared(plan: Plan, study: Study) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the registered runs that are there, the places that are empty, and the runs of no place."""
    places = [
        (cell.condition, cell.scale_rewards, arm, seed)
        for cell in plan.cells
        for arm in cell.arms
        for seed in cell.seeds
    ]
    runs = {place_of(run): run["run_id"] for run in study.rows("runs")}
    return (
        tuple(runs[at] for at in places if at in runs),
        tuple(f"{at[0]} {at[2]} seed {at[3]}" for at in places if at not in runs),
        tuple(name for at, name in runs.items() if at not in places),
    )
