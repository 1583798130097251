"""Writing a study: every file beside its place and renamed, the manifest last."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import toolkit
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.files import LARGEST_ROWS, file_sha256, read_bytes, replacing, write_all
from toolkit.registers import arrow
from toolkit.registers import manifest as manifests
from toolkit.registers.arrow import row_sha256
from toolkit.registers.row_tables import SPLIT_BY
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.validation import check_parents, check_table
from toolkit.structs import replace

FORMER = "croissant.json"
"""A document that earlier builds wrote beside the card; studies that were sealed with it keep it."""


def parquet_name(table: str, split: str = "train") -> str:
    """Return the file name of a table's split that is one file, as the Hub's loaders expect it."""
    return f"{table}/{split}-00000-of-00001.parquet"


def table_files(name: str, table: Any) -> dict[str, bytes]:
    """Return a table's Parquet files by name, one a split, in the order of the rows."""
    column = SPLIT_BY.get(name)
    if column is None:
        return {parquet_name(name): arrow.parquet_bytes(name, table)}
    import pyarrow.compute as pc

    return {
        parquet_name(name, split): arrow.parquet_bytes(name, table.filter(pc.equal(table[column], split)))
        for split in pc.unique(table[column]).to_pylist()
    }


def rows_files(rows: Mapping[str, Iterable[arrow.Row]]) -> dict[str, dict[str, bytes]]:
    """Return the Parquet files of tables by table and name: their rows as dictionaries, in any order."""
    return {name: table_files(name, arrow.to_arrow(TABLES[name], made)) for name, made in rows.items()}


def write_study(
    folder: Path,
    *,
    study: str,
    evidence: manifests.Evidence,
    registration: manifests.RegistrationRef,
    files: Mapping[str, Mapping[str, bytes]],
    documents: Mapping[str, bytes],
    words: Mapping[str, tuple[str, ...]] | None = None,
    proven: manifests.Manifest | None = None,
) -> manifests.Manifest:
    """Write a study's repository beside its place, and put it there once it is whole and verified."""
    contents = {file: content for parts in files.values() for file, content in parts.items()}
    check_place(folder, study, [*contents, *documents])
    with replacing(folder) as new:
        write_all(new, contents)
        return seal_study(
            new,
            study=study,
            evidence=evidence,
            registration=registration,
            files={name: list(parts) for name, parts in files.items()},
            documents=documents,
            words=words,
            proven=proven,
        )


def seal_study(
    folder: Path,
    *,
    study: str,
    evidence: manifests.Evidence,
    registration: manifests.RegistrationRef,
    files: Mapping[str, Sequence[str]],
    documents: Mapping[str, bytes],
    words: Mapping[str, tuple[str, ...]] | None = None,
    proven: manifests.Manifest | None = None,
) -> manifests.Manifest:
    """Complete a study whose Parquet files lie in its folder already, one a run: verify them, name them."""
    parquet_files = [file for names in files.values() for file in names]
    check_place(folder, study, [*parquet_files, *documents])
    known = _known(folder, files, proven)
    new = {name: names for name, names in files.items() if name not in known}
    entries, proven_files = _prove(folder, new, words or {})
    if proven is not None:
        entries |= {name: proven.tables[name] for name in known}
        proven_files |= {file: proven.files[file] for name in known for file in files[name]}
    manifest = manifests.new_manifest(
        study=study,
        evidence=evidence,
        schema_version=SCHEMA_VERSION,
        code_version=toolkit.__version__,
        registration=registration,
        words=dict(words or {}),
        tables=dict(sorted(entries.items())),
        files=dict(
            sorted((proven_files | {name: _entry(content) for name, content in documents.items()}).items())
        ),
    )
    manifests.check_nothing_else(folder, manifest)
    write_all(folder, documents, first=folder / manifests.MANIFEST_NAME)
    manifests.write_manifest(folder, manifest)
    return manifest


def _known(
    folder: Path, files: Mapping[str, Sequence[str]], proven: manifests.Manifest | None
) -> frozenset[str]:
    """Return the tables whose files are, byte for byte, those that were proven."""
    if proven is None:
        return frozenset()
    return frozenset(
        name
        for name, names in files.items()
        if name in proven.tables
        and proven.tables[name].files == tuple(names)
        and all(file_sha256(folder / file) == proven.files[file].sha256 for file in names)
    )


