"""`toolkit registers diff`: what differs between two studies."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli.cells import cell
from toolkit.cli.output import json_option, print_json, say_line
from toolkit.cli.progress import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.registers.diff import Said, StudyDifference, TableDifference


LONGEST = 40
"""Characters of a value that are shown to people."""


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--examples", type=click.IntRange(0, 1000), default=3, help="Rows of each sort to show of a table."
)
@click.option("--fail-on-difference", is_flag=True, help="End with 1 where anything differs.")
@json_option
def diff(*, first: str, second: str, examples: int, fail_on_difference: bool, as_json: bool) -> None:
    """Say what differs between the studies A and B, each a name, a path or OWNER/NAME@REVISION.

    Registration, versions and documents are compared as the manifests state them, tables by their row hash.
    Where that differs, rows are compared by the table's key: added rows are those that B alone has.

    \b
    Examples:
      toolkit registers diff published embedded
      toolkit registers diff owner/name@v1 owner/name@v2 --json
    """
    from toolkit.registers.diff import diff_studies

    with steps("comparing"):
        found = diff_studies(api.open_study(first), api.open_study(second), examples)
    if as_json:
        print_json(cell({"first": first, "second": second, "differs": not found.is_empty, **asdict(found)}))
    else:
        for line in _lines(found):
            say_line(line)
    if fail_on_difference and not found.is_empty:
        sys.exit(1)


def _lines(found: StudyDifference) -> Iterator[str]:
    if found.is_empty:
        yield "nothing differs"
    for heading, listed in (("what the manifests say", found.facts), ("documents", found.documents)):
        if listed:
            yield heading
        for said in listed:
            yield f"  {said.what}: {_said(said)}"
    for table in found.tables:
        yield from _table(table)
    if found.same_tables:
        yield f"the same rows: {', '.join(found.same_tables)}"


def _said(said: Said) -> str:
    if said.second is None:
        return f"only in A ({said.first})"
    if said.first is None:
        return f"only in B ({said.second})"
    return f"{said.first} -> {said.second}"


def _table(table: TableDifference) -> Iterator[str]:
    """Yield the lines of a table that differs."""
    first, second = table.rows
    if second is None:
        yield f"{table.table}: only in A, {first} rows"
        return
    if first is None:
        yield f"{table.table}: only in B, {second} rows"
        return
    counts = f"{table.added} added, {table.removed} removed, {table.changed} changed"
    yield f"{table.table}: {first} -> {second} rows: {counts}"
    for side, columns in (("A", table.first_columns), ("B", table.second_columns)):
        if columns:
            yield f"  columns only in {side}: {', '.join(columns)}"
    if table.columns:
        yield "  changed: " + ", ".join(f"{name} in {rows}" for name, rows in table.columns.items())
    if not (table.added or table.removed or table.changed or table.first_columns or table.second_columns):
        yield "  no value differs: the order of rows or the sign of a zero does"
    yield from (f"  + {_key(key)}" for key in table.added_examples)
    yield from (f"  - {_key(key)}" for key in table.removed_examples)
    for row in table.changed_examples:
        values = ", ".join(
            f"{name} {_short(mine)} -> {_short(theirs)}" for name, (mine, theirs) in row.values.items()
        )
        yield f"  ~ {_key(row.key)}: {values}"


def _key(key: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())


def _short(value: object) -> str:
    """Return a value on one line; of a long list its beginning."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
