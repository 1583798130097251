"""A study some of whose tables are not as they were written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toolkit.registers.arrow import Row
from toolkit.registers.study import Study


@dataclass(frozen=True)
class Changed:
    """A study in which some tables have other rows, or, where None is given, are not there."""

    study: Study
    tables: Mapping[str, list[Row] | None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.study, name)

    def has(self, table: str) -> bool:
        return self.tables[table] is not None if table in self.tables else self.study.has(table)

    def rows(self, table: str) -> list[Row]:
        return self.tables[table] or [] if table in self.tables else self.study.rows(table)

    def columns(self, table: str, names: Sequence[str]) -> Any:
        if table not in self.tables:
            return self.study.columns(table, names)
        return pa.Table.from_pylist([{name: row[name] for name in names} for row in self.rows(table)])

    def run_columns(self, table: str, run: str, names: Sequence[str]) -> Any:
        if table not in self.tables:
            return self.study.run_columns(table, run, names)
        rows = [row for row in self.rows(table) if row.get("run_id", row.get("trajectory")) == run]
        return pa.Table.from_pylist([{name: row[name] for name in names} for row in rows])
