"""The probe's checkpoints: their order, their rows, and how many tasks and groups stand behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findings.evidence import Unavailable, matches
from toolkit.lab.probing import figures

if TYPE_CHECKING:
    from findings.evidence import Evidence
    from toolkit.decisions.measure import Row
    from toolkit.lab.probing.figures import ProbeSize

BASE = "base"
SCORED = "all"
"""Findings are on every coordinate that was scored, as the published probe is."""


def traces(evidence: Evidence, noise: str) -> list[Row]:
    """Return the probe's mean-centred rows under one noise, the untrained policy first."""
    where = {"noise": noise, "estimator": "MC", "scored": SCORED}
    rows = [row for row in evidence.rows("probe") if matches(row, where)]
    if not rows:
        raise Unavailable(f"the probe has no mean-centred row under {noise} noise")
    if not all(row["trace_paired"] > 0 and row["trace_independent"] > 0 for row in rows):
        raise Unavailable("a covariance trace is zero")
    return sorted(rows, key=order)


def order(row: Row) -> tuple[bool, str, int]:
    """Sort key: the untrained policy, then trajectory by trajectory."""
    return (row["trajectory"] != BASE, row["trajectory"], row["step"])


def named(row: Row) -> str:
    """Return a checkpoint's name."""
    return f"{row['trajectory']}@{row['step']}"


def probe_size(evidence: Evidence) -> ProbeSize:
    """Return the sizes that all checkpoints share."""
    for table in figures.SIZED:
        evidence.rows(table)
    size = figures.probe_size(evidence.study)
    if size is None:
        raise Unavailable(
            "checkpoints differ in tasks or rollouts, or runs in group size, or there are fewer than two "
            "tasks, or groups for each"
        )
    return size
