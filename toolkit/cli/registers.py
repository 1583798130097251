"""`toolkit registers`: what is registered, what its columns mean, whether it is whole."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from toolkit import api
from toolkit.cli import offers, output
from toolkit.cli.audit import audit
from toolkit.cli.card import card
from toolkit.cli.hub import pull, push
from toolkit.cli.importing import import_registers
from toolkit.cli.layout import shorten
from toolkit.errors import UsageError, did_you_mean
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.documents import registers as documents
    from toolkit.registers.columns import Column, Table
    from toolkit.registers.diff import Said, StudyDifference, TableDifference


@click.group()
def registers() -> None:
    """List, import, compare, push and pull registers."""


for _command in (audit, card, import_registers, push, pull):
    registers.add_command(_command)
audit.hidden = card.hidden = True  # options of `verify` and `reproduce`


@registers.command("list")
@output.study_option
@output.json_option
def list_registers(*, studies: tuple[str, ...], as_json: bool) -> None:
    """List studies and their tables.

    \b
    Examples:
      toolkit registers list
      toolkit registers list --study published --json
    """
    opened = [api.open_study(name) for name in studies or _all_here()]
    document: list[documents.ListedStudyDocument] = [
        {
            "study": study.name,
            "folder": str(study.folder),
            "evidence": cast("documents.StudyEvidence", study.manifest.evidence),
            "registration": study.manifest.registration.name,
            "tables": [
                {"config": t.name, "rows": study.manifest.tables[t.name].rows, "sha256": study.sha256(t.name)}
                for t in study.tables
            ],
        }
        for study in opened
    ]
    if as_json:
        output.print_json(document)
        return
    for study in opened:
        output.print_table(
            ("table", "rows", "what a row is"),
            [(t.name, str(study.manifest.tables[t.name].rows), t.meaning) for t in study.tables],
            f"Study {study.name}   {study.folder}",
            numbers=("rows",),
        )


@registers.command(hidden=True)
@click.argument("tables", nargs=-1, shell_complete=offers.tables)
@output.json_option
def schema(*, tables: tuple[str, ...], as_json: bool) -> None:
    """Describe the columns of TABLES, or of every table.

    \b
    Examples:
      toolkit registers schema evaluations
      toolkit registers schema --json
    """
    from toolkit.registers.schema import SCHEMA_VERSION, TABLES

    for name in tables:
        if name not in TABLES:
            raise UsageError(
                f"the schema has no table {name!r}",
                expected=", ".join(TABLES),
                remedy=did_you_mean(name, TABLES),
            )
    chosen = [TABLES[name] for name in tables or TABLES]
    if as_json:
        document: documents.RegistersSchemaDocument = {
            "schema_version": SCHEMA_VERSION,
            "tables": [_table(table) for table in chosen],
        }
        output.print_json(document)
        return
    for entry in chosen:
        headings = ("column", "type", "unit", "meaning")
        rows = [
            (
                column.name + (" (key)" if column.name in entry.key else ""),
                column.type.value,
                column.unit or "",
                _meaning(column),
            )
            for column in entry.columns
        ]
        output.print_table(
            headings, rows, f"{entry.name}   {entry.meaning}", whole=("type",), dropped=("unit",)
        )


def _meaning(column: Column) -> str:
    """Return what a column means, which values it takes, and whether it may be missing."""
    closed = f" One of {', '.join(column.choices)}." if column.choices else ""
    null = " May be null." if column.nullable else ""
    return column.meaning + closed + null + (" May be left out." if column.optional else "")


@registers.command(hidden=True)
@output.study_option
@output.json_option
@click.pass_context
def verify(context: click.Context, *, studies: tuple[str, ...], as_json: bool) -> None:
    """Verify registers from their bytes to what follows from them.

    Checks every file's SHA-256, every table's columns, row count and row hash, and every row against the
    schema; derives every summary, figure and decision from the rows; and compares specifications, pools and
    seeds with the registration. The first row that differs is named. Ends with 1 where the registration does
    not verify, and with 3 where it is not here. The logical SHA-256 says what the rows say: it is the same
    wherever the same rows were made.

    \b
    Examples:
      toolkit registers verify
      toolkit registers verify --study published --json
      toolkit registers verify --study some-group/their-study@v1.0.0
    """
    from toolkit.verification.steps import number_of_steps

    found: list[documents.VerifiedStudyDocument] = []
    lines, verdicts = [], []
    opened = [api.open_study(name) for name in studies or _all_here()]
    with output.stepped("verify", sum(map(number_of_steps, opened))) as told:
        for study in opened:

            def progress(step: str, name: str = study.name) -> None:
                told(f"{name}: {step}")

            done = api.verify_registers(study, progress=progress)
            verdicts.append(done.verdict)
            files, digest = len(study.manifest.files), study.manifest.logical_sha256
            missing: documents.UnheldStudy = {"missing": done.missing} if done.missing else {}
            found.append(
                {
                    "study": study.name,
                    "verdict": done.verdict,
                    **missing,
                    "registration": done.standing.as_dict() if done.standing else None,
                    "origin": study.origin.as_dict() if study.origin else None,
                    "files": files,
                    "rows": done.rows,
                    "logical_sha256": digest,
                }
            )
            verdict = done.verdict.replace("_", " ")
            lines.append(f"{study.name}: {verdict}, {files} files, {sum(done.rows.values())} rows")
            lines.append(f"  logical SHA-256 {digest}")
            if done.standing or done.missing:
                lines.append(f"  registration: {done.standing or done.missing}")
    output.tell(found, *lines, as_json=as_json)
    context.exit(1 if "not_verified" in verdicts else 3 if "incomplete" in verdicts else 0)


@registers.command(hidden=True)
@click.argument("study", type=click.Choice(["published"]))
@click.option("--source", type=output.FILE, help="Folder of the transcribed CSV files.")
@click.option("--out", type=output.FILE, help="Folder to write; the study's own if left out.")
@output.check_option
@output.json_option
def build(*, study: str, source: Path | None, out: Path | None, check: bool, as_json: bool) -> None:
    """Build STUDY from its sources; the same sources give the same bytes.

    \b
    Examples:
      toolkit registers build published
      toolkit registers build published --check
    """
    from toolkit.files import read_text
    from toolkit.registers.published import build_published, check_published

    home = find_home()
    if out is None and not check:
        home.check_own("--out")
    folder = out or home.registers / study
    source = source or home.registers / study / "source"
    card = read_text(home.cards / f"{study}.md")
    ref = api.published_reference(home)
    manifest = (check_published if check else build_published)(source, folder, card, ref)
    done: documents.Written = "identical" if check else "written"
    files = len(manifest.files)
    document: documents.BuiltRegistersDocument = {
        "study": study,
        "folder": str(folder),
        "files": files,
        "outcome": done,
    }
    output.tell(
        document,
        f"{study}: {files} files {done} in {folder}",
        as_json=as_json,
    )


def _all_here() -> tuple[str, ...]:
    home = find_home()
    home.say_absent(output.remark)
    return home.studies()


def _table(table: Table) -> documents.TableSchemaDocument:
    return {
        "config": table.name,
        "meaning": table.meaning,
        "key": list(table.key),
        "columns": [
            {
                "name": column.name,
                "type": column.type.value,
                "unit": column.unit,
                "nullable": column.nullable,
                "optional": column.optional,
                "choices": list(column.choices) if column.choices else None,
                "meaning": column.meaning,
            }
            for column in table.columns
        ],
    }


LONGEST = 40
"""Characters of a value of many words that are shown to people."""


@registers.command()
@click.argument("first", metavar="A", shell_complete=offers.studies)
@click.argument("second", metavar="B", shell_complete=offers.studies)
@click.option(
    "--examples",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=False,
    help="Rows of each sort to show of a table.",
)
@click.option("--fail-on-difference", is_flag=True, help="End with 1 where anything differs.")
@output.json_option
def diff(*, first: str, second: str, examples: int, fail_on_difference: bool, as_json: bool) -> None:
    """Say what differs between the studies A and B.

    Each is a name, a path or OWNER/NAME@REVISION.

    Registration, versions and documents are compared as the manifests state them, tables by their row hash.
    Where that differs, rows are compared by the table's key: added rows are those that B alone has.

    \b
    Examples:
      toolkit registers diff published embedded
      toolkit registers diff owner/name@v1 owner/name@v2 --json
    """
    from toolkit.registers.diff import diff_studies

    with output.steps("comparing"):
        difference = diff_studies(api.open_study(first), api.open_study(second), examples)
    document = {"first": first, "second": second, "differs": not difference.is_empty, **asdict(difference)}
    shown = cast("documents.DifferenceDocument", output.cell(document))
    output.tell(shown, *_lines(difference), as_json=as_json)
    if fail_on_difference and not difference.is_empty:
        sys.exit(1)


def _lines(found: StudyDifference) -> Iterator[str]:
    if found.is_empty:
        yield "nothing differs"
    for heading, facts in (("what the manifests say", found.facts), ("documents", found.documents)):
        if facts:
            yield heading
        for fact in facts:
            yield f"  {fact.what}: {_said(fact)}"
    for differing in found.tables:
        yield from _table_lines(differing)
    if found.same_tables:
        yield f"the same rows: {', '.join(found.same_tables)}"


def _said(said: Said) -> str:
    if said.second is None:
        return f"only in A ({said.first})"
    if said.first is None:
        return f"only in B ({said.second})"
    return f"{said.first} -> {said.second}"


def _table_lines(differing: TableDifference) -> Iterator[str]:
    """Yield the lines of a table that differs."""
    first, second = differing.rows
    if second is None:
        yield f"{differing.table}: only in A, {first} rows"
        return
    if first is None:
        yield f"{differing.table}: only in B, {second} rows"
        return
    counts = f"{differing.added} added, {differing.removed} removed, {differing.changed} changed"
    yield f"{differing.table}: {first} -> {second} rows: {counts}"
    for side, columns in (("A", differing.first_columns), ("B", differing.second_columns)):
        if columns:
            yield f"  columns only in {side}: {', '.join(columns)}"
    if differing.columns:
        yield "  changed: " + ", ".join(f"{name} in {rows}" for name, rows in differing.columns.items())
    differs = (differing.added, differing.removed, differing.changed)
    if not any((*differs, differing.first_columns, differing.second_columns)):
        yield "  no value differs: the order of rows or the sign of a zero does"
    yield from (f"  + {_key(key)}" for key in differing.added_examples)
    yield from (f"  - {_key(key)}" for key in differing.removed_examples)
    for row in differing.changed_examples:
        values = ", ".join(
            f"{name} {shorten(str(mine), LONGEST)} -> {shorten(str(theirs), LONGEST)}"
            for name, (mine, theirs) in row.values.items()
        )
        yield f"  ~ {_key(row.key)}: {values}"


def _key(key: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())
