"""Writing a study: every file beside its place and renamed, the manifest last."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import write_all
from toolkit.registers.arrow import to_arrow
from toolkit.registers.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    RegistrationRef,
    TableEntry,
    write_manifest,
)
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.task_tables import SPLIT_BY
from toolkit.registers.validation import check_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    check_place(folder)
    write_all(folder, contents, first=folder / MANIFEST_NAME)
    write_manifest(folder, manifest)
    return manifest


def check_place(folder: Path) -> None:
    """Check that a study may be written to a folder: nothing else than a study is there.

    Raises:
        IncompleteError: something else is.
    """
    ours = {*TABLES, "source", "README.md", MANIFEST_NAME}
    visible = folder.iterdir() if folder.is_dir() else ()
    found = {path.name for path in visible if not path.name.startswith(".")}
    if found - ours or (found and not found & {*TABLES, "source", MANIFEST_NAME}):
        raise IncompleteError(
            "the folder holds something else than a study",
            found=", ".join(sorted(found - ours or found)[:5]),
            where=folder,
            remedy="give an empty folder, or one that `toolkit registers build` made",
        )


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
