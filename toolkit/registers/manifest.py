"""MANIFEST.json: what a study's registers consist of. It is written last; without it nothing is complete."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolkit.errors import DamagedError
from toolkit.files import file_sha256, read_bytes, write_text
from toolkit.line_ends import refuse_converted
from toolkit.registers.columns import Table
from toolkit.registers.row_tables import OF_LAUNCHES
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.structs import Document, about, as_builtins, parse

MANIFEST_NAME = "MANIFEST.json"
LARGEST_MANIFEST = 64 * 2**20
"""Bytes of a manifest: of a file it says less than 300, and there are 100,000 at most."""
UNREGISTERED = "unregistered"  # what an evaluation names that no registration registered
PUBLISHED_REGISTRATION = "paired-rollouts"  # of the study `published`, whose figures were transcribed

STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Name = Annotated[str, Meta(pattern=rf"\A{STUDY_NAME.pattern}\Z")]
File = Annotated[str, Meta(pattern=r"\A(?a:\w[\w.-]*(/[\w-][\w.-]*)*)\Z")]
"""Of a file below the manifest's folder: not hidden, and without odd characters."""
Column = Annotated[str, Meta(pattern=r"\A(arm|regime|pool)\Z")]
Evidence = Literal["rows", "summary", "tasks"]


class RegistrationRef(Document, frozen=True):
    """The registration that a study's registers belong to."""

    name: Name
    sha256: Annotated[Sha256, about("Of its frozen files.")]
    amendments: Annotated[dict[Text, Sha256], about("SHA-256 by id, as in force when written.")]


class FileEntry(Document, frozen=True):
    """One file."""

    sha256: Sha256
    bytes: Count
    rows: Annotated[Count | None, about("Of Parquet.")] = None


class TableEntry(Document, frozen=True):
    """One table: its rows, their logical hash, its columns, and the files that hold them."""

    rows: Annotated[int, Meta(gt=0)]  # no data is not zero
    row_sha256: Sha256
    columns: tuple[Text, ...]
    files: Annotated[tuple[Text, ...], Meta(min_length=1)]


class Manifest(Document, frozen=True):
    """The content of MANIFEST.json without its seal."""

    study: Name
    evidence: Annotated[
        Evidence,
        about("`summary`: only published figures are here; `tasks`: no runs, but tasks that studies run on."),
    ]
    schema_version: Text
    code_version: Annotated[Text, about("Version of this package that wrote the registers.")]
    registration: RegistrationRef
    words: Annotated[
        dict[Column, Annotated[tuple[Text, ...], Meta(min_length=1)]],
        about("The study's own words by column; absent where it uses the toolkit's."),
    ]
    tables: dict[str, TableEntry]
    files: Annotated[dict[File, FileEntry], about("By path relative to the manifest.")]

    def __post_init__(self) -> None:
        if ("runs" in self.tables) == (self.evidence == "tasks"):
            raise ValueError("a study has runs, and a repository of tasks has none")
        for table, entry in self.tables.items():
            if not self.files.keys() >= set(entry.files):
                raise ValueError(f"table {table!r} has a file that is not listed")

    def __repr__(self) -> str:
        return f"<Manifest of {self.study!r}: {len(self.tables)} tables in {len(self.files)} files>"

    def seal(self) -> str:
        """Return the SHA-256 of the canonical JSON of everything else in the manifest."""
        return _sha256_of(as_builtins(self))

    def table(self, name: str) -> Table:
        """Return what a table is here: the schema's, in the study's words and without what it left out."""
        return TABLES[name].with_words(self.words).narrowed(self.tables[name].columns)

    @property
    def logical_sha256(self) -> str:
        """SHA-256 of what the study's rows say: files and versions of the code do not enter."""
        tables = {name: entry.row_sha256 for name, entry in self.tables.items() if name not in OF_LAUNCHES}
        return _sha256_of(
            {
                "study": self.study,
                "evidence": self.evidence,
                "schema_version": self.schema_version,
                "registration": as_builtins(self.registration),
                "words": self.words,
                "tables": tables,
            }
        )


