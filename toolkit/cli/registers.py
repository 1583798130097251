"""`toolkit registers`: what is registered, what its columns mean, whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolkit import api
from toolkit.cli.audit import audit
from toolkit.cli.diff import diff
from toolkit.cli.hub import pull, push
from toolkit.cli.importing import import_registers
from toolkit.cli.output import console, json_option, print_json, study_option
from toolkit.errors import UsageError
from toolkit.places import find_home


@click.group()
def registers() -> None:
    """List, describe, verify, audit, compare, build, import, push and pull the registers of studies."""


for _command in (audit, diff, import_registers, push, pull):
    registers.add_command(_command)


@registers.command("list")
@study_option
@json_option
def list_registers(*, studies: tuple[str, ...], as_json: bool) -> None:
    """List studies and their tables.

    \b
    Examples:
      toolkit registers list
      toolkit registers list --study published --json
    """
    opened = [api.open_study(name) for name in studies or find_home().studies()]
    document = [
        {
            "study": study.name,
            "folder": str(study.folder),
            "evidence": study.manifest.evidence,
            "registration": study.manifest.registration.name,
            "tables": [
                {"config": t.name, "rows": study.manifest.tables[t.name].rows, "sha256": study.sha256(t.name)}
                for t in study.tables
            ],
        }
        for study in opened
    ]
    if as_json:
        print_json(document)
        return
    from rich.table import Table
    from rich.text import Text

    for study in opened:
        table = Table(
            title=Text(f"Study {study.name}   {study.folder}"), title_justify="left", title_style="bold"
        )
        table.add_column("table")
        table.add_column("rows", justify="right")
        table.add_column("what a row is")
        for entry in study.tables:
            table.add_row(entry.name, str(study.manifest.tables[entry.name].rows), entry.meaning)
        console().print(table)


@registers.command()
@click.argument("tables", nargs=-1)
@json_option
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
            raise UsageError(f"the schema has no table {name!r}", expected=", ".join(TABLES))
    chosen = [TABLES[name] for name in tables or TABLES]
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, "tables": [_table(table) for table in chosen]})
        return
    from rich.table import Table

    for entry in chosen:
        shown = Table(title=f"{entry.name}   {entry.meaning}", title_justify="left", title_style="bold")
        for heading in ("column", "type", "unit", "meaning"):
            shown.add_column(heading, overflow="fold")
        for column in entry.columns:
            mark = " (key)" if column.name in entry.key else ""
            null = " May be null." if column.nullable else ""
            left_out = " May be left out." if column.optional else ""
            closed = f" One of {', '.join(column.choices)}." if column.choices else ""
            shown.add_row(
                column.name + mark,
                column.type.value,
                column.unit or "",
                column.meaning + closed + null + left_out,
            )
        console().print(shown)


@registers.command()
@study_option
@json_option
def verify(*, studies: tuple[str, ...], as_json: bool) -> None:
    """Verify registers from their bytes to their meaning.

    Checks every file's SHA-256, every table's columns, row count and row hash, and every row against the
    schema. The logical SHA-256 says what the rows say: it is the same wherever the same rows were made.

    \b
    Examples:
      toolkit registers verify
      toolkit registers verify --study published --json
      toolkit registers verify --study some-group/their-study@v1.0.0
    """
    from toolkit.registers.study import verify_study

    opened = map(api.open_study, studies or find_home().studies())
    verified = [(study, verify_study(study)) for study in opened]
    if as_json:
        print_json(
            [
                {
                    "study": study.name,
                    "verdict": "verified",
                    "origin": study.origin.as_dict() if study.origin else None,
                    "files": len(study.manifest.files),
                    "rows": rows,
                    "logical_sha256": study.manifest.logical_sha256,
                }
                for study, rows in verified
            ]
        )
        return
    for study, rows in verified:
        files = len(study.manifest.files)
        click.echo(f"{study.name}: verified, {files} files, {sum(rows.values())} rows")
        click.echo(f"  logical SHA-256 {study.manifest.logical_sha256}")


@registers.command()
@click.argument("study", type=click.Choice(["published"]))
@click.option("--source", type=click.Path(path_type=Path), help="Folder of the transcribed CSV files.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; the study's own if left out.")
@click.option("--check", is_flag=True, help="Write nothing; compare with what is there, byte by byte.")
@json_option
def build(*, study: str, source: Path | None, out: Path | None, check: bool, as_json: bool) -> None:
    """Build STUDY from its sources; the same sources give the same bytes.

    \b
    Examples:
      toolkit registers build published
      toolkit registers build published --check
    """
    from toolkit.files import read_text
    from toolkit.registers.published.build import build_published, check_published

    home = find_home()
    if home.is_shipped and out is None and not check:
        raise UsageError(
            "the registers that came with the package are not written",
            remedy="give a folder to write: --out FOLDER",
        )
    folder = out or home.registers / study
    source = source or home.registers / study / "source"
    card = read_text(home.cards / f"{study}.md")
    ref = api.published_reference(home)
    manifest = (check_published if check else build_published)(source, folder, card, ref)
    done = "identical" if check else "written"
    if as_json:
        print_json({"study": study, "folder": str(folder), "files": len(manifest.files), "outcome": done})
    else:
        click.echo(f"{study}: {len(manifest.files)} files {done} in {folder}")


def _table(table: Any) -> dict[str, Any]:
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
