"""`toolkit registers`: what is registered, what its columns mean, whether it is whole."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from toolkit import api
from toolkit.cli import output
from toolkit.cli.hub import pull, push
from toolkit.cli.options import (
    FILE,
    argument,
    check_option,
    command,
    flag,
    group,
    json_option,
    offer_registrations,
    offer_studies,
    offer_tables,
    option,
    study_option,
)
from toolkit.cli.verify import audit
from toolkit.errors import UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.documents import registers as documents
    from toolkit.documents.registers import CardDocument, ImportDocument, Written
    from toolkit.drafting.importing import Imported
    from toolkit.registers.columns import Column, Table
    from toolkit.registers.diff import Said, StudyDifference, TableDifference


@group()
def registers() -> None:
    """List, import, compare, push and pull registers."""


LONGEST = 40
"""Characters of a value of many words that are shown to people."""


@registers.command()
def diff(
    *,
    first: str = argument(metavar="A", shell_complete=offer_studies),
    second: str = argument(metavar="B", shell_complete=offer_studies),
    examples: int = option(
        type=click.IntRange(0, 1000),
        default=3,
        show_default=False,
        help="Rows of each sort to show of a table.",
    ),
    fail_on_difference: bool = flag(help="End with 1 where anything differs."),
    as_json: bool = json_option,
) -> None:
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
            f"{name} {output.shorten(str(mine), LONGEST)} -> {output.shorten(str(theirs), LONGEST)}"
            for name, (mine, theirs) in row.values.items()
        )
        yield f"  ~ {_key(row.key)}: {values}"


def _key(key: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())


MOST_NAMES = 5
GIVEN_BACK = {
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Settings of polars' and Arrow's allocators, read when they are first imported: what was freed is given back
at once. An import of a million rows then holds a fifth less, and takes as long."""


STEPS = 5
"""What an import tells of: log, rows, registers to decide on, decisions, the study's own registers."""


@registers.command("import")
def import_registers(
    *,
    study: str = argument(shell_complete=offer_registrations),
    sources: tuple[str, ...] = argument(metavar="SOURCE...", nargs=-1, required=True),
    mapping: Path | None = option(
        type=FILE, help="File that says how to read the table; mappings/STUDY.toml if left out."
    ),
    reason: str | None = option(
        "--replace", metavar="REASON", help="Why registers that were decided on get other rows; recorded."
    ),
    check: bool = check_option,
    as_json: bool = json_option,
) -> None:
    """Make the registers of STUDY from its own log of episodes.

    A SOURCE is a file, a folder, a pattern, or hf://datasets/OWNER/NAME@REVISION/PATH. A mapping says which
    of its columns is which; `toolkit new-study STUDY --table SOURCE` writes one. The
    registration that it names has to be frozen. Rows are converted exactly or refused, with their number;
    the registers are verified and decided on before they are put in place. Other rows over decided ones are
    refused without a reason, which is recorded with what was there: `source/versions.json`.

    \b
    Examples:
      toolkit registers import my-study episodes.csv
      toolkit registers import my-study episodes.csv --mapping other.toml --json
      toolkit registers import my-study 'logs/*.eval'
      toolkit registers import my-study episodes.csv --replace 'logged twice'
      toolkit registers import my-study episodes.csv --check
    """
    os.environ.update(GIVEN_BACK)  # who started this may have imported polars, which leaves its own there
    home = find_home()
    with output.stepped(f"import {study}", STEPS) as progress:
        done = api.import_registers(
            study, sources, home, mapping=mapping, reason=reason, check=check, progress=progress
        )
    folder = home.registers / study
    outcome: Written = "identical" if check else "written"
    if as_json:
        output.print_json(_document(done, folder, outcome))
    else:
        _show(done, folder, outcome)


def _document(done: Imported, folder: Path, outcome: Written) -> ImportDocument:
    return {
        "study": done.manifest.study,
        "folder": str(folder),
        "outcome": outcome,
        "rows": {name: entry.rows for name, entry in done.manifest.tables.items()},
        "logical_sha256": done.manifest.logical_sha256,
        "registered_runs": {"present": list(done.present), "absent": list(done.absent)},
        "unregistered_runs": list(done.unregistered),
        "notes": list(done.said),
        "verdicts": done.decided,
    }


