"""MANIFEST.json: what a study's registers consist of. It is written last; without it nothing is complete."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from toolkit.errors import DamagedError
from toolkit.files import file_sha256, read_bytes, write_text
from toolkit.registers.schema import SCHEMA_VERSION

MANIFEST_NAME = "MANIFEST.json"


@dataclass(frozen=True)
class RegistrationRef:
    """The registration that a study's registers belong to: its name and its digest."""

    name: str
    sha256: str


@dataclass(frozen=True)
class FileEntry:
    """One file: its SHA-256, its size in bytes and, for Parquet, its rows."""

    sha256: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class TableEntry:
    """One table: its rows, their logical hash, and the files that hold them."""

    rows: int
    row_sha256: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The content of MANIFEST.json without its seal.

    Args:
        study: name of the study.
        evidence: `rows` where the study's own rows are here, `summary` where only published figures are.
        schema_version: version of the schema.
        code_version: version of this package that wrote the registers.
        registration: the registration the study belongs to.
        tables: by name.
        files: by path relative to the manifest.
    """

    study: str
    evidence: str
    schema_version: str
    code_version: str
    registration: RegistrationRef
    tables: dict[str, TableEntry]
    files: dict[str, FileEntry]

    def seal(self) -> str:
        """Return the SHA-256 of the canonical JSON of everything else in the manifest."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside its place and rename it there."""
    document = {**asdict(manifest), "seal": manifest.seal()}
    write_text(
        folder / MANIFEST_NAME, json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    )


def read_manifest(folder: Path) -> Manifest:
    """Read a study's manifest and check its seal.

    Raises:
        IncompleteError: there is none, or it cannot be read.
        DamagedError: it is not a manifest, or was changed after it was written.
    """
    path = folder / MANIFEST_NAME
    raw = read_bytes(path)
    try:
        document = json.loads(raw)
        sealed = document.pop("seal")
        manifest = Manifest(
            study=document.pop("study"),
            evidence=document.pop("evidence"),
            schema_version=document.pop("schema_version"),
            code_version=document.pop("code_version"),
            registration=RegistrationRef(**document.pop("registration")),
            tables={
                name: TableEntry(entry["rows"], entry["row_sha256"], tuple(entry["files"]))
                for name, entry in document.pop("tables").items()
            },
            files={name: FileEntry(**entry) for name, entry in document.pop("files").items()},
        )
        if document:
            raise KeyError(*document)  # noqa: TRY301 - one message for every malformed manifest
        _check_names(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(
            "the manifest is not a manifest of this toolkit",
            found=f"{type(error).__name__}: {error}",
            where=path,
            remedy="restore the file, or rebuild the registers",
        ) from None
    if manifest.seal() != sealed:
        raise DamagedError(
            "the manifest was changed after it was written",
            expected=f"seal {sealed}",
            found=f"seal {manifest.seal()}",
            where=path,
            remedy="restore the file, or rebuild the registers",
        )
    if manifest.schema_version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise DamagedError(
            "the registers have a schema that is not comparable with this version's",
            expected=SCHEMA_VERSION,
            found=manifest.schema_version,
            where=path,
        )
    return manifest


def check_file(folder: Path, name: str, entry: FileEntry) -> None:
    """Check one file against its manifest entry.

    Raises:
        IncompleteError: the file is missing or cannot be read.
        DamagedError: its bytes are not those the manifest names.
    """
    path = folder / name
    found = file_sha256(path)
    if found != entry.sha256:
        raise DamagedError(
            f"{name} is not the file that the manifest names",
            expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
            found=f"SHA-256 {found}, {path.stat().st_size} bytes",
            where=path,
            remedy="restore the file, or rebuild the registers",
        )


def check_nothing_else(folder: Path, manifest: Manifest) -> None:
    """Check that the folder holds no visible file that the manifest does not name.

    Raises:
        DamagedError: it does.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and name != MANIFEST_NAME and name not in manifest.files:
            raise DamagedError(
                f"{name} is not in the manifest",
                expected="only files that the manifest names",
                where=path,
                remedy="remove the file, or rebuild the registers",
            )


def _check_names(manifest: Manifest) -> None:
    """Refuse file names that lead out of the study's folder, and tables whose files are not listed."""
    for name in manifest.files:
        if name.startswith(("/", "\\")) or ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError(f"file name {name!r} leads out of the folder")
    for table, entry in manifest.tables.items():
        for name in entry.files:
            if name not in manifest.files:
                raise ValueError(f"file {name!r} of table {table!r} is not listed")
