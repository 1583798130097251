"""MANIFEST.json: what a study's registers consist of. It is written last; without it nothing is complete."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.files import file_sha256, read_bytes, write_text
from toolkit.line_ends import refuse_converted
from toolkit.registers.columns import WORDS, Table
from toolkit.registers.row_tables import OF_LAUNCHES
from toolkit.registers.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from toolkit.documents.registers import OriginDocument


MANIFEST_NAME = "MANIFEST.json"
LARGEST_MANIFEST = 64 * 2**20
"""Bytes of a manifest: of a file it says less than 300, and there are 100,000 at most."""
EVIDENCE = ("rows", "summary", "tasks")
UNREGISTERED = "unregistered"  # what an evaluation names that no registration registered
PUBLISHED_REGISTRATION = "paired-rollouts"  # of the study `published`, whose figures were transcribed

STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_FILE = re.compile(r"\w[\w.-]*(/[\w-][\w.-]*)*", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class RegistrationRef:
    """The registration that a study's registers belong to."""

    name: str  # its name
    sha256: str  # digest of its frozen files
    amendments: dict[str, str]  # id → SHA-256 of the amendments in force when the registers were written


@dataclass(frozen=True)
class FileEntry:
    """One file: its SHA-256, its size in bytes and, for Parquet, its rows."""

    sha256: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class TableEntry:
    """One table: its rows, their logical hash, its columns, and the files that hold them."""

    rows: int
    row_sha256: str
    columns: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The content of MANIFEST.json without its seal."""

    study: str  # name of the study
    evidence: str  # `rows`; `summary` where only published figures are here; `tasks` where no runs are
    schema_version: str  # version of the schema
    code_version: str  # version of this package that wrote the registers
    registration: RegistrationRef  # the registration the study belongs to
    words: dict[str, tuple[str, ...]]  # the study's own words by column; empty where it uses the toolkit's
    tables: dict[str, TableEntry]  # by name
    files: dict[str, FileEntry]  # by path relative to the manifest

    def __repr__(self) -> str:
        return f"<Manifest of {self.study!r}: {len(self.tables)} tables in {len(self.files)} files>"

    def seal(self) -> str:
        """Return the SHA-256 of the canonical JSON of everything else in the manifest."""
        return _sha256_of(vars(self))

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
                "registration": asdict(self.registration),
                "words": self.words,
                "tables": tables,
            }
        )


def _sha256_of(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a document's canonical JSON; values of classes are objects in it."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=vars)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside its place and rename it there."""
    write_text(folder / MANIFEST_NAME, manifest_text(manifest))


def manifest_text(manifest: Manifest) -> str:
    """Return the content of a MANIFEST.json, with its seal."""
    document = {**asdict(manifest), "seal": manifest.seal()}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def check_manifest(manifest: Manifest) -> None:
    """Check that a manifest, once written, can be read."""
    try:
        _manifest(json.loads(json.dumps(asdict(manifest))))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(
            "the manifest could not be read again", found=error, where=manifest.study
        ) from None


def read_manifest(folder: Path) -> Manifest:
    """Read a study's manifest and check its seal."""
    path = folder / MANIFEST_NAME
    return parse_manifest(read_bytes(path, LARGEST_MANIFEST), path)


def parse_manifest(raw: bytes, path: object) -> Manifest:
    """Return the manifest that bytes hold, its seal checked."""
    try:
        document = json.loads(raw, object_pairs_hook=_once)
        sealed = _text(document.pop("seal"))
        manifest = _manifest(document)
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


def _manifest(document: dict[str, Any]) -> Manifest:
    """Return the manifest that a JSON document holds: every key known, every value of its type."""
    registration = document.pop("registration")
    manifest = Manifest(
        study=_text(document.pop("study")),
        evidence=_text(document.pop("evidence")),
        schema_version=_text(document.pop("schema_version")),
        code_version=_text(document.pop("code_version")),
        registration=RegistrationRef(
            _text(registration["name"]),
            _digest(registration["sha256"]),
            {_text(name): _digest(sha256) for name, sha256 in registration["amendments"].items()},
        ),
        words={
            _text(name): tuple(_text(word) for word in words) for name, words in document.pop("words").items()
        },
        tables={
            name: TableEntry(
                _count(entry["rows"]),
                _digest(entry["row_sha256"]),
                tuple(_text(column) for column in entry["columns"]),
                tuple(_text(file) for file in entry["files"]),
            )
            for name, entry in document.pop("tables").items()
        },
        files={
            name: FileEntry(
                _digest(entry["sha256"]),
                _count(entry["bytes"]),
                None if entry["rows"] is None else _count(entry["rows"]),
            )
            for name, entry in document.pop("files").items()
        },
    )
    if document:
        raise ValueError(f"unknown keys {', '.join(document)}")
    _check_names(manifest)
    if not set(manifest.words) <= set(WORDS) or not all(manifest.words.values()):
        raise ValueError(f"words for columns other than {', '.join(WORDS)}, or none for one")
    if ("runs" in manifest.tables) == (manifest.evidence == "tasks"):
        raise ValueError("a study has runs, and a repository of tasks has none")
    for table, entry in manifest.tables.items():
        if not entry.rows:
            raise ValueError(f"table {table!r} has no rows, and no data is not zero")
        if not entry.files or not set(entry.files) <= set(manifest.files):
            raise ValueError(f"table {table!r} has no file, or one that is not listed")
    return manifest


def _check_names(manifest: Manifest) -> None:
    """Check the names that become parts of paths."""
    if not STUDY_NAME.fullmatch(manifest.study) or manifest.evidence not in EVIDENCE:
        raise ValueError(f"study {manifest.study!r} with evidence {manifest.evidence!r}")
    for name in manifest.files:
        if not _FILE.fullmatch(name):
            raise ValueError(f"file name {name!r} leads out of the folder, is hidden, or has odd characters")
    if not STUDY_NAME.fullmatch(manifest.registration.name):
        raise ValueError(f"registration {manifest.registration.name!r}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys are there once: of two values, readers would take this or that."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key is there twice")
    return document


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected text, found {value!r}")
    return value


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise TypeError(f"expected a SHA-256, found {value!r}")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a count, found {value!r}")
    return value


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


@dataclass(frozen=True)
class Origin:
    """The commit of a dataset repository that a study was read from."""

    repository: str  # `owner/name`
    revision: str  # the branch, tag or SHA that was asked for
    commit: str  # SHA of the commit that it was
    asked: str  # the study's name as it was given

    @property
    def pinned(self) -> str:
        """The name that means these bytes for good."""
        return f"{self.repository}@{self.commit}"

    def as_dict(self) -> OriginDocument:
        """Return the origin as decisions state it."""
        return {"repository": self.repository, "revision": self.revision, "commit": self.commit}
