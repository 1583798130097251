"""What differs between two studies: what their manifests say, their documents, and their rows, key by key."""

from __future__ import annotations

import tempfile
from typing import Annotated, Any

import duckdb

from toolkit.errors import DamagedError
from toolkit.registers.manifest import Manifest
from toolkit.registers.query import MEMORY
from toolkit.registers.study import Study, literals
from toolkit.structs import Document, about, as_builtins

EXAMPLES = 3
"""Rows of each sort that are shown of a table."""


Values = dict[str, Any]


class Fact(Document, frozen=True):
    """Something that two studies state differently; null where one states nothing of it."""

    what: Annotated[str, about("What it is about; of a document, its name.")]
    first: Annotated[str | None, about("What A says; of a document, its SHA-256.")]
    second: Annotated[str | None, about("What B says.")]


class Changed(Document, frozen=True):
    """A row that both studies have, and that is not the same in both."""

    key: Annotated[Values, about("Value by column.")]
    values: Annotated[dict[str, Any], about("Values in A and in B by column, where they differ.")]


class TableDifference(Document, frozen=True):
    """What differs in a table; counts of rows are null where only one study has it."""

    table: Annotated[str, about("Name of the table.")]
    rows: Annotated[tuple[int | None, int | None], about("Rows in A and in B; null without the table.")]
    key: Annotated[tuple[str, ...], about("The columns that identify a row.")]
    added: Annotated[int | None, about("Keys that B alone has.")] = None
    removed: Annotated[int | None, about("Keys that A alone has.")] = None
    changed: Annotated[int | None, about("Keys that both have with other values.")] = None
    columns: Annotated[dict[str, int] | None, about("Rows in which it differs, by column.")] = None
    first_columns: Annotated[tuple[str, ...], about("Columns that A alone has.")] = ()
    second_columns: Annotated[tuple[str, ...], about("Columns that B alone has.")] = ()
    added_examples: Annotated[tuple[Values, ...], about("Some of the keys, in their order.")] = ()
    removed_examples: Annotated[tuple[Values, ...], about("Some of the keys, in their order.")] = ()
    changed_examples: tuple[Changed, ...] = ()


class StudyDifference(Document, frozen=True):
    """What differs between two studies, A and B."""

    first: Annotated[str, about("A, as it was named.")]
    second: Annotated[str, about("B, as it was named.")]
    differs: Annotated[bool, about("Whether anything does.")]
    facts: Annotated[tuple[Fact, ...], about("What the manifests say.")]
    documents: Annotated[tuple[Fact, ...], about("Files that belong to no table.")]
    tables: Annotated[tuple[TableDifference, ...], about("Tables that differ.")]
    same_tables: Annotated[tuple[str, ...], about("Tables whose rows are the same.")]


def diff_studies(
    first: Study, second: Study, examples: int = EXAMPLES, called: tuple[str, str] | None = None
) -> StudyDifference:
    """Return what differs between two studies: facts, documents, and rows by key where row hashes differ."""
    ours, theirs = first.manifest, second.manifest
    names = list(dict.fromkeys([*(t.name for t in first.tables), *(t.name for t in second.tables)]))
    same = tuple(name for name in names if _is_same(first, second, name))
    facts = _differing(_facts(ours), _facts(theirs))
    documents = _differing(_documents(ours), _documents(theirs))
    tables = tuple(diff_table(first, second, name, examples) for name in names if name not in same)
    differs = bool(facts or documents or tables)
    return StudyDifference(*(called or (first.name, second.name)), differs, facts, documents, tables, same)


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
    registration = as_builtins(manifest.registration)
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


def _differing(first: dict[str, str], second: dict[str, str]) -> tuple[Fact, ...]:
    names = dict.fromkeys([*first, *second])
    return tuple(Fact(n, first.get(n), second.get(n)) for n in names if first.get(n) != second.get(n))


def diff_table(first: Study, second: Study, name: str, examples: int) -> TableDifference:
    """Return what differs between the rows of a table; files that both studies have are not compared."""
    key = next(table.key for table in (*first.tables, *second.tables) if table.name == name)
    rows = tuple(study.manifest.tables[name].rows if study.has(name) else None for study in (first, second))
    if not (first.has(name) and second.has(name)):
        return TableDifference(name, (rows[0], rows[1]), key)
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as connection:
        for setting in (f"memory_limit = '{MEMORY}'", f"temp_directory = '{scratch}'", "TimeZone = 'UTC'"):
            connection.execute(f"SET {setting}")
        both = _Both(connection, key, _lay(connection, first, second, name))
        return TableDifference(
            name,
            (rows[0], rows[1]),
            key,
            **both.counts(where=f"{name} of {first.folder} or {second.folder}"),
            added_examples=both.keys("b", "a", examples),
            removed_examples=both.keys("a", "b", examples),
            changed_examples=both.changes(examples),
        )


