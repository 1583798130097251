"""A study's registers, opened for reading: rows, Arrow tables, polars frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError
from toolkit.registers.arrow import Row, check_columns, to_rows
from toolkit.registers.episode_counts import count_successes
from toolkit.registers.manifest import Manifest, check_file, read_manifest
from toolkit.registers.rowhash import row_sha256
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from toolkit.registers.columns import Table
    from toolkit.registers.episode_counts import Counts


@dataclass(frozen=True)
class Study:
    """A dataset repository whose manifest was read and whose seal holds.

    Every read checks the file's SHA-256 against the manifest first: no figure comes from a damaged file.

    Args:
        folder: absolute path of the repository.
        manifest: its manifest.
    """

    folder: Path
    manifest: Manifest
    _arrow: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.manifest.study

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only, without the rows behind them."""
        return self.manifest.evidence == "summary"

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the study has, in schema order."""
        return tuple(table for name, table in TABLES.items() if name in self.manifest.tables)

    def has(self, table: str) -> bool:
        """Whether the study has the table."""
        return table in self.manifest.tables

    def sha256(self, table: str) -> str:
        """Return the logical row hash of a table."""
        return self.manifest.tables[self._known(table)].row_sha256

    def paths(self, table: str) -> tuple[Path, ...]:
        """Return the Parquet files of a table, each checked against the manifest.

        Raises:
            UsageError: the study has no such table.
            IncompleteError: a file is missing or cannot be read.
            DamagedError: a file is not the one the manifest names.
        """
        names = self.manifest.tables[self._known(table)].files
        for name in names:
            check_file(self.folder, name, self.manifest.files[name])
        return tuple(self.folder / name for name in names)

    def arrow(self, table: str) -> Any:
        """Return a table as a `pyarrow.Table`, its bytes, columns, rows and row hash checked.

        Raises:
            DamagedError: as `paths`, or a file is no Parquet file, or its columns are not the schema's, or
                its rows are not those of the manifest.
        """
        if table not in self._arrow:
            self._arrow[table] = self._read(table)
        return self._arrow[table]

    def rows(self, table: str) -> list[Row]:
        """Return a table's rows as dictionaries, in key order, each checked against the schema.

        Raises:
            DamagedError: as `arrow`, or a row that the schema does not allow.
        """
        rows = to_rows(self.arrow(table))
        check_table(TABLES[table], rows)
        return rows

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Count the episodes of some runs by task; arguments and errors as `count_successes`."""
        return count_successes(self, column, runs, where, steps)

    def kept(self, name: str, read: Callable[[], Any]) -> Any:
        """Return what was read under a name, read now if it was not yet."""
        if name not in self._kept:
            self._kept[name] = read()
        return self._kept[name]

    def polars(self, table: str) -> pl.LazyFrame:
        """Return a table as a polars lazy frame; errors as `paths`."""
        import polars as pl

        return pl.scan_parquet(list(self.paths(table)))

    def _known(self, table: str) -> str:
        if table not in self.manifest.tables:
            raise UsageError(
                f"study {self.name!r} has no table {table!r}",
                expected=", ".join(sorted(self.manifest.tables)),
                where=self.folder,
            )
        return table

    def _read(self, name: str) -> Any:
        import pyarrow as pa

        recorded = self.manifest.tables[self._known(name)]
        table = TABLES[name]
        parts = []
        for file, path in zip(recorded.files, self.paths(name), strict=True):
            part = _parquet(path)
            check_columns(table, part.schema, path)
            _check_same(f"the rows of {file}", self.manifest.files[file].rows, part.num_rows, path)
            parts.append(part.select(table.column_names))
        whole = pa.concat_tables(parts)
        _check_same(f"the number of rows of {name}", recorded.rows, whole.num_rows, self.folder)
        _check_same(f"the row hash of {name}", recorded.row_sha256, row_sha256(whole), self.folder)
        return whole


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        part = pq.ParquetFile(path).read()
        part.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(
            f"{path.name} is not a readable Parquet file", found=str(error).splitlines()[0], where=path
        ) from None
    return part


def _check_same(what: str, expected: object, found: object, where: Path) -> None:
    if expected != found:
        raise DamagedError(
            f"{what} is not what the manifest says", expected=expected, found=found, where=where
        )


def open_study(folder: Path) -> Study:
    """Open a study's folder.

    Raises:
        IncompleteError: there is no readable manifest.
        DamagedError: the manifest was changed, or names a table unknown to the schema.
    """
    manifest = read_manifest(folder)
    unknown = sorted(set(manifest.tables) - set(TABLES))
    if unknown:
        raise DamagedError(
            "the manifest names tables that the schema does not know",
            expected=", ".join(TABLES),
            found=", ".join(unknown),
            where=folder / "MANIFEST.json",
        )
    return Study(folder, manifest)