def _show(done: Imported, folder: Path, outcome: str) -> None:
    manifest = done.manifest
    rows = ", ".join(f"{entry.rows} {name}" for name, entry in manifest.tables.items() if name != "decisions")
    output.say_line(f"{manifest.study}: {outcome} in {folder}")
    output.say_line(f"  {rows}")
    registered = len(done.present) + len(done.absent)
    output.say_line(f"  {len(done.present)} of {registered} registered runs")
    for what, names in (("absent", done.absent), ("not registered, and not decided on", done.unregistered)):
        if names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            output.say_line(f"  {what}: {', '.join(names[:MOST_NAMES])}{more}")
    for said in done.said:
        output.say_line(f"  {said}")
    for rule, verdict in done.decided.items():
        output.say_line(f"  {rule} ", output.styled(verdict))


@registers.command("list")
def list_registers(
    *,
    studies: tuple[str, ...] = study_option,
    as_json: bool = json_option,
) -> None:
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


@registers.command("schema", hidden=True)
def describe(
    *,
    tables: tuple[str, ...] = argument(nargs=-1, shell_complete=offer_tables),
    as_json: bool = json_option,
) -> None:
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
@click.pass_context
def verify(
    context: click.Context,
    *,
    studies: tuple[str, ...] = study_option,
    as_json: bool = json_option,
) -> None:
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
def build(
    *,
    study: str = argument(type=click.Choice(["published"])),
    source: Path | None = option(type=FILE, help="Folder of the transcribed CSV files."),
    out: Path | None = option(type=FILE, help="Folder to write; the study's own if left out."),
    check: bool = check_option,
    as_json: bool = json_option,
) -> None:
    """Build STUDY from its sources; the same sources give the same bytes.

    \b
    Examples:
      toolkit registers build published
      toolkit registers build published --check
    """
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


@registers.command(hidden=True)
def card(
    *,
    study: str = argument(shell_complete=offer_studies),
    check: bool = check_option,
    as_json: bool = json_option,
) -> None:
    """Make the card of STUDY anew.

    It is made from its source in cards/, with the findings; no row is touched.

    A finding that says another verdict than its rule reaches is refused. The card is README.md in the study's
    repository, and the manifest names it.

    \b
    Examples:
      toolkit registers card coupled
      toolkit registers card coupled --check --json
    """
    from toolkit.findings import card_documents, check_card, write_card

    home = find_home()
    if not check:
        home.check_own("TOOLKIT_HOME=")
    case = api.open_case(api.open_study(study, home), home)
    documents = card_documents(case, home.cards)
    if check:
        check_card(case, documents)
    else:
        write_card(case, documents)
    done: Written = "identical" if check else "written"
    document: CardDocument = {
        "study": study,
        "folder": str(case.study.folder),
        "files": list(documents),
        "outcome": done,
    }
    output.tell(
        document,
        f"{study}: {', '.join(documents)} {done} in {case.study.folder}",
        as_json=as_json,
    )


registers.add_command(pull)
registers.add_command(push)
audit.hidden = True  # an option of `verify`
registers.add_command(audit)


SCHEMAS = Path(__file__).parents[1] / "documents" / "schemas"


@command()
@click.pass_context
def schema(
    context: click.Context,
    *,
    words: tuple[str, ...] = argument(nargs=-1, metavar="[OUTPUT]..."),
    registers: bool = flag(help="Describe the columns of the tables OUTPUT, or of every one."),
    as_json: bool = json_option,
) -> None:
    """Print the JSON Schema of OUTPUT: what a command prints with --json.

    Without OUTPUT, list them. Three are no command's: error is what every command prints where it fails,
    rules is that of rules.toml, amendment that of an amendment's file. The dialect is 2020-12.

    \b
    Examples:
      toolkit schema
      toolkit schema decide
      toolkit schema registers verify > registers-verify.json
      toolkit schema rules --json
      toolkit schema --registers evaluations
    """
    if registers:
        context.invoke(describe, tables=words, as_json=as_json)
        return
    names = sorted(path.stem for path in SCHEMAS.glob("*.json"))
    if not words:
        output.tell(names, *names, as_json=as_json)
        return
    name = "-".join(words)
    if name not in names:
        raise UsageError(
            f"there is no schema of {name!r}", expected=", ".join(names), remedy=did_you_mean(name, names)
        )
    text = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    if as_json:
        output.tell(json.loads(text), as_json=True)
    else:
        click.echo(text, nl=False)