def _sha256_of(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a document's canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside its place and rename it there."""
    write_text(folder / MANIFEST_NAME, manifest_text(manifest))


def manifest_text(manifest: Manifest) -> str:
    """Return the content of a MANIFEST.json, with its seal."""
    document = {**as_builtins(manifest), "seal": manifest.seal()}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def new_manifest(**fields: Any) -> Manifest:
    """Return a manifest of these fields, checked as one that is read."""
    return parse(Manifest, as_builtins(fields), "the manifest could not be read again", fields["study"])


def read_manifest(folder: Path) -> Manifest:
    """Read a study's manifest and check its seal."""
    path = folder / MANIFEST_NAME
    return parse_manifest(read_bytes(path, LARGEST_MANIFEST), path)


def parse_manifest(raw: bytes, path: object) -> Manifest:
    """Return the manifest that bytes hold, its seal checked."""
    try:
        document = json.loads(raw, object_pairs_hook=_once)
        sealed = document.pop("seal")
        manifest = msgspec.convert(document, Manifest)
        seal = manifest.seal()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(
            "the manifest is not a manifest of this toolkit",
            found=f"{type(error).__name__}: {error}"[:300],
            where=path,
            remedy="restore the file, or rebuild the registers",
        ) from None
    if seal != sealed:
        raise DamagedError(
            "the manifest was changed after it was written",
            expected=f"seal {sealed}",
            found=f"seal {seal}",
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
    """Check one file against its manifest entry."""
    path = folder / name
    # Of another length it is another file, which need not be read to its end.
    size = path.stat().st_size if path.is_file() else entry.bytes
    digest = file_sha256(path) if size == entry.bytes else None
    if digest != entry.sha256:
        if entry.bytes < size <= 2 * entry.bytes:  # a CRLF for every LF can do no more
            refuse_converted(name, path, entry.sha256, DamagedError, path)
        raise DamagedError(
            f"{name} is not the file that the manifest names",
            expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
            found=f"{size} bytes" if digest is None else f"SHA-256 {digest}, {size} bytes",
            where=path,
            remedy="restore the file, or rebuild the registers",
        )


def check_nothing_else(folder: Path, manifest: Manifest) -> None:
    """Check that the folder holds no visible file that the manifest does not name."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if (
            (path.is_symlink() or not path.is_dir())
            and not hidden
            and name != MANIFEST_NAME
            and name not in manifest.files
        ):
            raise DamagedError(
                f"{name} is not in the manifest",
                expected="only files that the manifest names",
                where=path,
                remedy="remove the file, or rebuild the registers",
            )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys are there once: of two values, readers would take this or that."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key is there twice")
    return document


def check_known(manifest: Manifest, where: object) -> None:
    """Check that the schema knows all tables of a manifest."""
    unknown = sorted(set(manifest.tables) - set(TABLES))
    if unknown:
        raise DamagedError(
            "the manifest names tables that the schema does not know",
            expected=", ".join(TABLES),
            found=", ".join(unknown),
            where=where,
        )
    for name, entry in manifest.tables.items():
        if manifest.table(name).column_names != entry.columns:
            raise DamagedError(
                f"the manifest names columns of {name} that the schema does not know, or lacks some",
                expected=", ".join(TABLES[name].column_names),
                found=", ".join(entry.columns),
                where=where,
            )


class Sealed(Document, frozen=True):
    """Registers that were written."""

    folder: Annotated[str, about("Where they lie.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


class Origin(Document, frozen=True):
    """The commit of a dataset repository on the Hub that a study was read from."""

    repository: Annotated[str, about("As owner/name.")]
    revision: Annotated[str, about("The branch, tag or SHA that was asked for.")]
    commit: Annotated[str, about("SHA of the commit that it was.")]

    @property
    def pinned(self) -> str:
        """The name that means these bytes for good."""
        return f"{self.repository}@{self.commit}"
