"""The probe's checkpoints: their order, their rows, and how many tasks and groups stand behind them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.study.findings.evidence import matches
from toolkit.study.findings.finding import Unavailable

if TYPE_CHECKING:
    from toolkit.decisions.measure import Row
    from toolkit.study.findings.evidence import Evidence

BASE = "base"
SCORED = "all"
"""Findings are on every coordinate that was scored, as the published probe is."""


@dataclass(frozen=True)
class ProbeSize:
    """How much was scored for transition noise at every checkpoint.

    Args:
        tasks: diagnostic tasks, T.
        groups: paired groups a task, N; each has a schedule of its own.
    """

    tasks: int
    groups: int

    @property
    def all_groups(self) -> int:
        """Paired groups over all tasks."""
        return self.tasks * self.groups


def traces(evidence: Evidence, noise: str) -> list[Row]:
    """Return the probe's mean-centred rows under one noise, the untrained policy first.

    Raises:
        Unavailable: there is none, or a trace is not positive.
    """
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
    """Return the sizes that all checkpoints share.

    Raises:
        Unavailable: checkpoints or runs differ in them, or there are fewer than two tasks or groups.
    """
    listed = [row for row in evidence.rows("probe_diagnostic_tasks") if row["scored"] == SCORED]
    tasks = Counter(map(named, listed))
    group_sizes = {row["group_size"] for row in evidence.rows("runs")}
    rollouts = {row["diagnostic_rollouts"] for row in evidence.rows("probe_checkpoints")}
    if 0 in group_sizes or not len(set(tasks.values())) == len(group_sizes) == len(rollouts) == 1:
        raise Unavailable("checkpoints differ in tasks or rollouts, or runs in group size")
    size = next(iter(tasks.values()))
    groups, rest = divmod(rollouts.pop(), size * group_sizes.pop())
    if rest or min(size, groups) < 2:  # noqa: PLR2004 - a variance needs two
        raise Unavailable("the diagnostic rollouts do not make two groups or more for each of two tasks")
    return ProbeSize(size, groups)
