"""Stored decisions: kept for readers, compared with those that are reached, never believed."""

import hashlib
import json
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any

from toolkit.decisions.decision import Decision
from toolkit.decisions.interval import Interval
from toolkit.decisions.values import Missing
from toolkit.errors import DamagedError
from toolkit.registers.row_tables import DECISIONS, LAUNCHES
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study

# What is decided does not depend on these: decisions are what comes out, and launches enter no rule.
LEFT_OUT = (DECISIONS.name, LAUNCHES.name)
# Ends from another machine may differ in their last digits, where draws are nested: far below any error.
ROUNDING = Fraction(1, 10**9)


def inputs_sha256(study: Study) -> str:
    """Return the SHA-256 of what a study's decisions were made on."""
    tables = {name: study.sha256(name) for name in TABLES if name not in LEFT_OUT and study.has(name)}
    registered = study.manifest.registration
    frozen = {"name": registered.name, "sha256": registered.sha256}
    document = {"registration": frozen, "amendments": dict(registered.amendments), "tables": tables}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def decision_rows(decisions: Sequence[Decision], inputs: str) -> list[dict[str, Any]]:
    """Return decisions as rows of `decisions`."""
    return [_row(decision, inputs) for decision in decisions]


class StoredDecisions:
    """The decisions that a study keeps: none is believed, each has to be the one that is reached.

    Args:
        study: the study.
    """

    def __init__(self, study: Study) -> None:
        rows = study.rows(DECISIONS.name) if study.has(DECISIONS.name) else ()
        self._rows = {row["rule"]: row for row in rows}
        self._inputs = inputs_sha256(study) if rows else ""

    def check(self, decision: Decision) -> None:
        """Check that a stored decision is the one reached now."""
        row = self._rows.get(decision.rule)
        if row is None:
            return
        for name, reached in _row(decision, self._inputs).items():
            if not _same(row[name], reached):
                what = name.replace("_", " ")
                raise DamagedError(
                    f"the stored decision on {decision.rule} has another {what} than the one reached",
                    expected=reached,
                    found=row[name],
                    where=f"{DECISIONS.name} row rule={decision.rule}",
                    remedy="restore the files, or decide and store anew",
                )

    def check_complete(self, rules: Collection[str]) -> None:
        """Check that no decision is stored on a rule that is none."""
        unknown = [rule for rule in self._rows if rule not in rules]
        if unknown:
            raise DamagedError(
                "a decision is stored on a rule that the registration does not have",
                expected=", ".join(rules),
                found=unknown[0],
                where=DECISIONS.name,
            )


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
