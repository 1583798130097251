"""What is read of a study: its tables' rows, found by the values of their columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from toolkit.registers.episode_counts import Counts
    from toolkit.registers.manifest import Origin


Row = Mapping[str, Any]


class Tables(Protocol):
    """What is measured: a study's tables, as they are stored."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only."""

    def has(self, table: str) -> bool:
        """Whether the study has a table."""

    def rows(self, table: str) -> Sequence[Any]:
        """The rows of a table."""

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task, counted from episode rows."""


class Registers(Tables, Protocol):
    """What is decided on: tables that say what was hashed of them, and hold against their rows."""

    @property
    def origin(self) -> Origin | None:
        """Where on the Hub the study came from; None for a local one."""

    def hashed_rows(self, table: str) -> str | None:
        """The logical row hash of a table, if it was computed here."""

    def hashed(self, table: str) -> dict[str, str]:
        """The SHA-256 of each file of a table that was hashed here, by path."""

    def derive(self, table: str, names: Collection[str]) -> None:
        """Check that rows of a table are what the rows give that they follow from."""


class IndexedRows(list[Row]):
    """A table's rows, with an index for every set of columns that was asked by. Nobody changes them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(rows)
        self._indices: dict[tuple[str, ...], dict[tuple[object, ...], list[Row]]] = {}

    def having(self, wanted: Mapping[str, object]) -> list[Row]:
        """Return the rows with these values, in order."""
        names = tuple(wanted)
        if names not in self._indices:
            index: dict[tuple[object, ...], list[Row]] = {}
            for row in self:
                index.setdefault(tuple(row[name] for name in names), []).append(row)
            self._indices[names] = index
        return self._indices[names].get(tuple(wanted.values()), [])


class Indexed:
    """Registers whose rows are read once and indexed: a registration asks one table hundreds of times.

    Args:
        registers: the study.
    """

    def __init__(self, registers: Registers) -> None:
        self.name, self.is_summary, self.origin = registers.name, registers.is_summary, registers.origin
        self.has, self.derive = registers.has, registers.derive
        self.hashed, self.hashed_rows = registers.hashed, registers.hashed_rows
        self.success_counts = registers.success_counts
        self._read = registers.rows
        self._rows: dict[str, IndexedRows] = {}

    def rows(self, table: str) -> IndexedRows:
        """The rows of a table."""
        if table not in self._rows:
            self._rows[table] = IndexedRows(self._read(table))
        return self._rows[table]


def rows_with(table: Sequence[Row], wanted: Mapping[str, object]) -> Sequence[Row]:
    """Return the rows of a table that have the wanted values."""
    if isinstance(table, IndexedRows):
        return table.having(wanted)
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]
