"""Rows found by the values of their columns, without reading the whole table for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.decisions.measure import Registers
    from toolkit.registers.episode_counts import Counts
    from toolkit.registers.study import Origin

Row = Mapping[str, Any]


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
        self._registers = registers
        self._rows: dict[str, IndexedRows] = {}

    @property
    def name(self) -> str:
        """The study's name."""
        return self._registers.name

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only."""
        return self._registers.is_summary

    @property
    def origin(self) -> Origin | None:
        """Where on the Hub the study came from; None for a local one."""
        return self._registers.origin

    def has(self, table: str) -> bool:
        """Whether the study has a table."""
        return self._registers.has(table)

    def rows(self, table: str) -> IndexedRows:
        """The rows of a table."""
        if table not in self._rows:
            self._rows[table] = IndexedRows(self._registers.rows(table))
        return self._rows[table]

    def sha256(self, table: str) -> str:
        """The logical row hash of a table."""
        return self._registers.sha256(table)

    def files(self, table: str) -> dict[str, str]:
        """The SHA-256 of each file of a table, by path."""
        return self._registers.files(table)

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task, counted from episode rows."""
        return self._registers.success_counts(column, runs, where, steps)


def rows_with(table: Sequence[Row], wanted: Mapping[str, object]) -> Sequence[Row]:
    """Return the rows of a table that have the wanted values."""
    if isinstance(table, IndexedRows):
        return table.having(wanted)
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]
