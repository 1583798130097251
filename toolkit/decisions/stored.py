"""Stored decisions: an interval is computed once for the same inputs; all else is decided anew each time."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from toolkit.decisions.decision import Decision
from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.interval import Interval, computed_interval
from toolkit.decisions.lookup import Registers, Row
from toolkit.decisions.values import Missing
from toolkit.errors import DamagedError
from toolkit.registers.row_tables import DECISIONS, LAUNCHES
from toolkit.registers.schema import TABLES

# What is decided does not depend on these: decisions are what comes out, and launches enter no rule.
LEFT_OUT = (DECISIONS.name, LAUNCHES.name)
# Ends from another machine may differ in their last digits, where draws are nested: far below any error.
ROUNDING = Fraction(1, 10**9)


def inputs_sha256(registration: tuple[str, str], amendments: Mapping[str, str], registers: Registers) -> str:
    """Return the SHA-256 of what is decided on.

    Args:
        registration: name and digest of the frozen files.
        amendments: amendment id → SHA-256 of its file.
        registers: the study.

    Returns:
        Digest of the canonical JSON of the registration, its amendments and the row hash of every table but
        the decisions and the launches.
    """
    tables = {name: registers.sha256(name) for name in TABLES if name not in LEFT_OUT and registers.has(name)}
    frozen = {"name": registration[0], "sha256": registration[1]}
    document = {"registration": frozen, "amendments": dict(amendments), "tables": tables}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def decision_rows(decisions: Sequence[Decision], inputs: str) -> list[dict[str, Any]]:
    """Return decisions as rows of `decisions`.

    Args:
        decisions: of one study, each rule once.
        inputs: what they were made on, as `inputs_sha256`.
    """
    return [_row(decision, inputs) for decision in decisions]


class StoredDecisions:
    """The decisions that a study keeps, as far as they were made on what is decided on now.

    Args:
        registers: the study.
        inputs: what is decided on now.
        specs: the registered intervals.

    Raises:
        DamagedError: two of them have one interval with different ends, or one that is none.
    """

    def __init__(self, registers: Registers, inputs: str, specs: Mapping[str, IntervalSpec]) -> None:
        rows = registers.rows(DECISIONS.name) if registers.has(DECISIONS.name) else ()
        self._rows = {row["rule"]: row for row in rows if row["inputs_sha256"] == inputs}
        self._intervals: dict[str, Interval] = {}
        for row in self._rows.values():
            if row["low_error"] is not None and row["interval"] in specs:
                self._add(row, specs[row["interval"]])

    def interval(self, name: str) -> Interval | None:
        """Return a stored interval; None where there is none for what is decided on now."""
        return self._intervals.get(name)

    def check(self, decision: Decision) -> None:
        """Check that a stored decision is the one reached now.

        Raises:
            DamagedError: it says something else.
        """
        row = self._rows.get(decision.rule)
        if row is None:
            return
        for name, reached in _row(decision, row["inputs_sha256"]).items():
            if not _same(row[name], reached):
                raise _contradiction(row, name, reached)

    def _add(self, row: Row, spec: IntervalSpec) -> None:
        numbers = tuple(row[name] for name in ("level", "low", "high", "low_error", "high_error"))
        if None in numbers or row["level"] != float(spec.level):
            raise DamagedError(
                f"the stored interval {spec.id} of {row['rule']} is not the registered one",
                expected=f"two ends with their errors, at level {float(spec.level)}",
                found=", ".join(map(str, numbers)),
                where=DECISIONS.name,
            )
        interval = computed_interval(spec, *numbers[1:], is_stored=True)
        known = self._intervals.setdefault(spec.id, interval)
        if known != interval:
            raise _contradiction(row, "low", float(known.low))


def _row(decision: Decision, inputs: str) -> dict[str, Any]:
    estimate = decision.estimate
    mean = None if estimate is None or isinstance(estimate.mean, Missing) else float(estimate.mean)
    interval = decision.interval if isinstance(decision.interval, Interval) else None
    errors = interval.errors if interval else None
    return {
        **{name: getattr(decision, name) for name in ("rule", "kind", "verdict", "evidence")},
        "estimate": mean,
        "interval": interval.id if interval else None,
        "level": float(interval.level) if interval else None,
        "low": float(interval.low) if interval else None,
        "high": float(interval.high) if interval else None,
        "low_error": float(errors[0]) if errors else None,
        "high_error": float(errors[1]) if errors else None,
        "inputs_sha256": inputs,
    }


def _same(stored: object, reached: object) -> bool:
    if isinstance(stored, float) and isinstance(reached, float):
        return abs(Fraction(stored) - Fraction(reached)) <= ROUNDING
    return stored == reached


def _contradiction(row: Row, name: str, reached: object) -> DamagedError:
    return DamagedError(
        f"the stored decision on {row['rule']} has another {name.replace('_', ' ')} than its own inputs give",
        expected=reached,
        found=row[name],
        where=f"{DECISIONS.name} row rule={row['rule']}",
        remedy="restore the file, or store the decisions again; --recompute computes every interval",
    )
