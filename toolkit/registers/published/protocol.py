"""Intervals as published, and the dated events of the protocol."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.published.source import Record, Source, decimal, put, whole

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row

# Endpoint of the registration → (condition, hypothesis, figure, percent) of the original decision registers.
_INTERVALS = {
    "c2_auc": ("C2", "H2a", "auc_difference", 95),
    "c2_challenge": ("C2", "H3", "difference", 95),
    "c2_held_out": ("C2", "H5", "difference", 90),
    "c4_auc": ("C4", "H2b", "auc_difference", 95),
}

# What an event's first words say of its kind; the first match counts.
_KINDS = (
    ("timestamp token", "token"),
    ("frozen document", "freeze"),
    ("freeze commit", "freeze"),
    ("amendment", "amendment"),
    ("test pool exposure", "disclosure"),
    ("infrastructure", "disclosure"),
    ("late C2 stage", "deviation"),
    ("model fallback", "change_before_freeze"),
    ("environment", "change_before_freeze"),
    ("run matrix", "change_before_freeze"),
    ("calibration", "calibration"),
    ("probe", "probe"),
    ("registered probes", "probe"),
)


def intervals(source: Source) -> list[Row]:
    """Return the rows of `intervals`."""
    decisions: dict[tuple[str, str], Record] = {}
    for r in source.records["decisions"]:
        name = r["figure"] if r["seed"] in ("", "mean") else f"{r['figure']}/{r['seed']}"
        put(decisions.setdefault((r["condition"], r["hypothesis"]), {}), name, r["value"])
    rows: list[Row] = []
    for endpoint, (condition, hypothesis, figure, percent) in _INTERVALS.items():
        f = decisions[condition, hypothesis]
        rows.append(
            {
                "endpoint": endpoint,
                "level": Decimal(percent) / 100,
                "low": decimal(f, f"{figure}_ci{percent}_low"),
                "high": decimal(f, f"{figure}_ci{percent}_high"),
                "estimate": decimal(f, figure),
                "decimals": 4,
                "method": "percentile bootstrap",
                "resampled": "seed pairs; tasks with all their schedules",
                "resamples": whole(f, "bootstrap_resamples"),
                "rng_seed": whole(f, "bootstrap_rng_seed"),
                "tasks": whole(f, "tasks"),
            }
        )
    return rows


def events(source: Source) -> list[Row]:
    """Return the rows of `events`."""
    rows: list[Row] = []
    for r in source.records["freeze"]:
        at = datetime.fromisoformat(r["date_utc"])
        rows.append(
            {
                "occurred_at": at if at.tzinfo else at.replace(tzinfo=UTC),
                "precision": "second" if at.tzinfo else "day",
                "kind": _kind(r["event"]),
                "event": r["event"],
                "detail": r["detail"] or None,
                "source": r["source"],
            }
        )
    return rows


def _kind(event: str) -> str:
    for start, kind in _KINDS:
        if event.startswith(start):
            return kind
    if "cancelled" in event:
        return "cancellation"
    if "launch" in event:
        return "launch"
    raise DamagedError("an event is of no known kind", found=event, where="freeze.csv")