def _lay(
    connection: duckdb.DuckDBPyConnection, first: Study, second: Study, name: str
) -> list[dict[str, str]]:
    """Create the views `a` and `b` of the rows that may differ; return the columns of each, with types."""
    digests = [{s.manifest.files[f].sha256 for f in s.manifest.tables[name].files} for s in (first, second)]
    columns = []
    for view, study in (("a", first), ("b", second)):
        paths = study.paths(name)
        files = zip(study.manifest.tables[name].files, paths, strict=True)
        own = [p for file, p in files if study.manifest.files[file].sha256 not in digests[0] & digests[1]]
        files_read = f"read_parquet([{literals(own or paths[:1])}])" + ("" if own else " WHERE false")
        connection.execute(f'CREATE VIEW {view} AS SELECT true AS "is here", * FROM {files_read}')
        described = connection.execute(f"DESCRIBE {view}").fetchall()
        columns.append({column: kind for column, kind, *_ in described})
    return columns


class _Both:
    """The views `a` and `b`, joined by key."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, key: tuple[str, ...], columns: list[dict[str, str]]
    ) -> None:
        first, second = columns
        self._connection = connection
        self._key = key
        self._alone = [
            tuple(c for c in columns_of if c not in other)
            for columns_of, other in ((first, second), (second, first))
        ]
        self._is_same = {
            c: _equality(c, first[c] == second[c]) for c in first if c in second and c != "is here"
        }
        self._values = [c for c in self._is_same if c not in key]
        self._on = " AND ".join(self._is_same[c] for c in key)
        self._differs = " OR ".join(f"NOT ({self._is_same[c]})" for c in self._values) or "false"

    def counts(self, where: str) -> dict[str, Any]:
        """Return how many rows and values differ, and which columns only one side has."""
        met = 'a."is here" AND b."is here"'
        per_column = "".join(f", count(*) FILTER ({met} AND NOT ({self._is_same[c]}))" for c in self._values)
        removed, added, matched, changed, *differing = self._one(
            'SELECT count(*) FILTER (b."is here" IS NULL), count(*) FILTER (a."is here" IS NULL), '
            f"count(*) FILTER ({met}), count(*) FILTER ({met} AND ({self._differs})){per_column} "
            f"FROM a FULL JOIN b ON {self._on}"
        )
        sizes = self._one("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)")
        if sizes != (removed + matched, added + matched):
            raise DamagedError(
                "a key stands in more than one row", expected=f"{', '.join(self._key)} once", where=where
            )
        return {
            "added": added,
            "removed": removed,
            "changed": changed,
            "columns": {c: count for c, count in zip(self._values, differing, strict=True) if count},
            "first_columns": self._alone[0],
            "second_columns": self._alone[1],
        }

    def keys(self, side: str, other: str, most: int) -> tuple[Values, ...]:
        """Return some keys that only one side has."""
        columns = ", ".join(f'{side}."{c}"' for c in self._key)
        answer = self._connection.execute(
            f"SELECT {columns} FROM {side} ANTI JOIN {other} ON {self._on} ORDER BY ALL LIMIT {most}"
        )
        return tuple(dict(zip(self._key, row, strict=True)) for row in answer.fetchall())

    def changes(self, most: int) -> tuple[Changed, ...]:
        """Return some rows that both sides have with other values."""
        keys = ", ".join(f'a."{c}"' for c in self._key)
        values = "".join(f', {self._is_same[c]}, a."{c}", b."{c}"' for c in self._values)
        answer = self._connection.execute(
            f"SELECT {keys}{values} FROM a JOIN b ON {self._on} WHERE {self._differs} "
            f"ORDER BY {keys} LIMIT {most}"
        )
        width = len(self._key)
        return tuple(
            Changed(
                dict(zip(self._key, row[:width], strict=True)),
                {
                    column: (mine, theirs)
                    for column, is_same, mine, theirs in zip(
                        self._values, row[width::3], row[width + 1 :: 3], row[width + 2 :: 3], strict=True
                    )
                    if not is_same
                },
            )
            for row in answer.fetchall()
        )

    def _one(self, sql: str) -> tuple[Any, ...]:
        (row,) = self._connection.execute(sql).fetchall()
        return tuple(row)


def _equality(column: str, same_type: bool) -> str:  # noqa: FBT001 - what the comparison depends on
    if same_type:
        return f'a."{column}" IS NOT DISTINCT FROM b."{column}"'
    return f'CAST(a."{column}" AS VARCHAR) IS NOT DISTINCT FROM CAST(b."{column}" AS VARCHAR)'
