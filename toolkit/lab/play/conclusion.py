"""The end of a run: its rows as Parquet files, what follows from them, and what they lack."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from toolkit.lab.play import summaries, workplace
from toolkit.lab.play.segments import Segment, names_of, rows_of
from toolkit.lab.play.shortcomings import shortcomings
from toolkit.registers import arrow, columns, schema
from toolkit.specification import Specification


def files_of(specification: Specification) -> tuple[str, ...]:
    """Return the names of the files that a run's conclusion consists of."""
    return (*(f"{name}.parquet" for name in names_of(specification)), workplace.SUMMARY)


def conclude(specification: Specification, segments: Iterable[bytes]) -> dict[str, bytes]:
    """Return the files that end a run."""
    rows: Segment = {name: [] for name in names_of(specification)}
    for raw in segments:
        played = rows_of(raw, specification.run_id)
        for name in rows:
            rows[name] += played.get(name, ())  # one of an earlier version has no figures of steps
    tables = {name: arrow.to_arrow(schema.TABLES[name], part) for name, part in rows.items()}
    counted = summaries.count_episodes(specification.run_id, tables["episodes"])
    lacking = shortcomings(specification, counted, tables)
    run, there = summaries.run_place(specification), {n: t for n, t in tables.items() if t.num_rows}
    summary = {
        "shortcomings": list(lacking),
        "runs": [summaries.run_row(specification, counted, there, lacks=bool(lacking))],
        "evaluations": summaries.evaluations(run, counted),
        "groups_summary": summaries.groups_summary(run, there.get("groups")),
        "luck_share_summary": summaries.luck_share_summary(
            run, rows.get("luck_share", ()), summaries.policy_of(specification)
        ),
    }
    files = {f"{name}.parquet": arrow.parquet_bytes(name, table) for name, table in tables.items()}
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
    return files | {workplace.SUMMARY: f"{text}\n".encode()}


def derived_rows(summary: Mapping[str, Any], table: str) -> list[arrow.Row]:
    """Return the rows of a table that a run's summary holds, with their exact numbers."""
    exact = [column.name for column in schema.TABLES[table].columns if column.type is columns.Type.DECIMAL]
    return [
        row | {name: Decimal(row[name]) for name in exact if row[name] is not None} for row in summary[table]
    ]


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
