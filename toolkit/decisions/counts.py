"""The counts behind a criterion: what each arm had, over steps, and over seeds or those that failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.lookup import Row, Tables
from toolkit.decisions.measure import counted_at
from toolkit.decisions.plan import Plan
from toolkit.decisions.subgroup import rows_of
from toolkit.decisions.values import Missing, exact

if TYPE_CHECKING:
    from toolkit.documents.decisions import ArmCountsDocument

# More seeds than this are counted together.
MOST_SEEDS = 2


@dataclass(frozen=True)
class ArmCounts:
    """What one arm had.

    Args:
        arm: the arm.
        seed: the seed; None for all of an endpoint's.
        count: how many, such as successes; a sum of scores where these were measured.
        of: out of how many, such as episodes.
        counted, among: the columns of the register that hold them.
        steps: how many evaluations were added up, each with the same weight.
    """

    arm: str
    seed: int | None
    count: int | float
    of: int | float
    counted: str
    among: str
    steps: int = 1

    def as_dict(self) -> ArmCountsDocument:
        """Return the counts as they are printed with `--json`."""
        return {
            "arm": self.arm,
            "seed": self.seed,
            "count": self.count,
            "of": self.of,
            "counted": self.counted,
            "among": self.among,
            "steps": self.steps,
        }


def arm_counts(
    endpoint: Endpoint, registers: Tables, plan: Plan, failing: Collection[str]
) -> tuple[ArmCounts, ...]:
    """Add up what the arms of an endpoint had at the steps that it reads."""
    table = rows_of(endpoint, registers)
    if not isinstance(endpoint.outcome, Rate) or not endpoint.arms or isinstance(table, Missing):
        return ()
    named = tuple(seed for seed in endpoint.seeds if str(seed) in failing) if endpoint.by == "seed" else ()
    alone = 0 < len(named) <= MOST_SEEDS
    runs = plan.deciding_runs(endpoint, registers.rows("runs"))
    made = []
    for seeds in [(seed,) for seed in named] if alone else [endpoint.seeds]:
        for arm in endpoint.arms:
            rows = [
                row
                for run in (runs[arm, seed] for seed in seeds)
                for step in endpoint.steps
                for row in [run if isinstance(run, Missing) else counted_at(endpoint, table, run, step)]
            ]
            sums = [_sum(rows, name) for name in endpoint.outcome.columns]
            if None in sums:
                return ()
            above, below = (number for number in sums if number is not None)
            seed = seeds[0] if alone else None
            counted, among = endpoint.outcome.columns
            made.append(ArmCounts(arm, seed, above, below, counted, among, len(endpoint.steps)))
    return tuple(made)


def _sum(rows: Sequence[Row | Missing], column: str) -> int | float | None:
    """Return the sum of a column; None where a row or its number is missing, or there is no row."""
    numbers = [None if isinstance(row, Missing) else row.get(column) for row in rows]
    if not numbers or None in numbers:
        return None
    total = sum((exact(number) for number in numbers if number is not None), Fraction(0))
    return int(total) if total.denominator == 1 else float(total)
