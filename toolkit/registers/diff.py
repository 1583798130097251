"""What differs between two studies: what their manifests say, their documents, and their rows, key by key."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from toolkit.registers.table_diff import TableDifference, diff_table

if TYPE_CHECKING:
    from toolkit.registers.manifest import Manifest
    from toolkit.registers.study import Study

EXAMPLES = 3
"""Rows of each sort that are shown of a table."""


@dataclass(frozen=True)
class Said:
    """Something that two studies say differently; None where one says nothing of it.

    Args:
        what: what it is about; of a document, its name.
        first: what the first study says; of a document, its SHA-256.
        second: what the second one says.
    """

    what: str
    first: str | None
    second: str | None


@dataclass(frozen=True)
class StudyDifference:
    """What differs between two studies.

    Args:
        facts: study, evidence, versions, words, registration and amendments, where they differ.
        documents: files that belong to no table and differ.
        tables: tables that differ.
        same_tables: names of the tables whose rows are the same.
    """

    facts: tuple[Said, ...]
    documents: tuple[Said, ...]
    tables: tuple[TableDifference, ...]
    same_tables: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.facts or self.documents or self.tables)


def diff_studies(first: Study, second: Study, examples: int = EXAMPLES) -> StudyDifference:
    """Return what differs between two studies.

    1. What the manifests say is compared.
    2. Tables with the same row hash are the same: of the same files, or the hash is computed.
    3. The rows of the others are compared by key, all files of these tables checked against the manifests.

    Args:
        first: a study.
        second: another, or the same at another time.
        examples: how many rows of each sort are shown.

    Raises:
        IncompleteError: a file is missing or cannot be read.
        DamagedError: a file is not the one its manifest names, a table has other rows than its manifest says,
            or a key twice.
    """
    ours, theirs = first.manifest, second.manifest
    names = list(dict.fromkeys([*(t.name for t in first.tables), *(t.name for t in second.tables)]))
    same = tuple(name for name in names if _is_same(first, second, name))
    return StudyDifference(
        facts=_differing(_facts(ours), _facts(theirs)),  # 1
        documents=_differing(_documents(ours), _documents(theirs)),
        tables=tuple(diff_table(first, second, name, examples) for name in names if name not in same),  # 3
        same_tables=same,  # 2
    )


def _is_same(first: Study, second: Study, name: str) -> bool:
    """Whether two studies have the same rows of a table: the same files, or rows that were hashed now."""
    if not (first.has(name) and second.has(name)) or first.sha256(name) != second.sha256(name):
        return False
    files = [[s.manifest.files[f].sha256 for f in s.manifest.tables[name].files] for s in (first, second)]
    if files[0] != files[1]:
        for study in (first, second):
            study.arrow(name)  # it checks the row hash
    return True


def _facts(manifest: Manifest) -> dict[str, str]:
    registration = asdict(manifest.registration)
    amendments: dict[str, Any] = registration.pop("amendments")
    return {
        "study": manifest.study,
        "evidence": manifest.evidence,
        "schema version": manifest.schema_version,
        "code version": manifest.code_version,
        **{f"words for {name}": ", ".join(words) for name, words in manifest.words.items()},
        **{f"registration's {name}": value for name, value in registration.items()},
        **{f"amendment {name}": sha256 for name, sha256 in amendments.items()},
    }


def _documents(manifest: Manifest) -> dict[str, str]:
    of_tables = {file for table in manifest.tables.values() for file in table.files}
    return {name: entry.sha256 for name, entry in manifest.files.items() if name not in of_tables}


def _differing(first: dict[str, str], second: dict[str, str]) -> tuple[Said, ...]:
    names = dict.fromkeys([*first, *second])
    return tuple(Said(n, first.get(n), second.get(n)) for n in names if first.get(n) != second.get(n))
