"""The end of a run: its rows as Parquet files, and a summary of what follows from them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from toolkit.registers.arrow import parquet_bytes, to_arrow
from toolkit.registers.columns import Type
from toolkit.registers.schema import TABLES
from toolkit.study.check.evidence import shortcomings
from toolkit.study.play.segments import names_of, rows_of
from toolkit.study.play.summaries import evaluations, groups_summary, luck_share_summary, policy_of, run_row
from toolkit.study.play.workplace import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.registers.arrow import Row
    from toolkit.study.play.run import Segment
    from toolkit.training.specification import Specification

DERIVED = ("runs", "evaluations", "groups_summary", "luck_share_summary")
"""Tables of which a run's summary holds the rows."""


def files_of(specification: Specification) -> tuple[str, ...]:
    """Return the names of the files that a run's conclusion consists of."""
    return (*(f"{name}.parquet" for name in names_of(specification)), SUMMARY)


def conclude(specification: Specification, segments: Iterable[bytes]) -> dict[str, bytes]:
    """Return the files that end a run.

    Args:
        specification: the run.
        segments: its segments' files, in order.

    Raises:
        DamagedError: rows contradict the schema, or a segment is not as it was written.
    """
    rows: Segment = {name: [] for name in names_of(specification)}
    for raw in segments:
        for name, listed in rows_of(raw, specification.run_id).items():
            rows[name] += listed
    lacking = shortcomings(specification, rows)
    status = "INCOMPLETE" if lacking else "COMPLETE"
    summary = {
        "shortcomings": list(lacking),
        "runs": [run_row(specification, rows, status, specification.study)],
        "evaluations": evaluations(specification, rows["episodes"]),
        "groups_summary": groups_summary(specification, rows["groups"]),
        "luck_share_summary": luck_share_summary(specification, rows["luck_share"], policy_of(specification)),
    }
    files = {
        f"{name}.parquet": parquet_bytes(name, to_arrow(TABLES[name], listed))
        for name, listed in rows.items()
    }
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
    return files | {SUMMARY: f"{text}\n".encode()}


def derived_rows(summary: Mapping[str, Any], table: str) -> list[Row]:
    """Return the rows of a table that a run's summary holds, with their exact numbers."""
    exact = [column.name for column in TABLES[table].columns if column.type is Type.DECIMAL]
    return [
        row | {name: Decimal(row[name]) for name in exact if row[name] is not None} for row in summary[table]
    ]


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