def _prove(
    folder: Path, files: Mapping[str, Sequence[str]], words: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, manifests.TableEntry], dict[str, manifests.FileEntry]]:
    """Return the checked entries of tables and of their files; one table is held at a time."""
    import pyarrow as pa

    entries: dict[str, manifests.FileEntry] = {}

    def read(name: str) -> Any:
        table, parts = TABLES[name], list[Any]()
        for file in files[name]:
            if not file.startswith(f"{name}/") or not file.endswith(".parquet"):
                raise UsageError(f"{file} is no place for rows of {name}", expected=f"{name}/….parquet")
            content = read_bytes(folder / file, LARGEST_ROWS)
            source = arrow.open_parquet(folder / file, content)
            if not parts:  # all files have the columns of the first
                table = table.narrowed(source.schema_arrow.names)
            arrow.check_columns(table, source.schema_arrow, folder / file)
            rows = arrow.read_parquet(source, folder / file, list(table.column_names))
            entries[file] = _entry(content, rows.num_rows)
            parts.append(arrow.shape(table, rows))
        return pa.concat_tables(parts or [arrow.arrow_schema(table).empty_table()])

    referred = {parent.table for name in files for parent in TABLES[name].parents}
    held = {name: read(name) for name in sorted(referred & set(files))}
    tables: dict[str, manifests.TableEntry] = {}
    for name in sorted(files):
        whole = held[name] if name in held else read(name)
        if not whole.num_rows:
            raise DamagedError("a table has no rows, and no data is not zero", found=name, where=folder)
        table = TABLES[name].with_words(words).narrowed(whole.column_names)
        check_table(table, whole)
        check_parents(table, whole, held)
        columns = tuple(whole.column_names)
        tables[name] = manifests.TableEntry(whole.num_rows, row_sha256(whole), columns, tuple(files[name]))
    return tables, entries


def check_place(folder: Path, study: str, names: Collection[str]) -> None:
    """Check that a study may be written to a folder: nothing is there, or an earlier build of that study."""
    if folder.exists() and not folder.is_dir():
        raise IncompleteError(
            "the registers cannot be written: a file has the folder's name",
            where=folder,
            remedy="give another folder, or move the file away",
        )
    present = {
        path.relative_to(folder).as_posix()
        for path in (folder.rglob("*") if folder.is_dir() else ())
        if not path.is_dir() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    # A build that was cut off has left files of its own, and no manifest.
    cut_off = present <= set(names) and any(name.endswith(".parquet") for name in present)
    if present and not cut_off and _named_in(folder / manifests.MANIFEST_NAME) != study:
        raise IncompleteError(
            f"the folder holds something else than {study}",
            found=", ".join(sorted(present)[:5]),
            where=folder,
            remedy="give an empty folder, or one that holds an earlier build of it",
        )


def compare_built(folder: Path, built: Path, manifest: manifests.Manifest, remedy: str) -> None:
    """Check that a folder holds, byte for byte, what was built elsewhere, and nothing but it and `FORMER`."""
    expected = manifest
    if FORMER not in manifest.files and (folder / FORMER).is_file():
        former = _entry(read_bytes(folder / FORMER, LARGEST_ROWS))
        expected = replace(manifest, files=manifest.files | {FORMER: former})
    differing = [name for name in manifest.files if file_sha256(folder / name) != file_sha256(built / name)]
    sealed = hashlib.sha256(manifests.manifest_text(expected).encode()).hexdigest()
    if file_sha256(folder / manifests.MANIFEST_NAME) != sealed:
        differing.append(manifests.MANIFEST_NAME)
    if differing:
        raise VerificationError(
            f"the registers of {manifest.study} are not what their sources give",
            found=", ".join(differing),
            where=folder,
            remedy=remedy,
        )
    manifests.check_nothing_else(folder, expected)


def _entry(content: bytes, rows: int | None = None) -> manifests.FileEntry:
    return manifests.FileEntry(hashlib.sha256(content).hexdigest(), len(content), rows)


def _named_in(manifest: Path) -> str | None:
    """Return the study that a manifest names, however damaged it is otherwise; None where it names none."""
    try:
        document = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    name = document.get("study") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None
