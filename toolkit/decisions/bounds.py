"""The other bound: a study as it would be, had every episode without an outcome succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.lookup import IndexedRows, Registers, Row

if TYPE_CHECKING:
    from toolkit.registers.episode_counts import Counts

EVALUATIONS = "evaluations"
MISSING = "missing"


def lack_outcomes(registers: Registers) -> bool:
    """Whether any episode of a study has no outcome of its own, and counts as a failure."""
    return registers.has(EVALUATIONS) and any(row.get(MISSING) for row in registers.rows(EVALUATIONS))


class AllSucceed:
    """Registers in which what is missing are successes, or has the highest score.

    Args:
        registers: with what is missing as failures, or with the lowest score.
        scores: the registered range of scores, where there are any.
    """

    def __init__(self, registers: Registers, scores: tuple[Fraction, Fraction] | None) -> None:
        self.name, self.is_summary, self.origin = registers.name, registers.is_summary, registers.origin
        self.has, self.derive = registers.has, registers.derive
        self.hashed, self.hashed_rows = registers.hashed, registers.hashed_rows
        self._registers = registers
        low, high = scores or (Fraction(0), Fraction(1))
        self._lifts = {"successes": 1, "true_success": 1, "score": float(high - low)}

    def rows(self, table: str) -> IndexedRows:
        """The rows of a table."""
        rows = self._registers.rows(table)
        return IndexedRows([self._lifted(row) for row in rows] if table == EVALUATIONS else rows)

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task."""
        counts = self._registers.success_counts(column, runs, where, steps)
        lift = self._lifts.get(column)
        if not lift:
            return counts
        lacking = self._registers.success_counts(MISSING, runs, where, steps)
        return {
            at: {
                task: counted._replace(successes=counted.successes + lift * lacking[at][task].successes)
                for task, counted in tasks.items()
            }
            for at, tasks in counts.items()
        }

    def _lifted(self, row: Row) -> Row:
        lacking = row.get(MISSING) or 0
        lifted = {name: row[name] + by * lacking for name, by in self._lifts.items() if name in row}
        return {**row, **lifted, MISSING: 0}
