"""A study's registers, opened for reading: rows, Arrow tables, polars frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, IncompleteError, UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.registers import manifest as manifests
from toolkit.registers.arrow import Row, check_columns, open_parquet, read_parquet, row_sha256, shape, to_rows
from toolkit.registers.columns import Table
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_rows, check_table

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from toolkit.registers.episode_counts import CountedRun, Counts


SEEN = "source/seen.json"
"""File of a study that holds rows of a pilot: which runs, and why they are there."""


@dataclass(frozen=True)
class Study:
    """A dataset repository whose manifest was read and whose seal holds.

    Every read checks the file's SHA-256 against the manifest first: no figure comes from a damaged file. A
    file is hashed once, and again only where it was touched since.
    """

    folder: Path  # absolute path of the repository
    manifest: manifests.Manifest
    origin: manifests.Origin | None = None  # where on the Hub it came from; None for a local study
    _arrow: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _proven: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        from_hub = f", from {self.origin.pinned}" if self.origin else ""
        rows = sum(entry.rows for entry in self.manifest.tables.values())
        held = f"{self.manifest.evidence}, {len(self.manifest.tables)} tables, {rows:,} rows"
        return f"<Study {self.name!r}: {held}, in {str(self.folder)!r}{from_hub}>"

    @property
    def name(self) -> str:
        """The study's name."""
        return self.manifest.study

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only, without the rows behind them."""
        return self.manifest.evidence == "summary"

    @property
    def pilot_rows(self) -> str:
        """Why rows of a pilot are among those of the study; empty where none are."""
        if SEEN not in self.manifest.files:
            return ""
        self._prove_touched(SEEN)
        return str(json.loads(read_text(self.folder / SEEN))["reason"])

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the study has, in schema order."""
        return tuple(self.table(name) for name in TABLES if name in self.manifest.tables)

    def has(self, table: str) -> bool:
        """Whether the study has the table."""
        return table in self.manifest.tables

    def table(self, name: str) -> Table:
        """Return what a table of the study is: its columns, in its own words."""
        table: Table = self.kept(f"table {name}", lambda: self.manifest.table(self._known(name)))
        return table

    def sha256(self, table: str) -> str:
        """Return the logical row hash of a table."""
        return self.manifest.tables[self._known(table)].row_sha256

    def files(self, table: str) -> dict[str, str]:
        """Return the SHA-256 of each file of a table, by its path within the repository."""
        names = self.manifest.tables[self._known(table)].files
        return {name: self.manifest.files[name].sha256 for name in names}

    def paths(self, table: str) -> tuple[Path, ...]:
        """Return the Parquet files of a table, each checked against the manifest."""
        names = self.manifest.tables[self._known(table)].files
        for name in names:
            self._prove_touched(name)
        return tuple(self.folder / name for name in names)

    def hashed(self, table: str) -> dict[str, str]:
        """Return the SHA-256 of those files of a table that were hashed since the study was opened."""
        return {name: sha256 for name, sha256 in self.files(table).items() if name in self._proven}

    def hashed_rows(self, table: str) -> str | None:
        """Return the logical row hash of a table if it was computed since the study was opened."""
        return self.sha256(table) if table in self._arrow else None

    def prove(self, file: str) -> None:
        """Check a file against the manifest by hashing it now, and remember that it was checked."""
        before = _touched(self.folder / file)
        manifests.check_file(self.folder, file, self.manifest.files[file])
        self._proven[file] = before

    def arrow(self, table: str) -> pa.Table:
        """Return a table as a `pyarrow.Table`, its bytes, columns, rows and row hash checked."""
        if table not in self._arrow:
            self._arrow[table] = self._read(table)
        return self._arrow[table]

    def rows(self, table: str) -> list[Row]:
        """Return a table's rows as dictionaries, in key order, each checked against the schema."""
        arrow = self.arrow(table)
        check_table(self.table(table), arrow)
        return to_rows(arrow)

    def columns(self, table: str, names: Collection[str]) -> pa.Table:
        """Return some columns of a table as a `pyarrow.Table`, in the order asked for; no other is read.

        The rows' hash is not computed, nor are they checked against the schema: the bytes are proven to be
        those that the manifest names.
        """
        known = self.table(table).column_names
        unknown = [name for name in names if name not in known]
        if unknown:
            raise self._unknown(f"table {table!r} has no column {unknown[0]!r}", unknown[0], known)
        if table in self._arrow:
            return self._arrow[table].select(list(names))
        return self._whole(table, list(names))

    def has_rows(self, table: str, run: str) -> bool:
        """Whether a run has a file of a table with one file a run."""
        return self.has(table) and f"{table}/{run}.parquet" in self.manifest.files

    def run_columns(self, table: str, run: str, names: Collection[str]) -> pa.Table:
        """Return some columns of a run's rows as a `pyarrow.Table`; no other file or column is read."""
        known = self.table(table)
        file = f"{table}/{run}.parquet"
        if not self.has_rows(table, run):
            raise IncompleteError(
                f"study {self.name!r} has no {table} of run {run}", expected=file, where=self.folder
            )
        self._prove_touched(file)
        wanted = [name for name in known.column_names if name in names]
        return self._part(known, file, wanted)

    def counted(self, run: str) -> CountedRun:
        """Return the episodes of a run, counted once; errors as `run_columns` and `count_run`."""
        from toolkit.registers import episode_counts

        def count() -> CountedRun:
            rows = self.run_columns(EPISODES.name, run, ("run_id", *episode_counts.COUNTED))
            names = self.table("evaluations").column_names if self.has("evaluations") else ()
            return episode_counts.count_run(run, rows, names)

        counted: CountedRun = self.kept(f"episodes of {run}", count)
        return counted

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Count the episodes of some runs by task."""
        from toolkit.registers.episode_counts import success_counts

        counted = (self.counted(run) for run in runs if self.has_rows(EPISODES.name, run))
        return success_counts(counted, column, where, steps)

    def kept(self, name: str, read: Callable[[], Any]) -> Any:
        """Return what was read under a name, read now if it was not yet."""
        if name not in self._kept:
            self._kept[name] = read()
        return self._kept[name]

    def polars(self, table: str) -> pl.LazyFrame:
        """Return a table as a polars lazy frame; errors as `paths`."""
        import polars as pl

        return pl.scan_parquet(list(self.paths(table)))

    def duckdb(self) -> DuckDBPyConnection:
        """Return a DuckDB connection with one view a table; errors as `paths`.

        It is the caller's to close, and is not locked: it reads and writes whatever this program may. Files
        were checked when it was made; what it answers later is as good as the files then.
        """
        return self._connected([table.name for table in self.tables])

    def relation(self, table: str) -> DuckDBPyRelation:
        """Return a table as a DuckDB relation; errors as `paths`.

        The relation keeps a connection of its own for as long as it lives. Relations of different connections
        cannot be joined: for that, ask `duckdb()` for one.
        """
        return self._connected([table]).view(table)

    def _connected(self, tables: Sequence[str]) -> DuckDBPyConnection:
        import duckdb

        files = {table: self.paths(table) for table in tables}
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for table, paths in files.items():
            create_view(connection, table, paths)
        return connection

    def _known(self, table: str) -> str:
        if table not in self.manifest.tables:
            problem = f"study {self.name!r} has no table {table!r}"
            raise self._unknown(problem, table, sorted(self.manifest.tables))
        return table

    def _unknown(self, problem: str, name: str, known: Collection[str]) -> UsageError:
        remedy = did_you_mean(name, known)
        return UsageError(problem, expected=", ".join(known), where=self.folder, remedy=remedy)

    def _read(self, name: str) -> Any:
        whole = self._whole(name, list(self.table(name).column_names))
        recorded = self.manifest.tables[name].row_sha256
        _check_same(f"the row hash of {name}", recorded, row_sha256(whole), self.folder)
        return whole

    def _whole(self, name: str, columns: list[str]) -> Any:
        """Return columns of all files of a table, one after the other."""
        import pyarrow as pa

        recorded, table = self.manifest.tables[name], self.table(name)
        self.paths(name)
        whole = pa.concat_tables(self._part(table, file, columns) for file in recorded.files)
        _check_same(f"the number of rows of {name}", recorded.rows, whole.num_rows, self.folder)
        return whole

    def _part(self, table: Table, file: str, columns: list[str]) -> Any:
        """Return columns of a file of a table."""
        path = self.folder / file
        source = open_parquet(path)
        check_columns(table, source.schema_arrow, path)
        _check_same(f"the rows of {file}", self.manifest.files[file].rows, source.metadata.num_rows, path)
        return shape(table, read_parquet(source, path, columns))

    def _prove_touched(self, file: str) -> None:
        """Check a file against the manifest, unless it was checked and not touched since."""
        if self._proven.get(file) != _touched(self.folder / file):
            self.prove(file)


def _touched(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written again; nothing where it cannot be looked at."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _check_same(what: str, expected: object, found: object, where: Path) -> None:
    if expected != found:
        raise DamagedError(
            f"{what} is not what the manifest says", expected=expected, found=found, where=where
        )


def open_study(folder: Path, origin: manifests.Origin | None = None) -> Study:
    """Open a study's folder."""
    manifest = manifests.read_manifest(folder)
    manifests.check_known(manifest, folder / "MANIFEST.json")
    return Study(folder, manifest, origin)


