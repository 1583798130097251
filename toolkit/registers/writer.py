"""Writing a study: every file beside its place and renamed, the manifest last."""

from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.files import read_bytes, write_all
from toolkit.registers.arrow import to_arrow
from toolkit.registers.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    RegistrationRef,
    TableEntry,
    check_nothing_else,
    write_manifest,
)
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.task_tables import SPLIT_BY
from toolkit.registers.validation import check_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from toolkit.registers.arrow import Row


def parquet_name(table: str, split: str = "train") -> str:
    """Return the file name of a table's split that is one file, as the Hub's loaders expect it."""
    return f"{table}/{split}-00000-of-00001.parquet"


def split_table(name: str, table: Any) -> dict[str, Any]:
    """Return a table's parts by file name: one a split, in the order of the rows."""
    column = SPLIT_BY.get(name)
    if column is None:
        return {parquet_name(name): table}
    import pyarrow.compute as pc

    splits = pc.unique(table[column]).to_pylist()
    return {parquet_name(name, split): table.filter(pc.equal(table[column], split)) for split in splits}


def write_study(
    folder: Path,
    *,
    study: str,
    evidence: str,
    registration: RegistrationRef,
    rows: Mapping[str, list[Row]],
    documents: Mapping[str, bytes],
) -> Manifest:
    """Write a study's repository; the same input gives the same bytes.

    Args:
        folder: the repository; other files in it are left alone.
        study: name of the study.
        evidence: `rows`, `summary` where only published figures are at hand, or `tasks`.
        registration: the registration that the study belongs to.
        rows: table name → rows.
        documents: other files of the repository by name: the card, the sources.

    Raises:
        DamagedError: rows contradict the schema; nothing is written then.
    """
    tables = {name: to_arrow(TABLES[name], listed) for name, listed in rows.items()}
    empty = [name for name, table in tables.items() if not table.num_rows]
    if empty:
        raise DamagedError(
            "a table has no rows, and no data is not zero", found=", ".join(empty), where=study
        )
    check_rows(tables)
    parts = {name: split_table(name, table) for name, table in tables.items()}
    files = {file: part for split in parts.values() for file, part in split.items()}
    contents = {file: _parquet(part) for file, part in files.items()} | dict(documents)
    manifest = Manifest(
        study=study,
        evidence=evidence,
        schema_version=SCHEMA_VERSION,
        code_version=toolkit.__version__,
        registration=registration,
        tables={
            name: TableEntry(table.num_rows, row_sha256(table), tuple(parts[name]))
            for name, table in sorted(tables.items())
        },
        files={
            name: FileEntry(
                hashlib.sha256(content).hexdigest(),
                len(content),
                files[name].num_rows if name in files else None,
            )
            for name, content in sorted(contents.items())
        },
    )
    check_place(folder, study, contents)
    write_all(folder, contents, first=folder / MANIFEST_NAME)
    write_manifest(folder, manifest)
    return manifest


def check_place(folder: Path, study: str, names: Collection[str]) -> None:
    """Check that a study may be written to a folder: nothing is there, or an earlier build of that study.

    Args:
        folder: where it is to be written.
        study: name of the study.
        names: the files that will be written, without the manifest.

    Raises:
        IncompleteError: something else is there.
    """
    found = {
        path.relative_to(folder).as_posix()
        for path in (folder.rglob("*") if folder.is_dir() else ())
        if not path.is_dir() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    # A build that was cut off has left files of its own, and no manifest.
    cut_off = found <= set(names) and any(name.endswith(".parquet") for name in found)
    if found and not cut_off and _named_in(folder / MANIFEST_NAME) != study:
        raise IncompleteError(
            f"the folder holds something else than {study}",
            found=", ".join(sorted(found)[:5]),
            where=folder,
            remedy="give an empty folder, or one that holds an earlier build of it",
        )


def compare_built(folder: Path, built: Path, manifest: Manifest, remedy: str) -> None:
    """Check that a folder holds, byte for byte, what was built elsewhere, and nothing else.

    Args:
        folder: what is there.
        built: a fresh build.
        manifest: of the fresh build.
        remedy: the command that builds it in place.

    Raises:
        VerificationError: a file differs.
        IncompleteError: a file is missing.
        DamagedError: there is a file too many.
    """
    differing = [
        name
        for name in (*manifest.files, MANIFEST_NAME)
        if read_bytes(folder / name) != read_bytes(built / name)
    ]
    if differing:
        raise VerificationError(
            f"the registers of {manifest.study} are not what their sources give",
            found=", ".join(differing),
            where=folder,
            remedy=remedy,
        )
    check_nothing_else(folder, manifest)


def _named_in(manifest: Path) -> str | None:
    """Return the study that a manifest names, however damaged it is otherwise; None where it names none."""
    try:
        document = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    name = document.get("study") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None


def _parquet(table: Any) -> bytes:
    """Return the table as one Parquet file: zstd, page index, dictionaries where they help."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=9,
        write_page_index=True,
        store_schema=False,
        version="2.6",
        data_page_version="2.0",
    )
    return sink.getvalue()
