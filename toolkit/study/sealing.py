"""Registers from files that were made run by run: Parquet in, manifest last."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.files import write_all
from toolkit.registers.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    RegistrationRef,
    TableEntry,
    write_manifest,
)
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import SCHEMA_VERSION
from toolkit.registers.writer import _parquet, check_place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def parquet_bytes(name: str, table: Any) -> bytes:  # noqa: ARG001 - the registers' own takes it
    """Return an Arrow table as one Parquet file."""
    return bytes(_parquet(table))


def seal_study(
    folder: Path,
    *,
    study: str,
    evidence: str,
    registration: RegistrationRef,
    files: Mapping[str, bytes],
    documents: Mapping[str, bytes],
) -> Manifest:
    """Write a study's repository from Parquet files by name; the manifest last."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: dict[str, dict[str, Any]] = {}
    for file, content in sorted(files.items()):
        parts.setdefault(file.split("/")[0], {})[file] = pq.ParquetFile(io.BytesIO(content)).read()
    contents = dict(files) | dict(documents)
    wholes = {name: pa.concat_tables(split.values()) for name, split in parts.items()}
    rows = {file: part.num_rows for split in parts.values() for file, part in split.items()}
    manifest = Manifest(
        study=study,
        evidence=evidence,
        schema_version=SCHEMA_VERSION,
        code_version=toolkit.__version__,
        registration=registration,
        tables={
            name: TableEntry(table.num_rows, row_sha256(table), tuple(parts[name]))
            for name, table in sorted(wholes.items())
        },
        files={
            name: FileEntry(hashlib.sha256(content).hexdigest(), len(content), rows.get(name))
            for name, content in sorted(contents.items())
        },
    )
    check_place(folder, study, contents)
    write_all(folder, contents, first=folder / MANIFEST_NAME)
    write_manifest(folder, manifest)
    return manifest