def specification_document(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of `runs` says of its specification; nothing where that is no JSON object."""
    try:
        document = json.loads(run.get("specification") or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def launched_runs(study: Study) -> list[Row]:
    """Return the rows of `runs`, each with the moment of its first launch."""
    first: dict[str, datetime] = {}
    for launch in study.rows("launches") if study.has("launches") else ():
        run_id, at = launch["run_id"], launch["launched_at"]
        first[run_id] = min(first.get(run_id, at), at)
    return [
        {**run, "launched_at": first.get(run["run_id"], run.get("launched_at"))} for run in study.rows("runs")
    ]


def check_files(study: Study) -> None:
    """Check that every file is the one that the manifest names, and that no other file lies beside them."""
    for name in study.manifest.files:
        study.prove(name)
    manifests.check_nothing_else(study.folder, study.manifest)


def check_tables(study: Study, progress: Callable[[str], None] = lambda _: None) -> dict[str, int]:
    """Check a study's tables and rows; return the number of rows of each table."""
    tables = {}
    for table in study.tables:
        progress(table.name)
        tables[table.name] = study.arrow(table.name)
    check_rows(tables, {table.name: table for table in study.tables})
    return {name: table.num_rows for name, table in tables.items()}


def verify_study(study: Study, progress: Callable[[str], None] = lambda _: None) -> dict[str, int]:
    """Check a study's files, tables and rows."""
    check_files(study)
    return check_tables(study, progress)


def create_view(connection: DuckDBPyConnection, name: str, files: Sequence[Path]) -> None:
    """Create a view over Parquet files, with the name of their table."""
    connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{literals(files)}])')


def literals(values: Iterable[object]) -> str:
    """Return texts, paths and numbers as SQL writes a list of texts, without its brackets."""
    return ", ".join("'" + str(value).replace("'", "''") + "'" for value in values)
