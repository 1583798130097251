"""`toolkit registers`: what is registered, what its columns mean, whether it is whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from toolkit import cases
from toolkit.cli import output
from toolkit.cli.options import (
    FILE,
    STUDY,
    argument,
    check_option,
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
from toolkit.drafting import importing
from toolkit.errors import DamagedError, UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.places import find_home
from toolkit.prereg.token.verdict import Verdict
from toolkit.prereg.verification import Standing
from toolkit.registers.manifest import Evidence, Origin
from toolkit.structs import UNSET, Document, UnsetType, Verified, Written, about, as_builtins
from toolkit.verification.registered import published_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.drafting.importing import Imported
    from toolkit.registers.columns import Column, Table
    from toolkit.registers.diff import Fact, StudyDifference, TableDifference
    from toolkit.registers.hub.transfer import Push
    from toolkit.registers.study import Study


class ListedTable(Document, frozen=True):
    """A table of a study."""

    config: Annotated[str, about("Its name.")]
    rows: Annotated[int, about("How many rows.")]
    sha256: Annotated[str, about("Its logical row hash.")]


class ListedStudy(Document, frozen=True):
    """A study and its tables."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    evidence: Annotated[
        Evidence,
        about("`rows`: its own; `summary`: published figures only; `tasks`: tasks that others run on."),
    ]
    registration: Annotated[str, about("Name of the registration that it belongs to.")]
    tables: list[ListedTable]


class ColumnSchema(Document, frozen=True):
    """A column."""

    name: Annotated[str, about("Its name.")]
    type: Annotated[str, about("Its Arrow type.")]
    unit: Annotated[str | None, about("Null where it has none.")]
    nullable: Annotated[bool, about("Whether it may be null.")]
    optional: Annotated[bool, about("Whether a study may lack it.")]
    choices: Annotated[tuple[str, ...] | None, about("The values that it may have, where they are closed.")]
    meaning: Annotated[str, about("In words.")]


class TableSchema(Document, frozen=True):
    """A table of the schema."""

    config: Annotated[str, about("Its name.")]
    meaning: Annotated[str, about("What a row is.")]
    key: Annotated[tuple[str, ...], about("The columns that identify a row.")]
    columns: list[ColumnSchema]


class RegistersSchema(Document, frozen=True):
    """The schema of registers."""

    schema_version: Annotated[str, about("Another major version is not comparable.")]
    tables: list[TableSchema]


class VerifiedRegisters(Document, frozen=True, kw_only=True):
    """What was verified of a study, from its bytes to what follows from them."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[
        Verdict, about("`not_verified`: its registration fails; `incomplete`: its registration is not here.")
    ]
    missing: Annotated[str | UnsetType, about("Why its registration could not be compared.")] = UNSET
    registration: Annotated[Standing | None, about("Null where it belongs to none, or that is not here.")]
    origin: Annotated[Origin | None, about("Null for a local study.")]
    files: Annotated[int, about("How many files.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say: the same wherever the same rows were made.")]


class BuiltRegisters(Document, frozen=True):
    """Registers that were built from their sources."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class FilledCard(Document, frozen=True):
    """The cards of a study, filled from its registers."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[list[str], about("Their names.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]


class RegisteredRuns(Document, frozen=True):
    """Registered runs that a log has and has not."""

    present: Annotated[tuple[str, ...], about("Names of the runs.")]
    absent: Annotated[tuple[str, ...], about("Condition, arm and seed, in words.")]


class ImportedRegisters(Document, frozen=True):
    """A study that was made from its own log."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where it lies.")]
    outcome: Annotated[Written, about("`identical`: with --check, nothing is written.")]
    rows: Annotated[dict[str, int], about("Rows by table.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]
    registered_runs: RegisteredRuns
    unregistered_runs: Annotated[
        tuple[str, ...], about("Runs of the log that are not registered, and not decided on.")
    ]
    notes: Annotated[tuple[str, ...], about("What was left out of the log, and what is missing in it.")]
    verdicts: Annotated[dict[str, str], about("Verdict by rule.")]


class Pulled(Document, frozen=True):
    """A study that was pulled from the Hub, and verified."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    origin: Origin
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many files.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


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
        help="How many added, removed and changed rows to show of a table.",
    ),
    fail_on_difference: bool = flag(help="Exit with 1 if anything differs."),
    as_json: bool = json_option,
) -> None:
    """Show how studies A and B differ.

    Each is a name, a path or OWNER/NAME@REVISION.

    Registration, versions and documents are compared as the manifests state them, tables by their row hash.
    If that differs, rows are compared by the table's key; added rows are in B only.

    \b
    Examples:
      toolkit registers diff published embedded
      toolkit registers diff owner/name@v1 owner/name@v2 --json
    """
    from toolkit.registers.diff import diff_studies

    with output.steps("comparing"):
        opened = cases.open_study(first), cases.open_study(second)
        difference = diff_studies(*opened, examples, (first, second))
    output.tell(output.cell(as_builtins(difference)), *_lines(difference), as_json=as_json)
    if fail_on_difference and difference.differs:
        sys.exit(1)


def _lines(found: StudyDifference) -> Iterator[str]:
    if not found.differs:
        yield "nothing differs"
    for heading, facts in (("what the manifests say", found.facts), ("documents", found.documents)):
        if facts:
            yield heading
        for fact in facts:
            yield f"  {fact.what}: {_sides(fact)}"
    for differing in found.tables:
        yield from _table_lines(differing)
    if found.same_tables:
        yield f"the same rows: {', '.join(found.same_tables)}"


def _sides(fact: Fact) -> str:
    if fact.second is None:
        return f"only in A ({fact.first})"
    if fact.first is None:
        return f"only in B ({fact.second})"
    return f"{fact.first} -> {fact.second}"


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
    mapping: Path | None = option(type=FILE, help="Mapping of the table; default: mappings/STUDY.toml."),
    reason: str | None = option(
        "--replace", metavar="REASON", help="Reason for replacing rows that were decided on; it is recorded."
    ),
    check: bool = check_option,
    as_json: bool = json_option,
) -> None:
    """Make the registers of STUDY from its own log of episodes.

    A SOURCE is a file, a folder, a pattern, or hf://datasets/OWNER/NAME@REVISION/PATH. A mapping tells which
    column is which; `toolkit new-study STUDY --table SOURCE` writes one. The registration that it names has
    to be frozen. Rows are converted exactly or refused, with their number; the registers are verified and
    decided before they are put in place. Replacing rows that were decided on needs a reason, which is
    recorded with the earlier verdicts in `source/versions.json`.

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
        done = importing.import_registers(
            study, sources, home, mapping=mapping, reason=reason, check=check, progress=progress
        )
    folder = home.registers / study
    outcome: Written = "identical" if check else "written"
    if as_json:
        output.print_json(_document(done, folder, outcome))
    else:
        _show(done, folder, outcome)


def _document(done: Imported, folder: Path, outcome: Written) -> ImportedRegisters:

    return ImportedRegisters(
        done.manifest.study,
        str(folder),
        outcome,
        {name: entry.rows for name, entry in done.manifest.tables.items()},
        done.manifest.logical_sha256,
        RegisteredRuns(done.present, done.absent),
        done.unregistered,
        done.said,
        done.decided,
    )


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
def list_registers(*, studies: tuple[str, ...] = study_option, as_json: bool = json_option) -> None:
    """List studies and their tables.

    \b
    Examples:
      toolkit registers list
      toolkit registers list --study published --json
    """
    opened = [cases.open_study(name) for name in studies or _all_here()]
    if as_json:
        output.print_json([_listed(study) for study in opened])
        return
    for study in opened:
        output.print_table(
            ("table", "rows", "what a row is"),
            [(t.name, str(study.manifest.tables[t.name].rows), t.meaning) for t in study.tables],
            f"Study {study.name}   {study.folder}",
            numbers=("rows",),
        )


def _listed(study: Study) -> ListedStudy:

    manifest = study.manifest
    tables = [ListedTable(t.name, manifest.tables[t.name].rows, study.sha256(t.name)) for t in study.tables]
    return ListedStudy(study.name, str(study.folder), manifest.evidence, manifest.registration.name, tables)


@registers.command("schema", hidden=True)
def describe(
    *, tables: tuple[str, ...] = argument(nargs=-1, shell_complete=offer_tables), as_json: bool = json_option
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
        output.print_json(RegistersSchema(SCHEMA_VERSION, [_table(table) for table in chosen]))
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
    context: click.Context, *, studies: tuple[str, ...] = study_option, as_json: bool = json_option
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

    found: list[VerifiedRegisters] = []
    lines, verdicts = [], []
    opened = [cases.open_study(name) for name in studies or _all_here()]
    with output.stepped("verify", sum(map(number_of_steps, opened))) as told:
        for study in opened:

            def progress(step: str, name: str = study.name) -> None:
                told(f"{name}: {step}")

            done = cases.verify_registers(study, progress=progress)
            verdicts.append(done.verdict)
            files, digest = len(study.manifest.files), study.manifest.logical_sha256
            found.append(
                VerifiedRegisters(
                    study=study.name,
                    verdict=done.verdict,
                    missing=done.missing or UNSET,
                    registration=done.standing,
                    origin=study.origin,
                    files=files,
                    rows=done.rows,
                    logical_sha256=digest,
                )
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
    out: Path | None = option(type=FILE, help="Folder to write; default: the study's own."),
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
    ref = published_reference(home)
    manifest = (check_published if check else build_published)(source, folder, card, ref)
    done: Written = "identical" if check else "written"
    files = len(manifest.files)
    document = BuiltRegisters(study, str(folder), files, done)
    output.tell(document, f"{study}: {files} files {done} in {folder}", as_json=as_json)


def _all_here() -> tuple[str, ...]:
    home = find_home()
    home.say_absent(output.remark)
    return home.studies()


def _table(table: Table) -> TableSchema:

    columns = [
        ColumnSchema(c.name, c.type.value, c.unit, c.nullable, c.optional, c.choices, c.meaning)
        for c in table.columns
    ]
    return TableSchema(table.name, table.meaning, table.key, columns)


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
    case = cases.open_case(cases.open_study(study, home), home)
    documents = card_documents(case, home.cards)
    if check:
        check_card(case, documents)
    else:
        write_card(case, documents)
    done: Written = "identical" if check else "written"
    document = FilledCard(study, str(case.study.folder), list(documents), done)
    output.tell(document, f"{study}: {', '.join(documents)} {done} in {case.study.folder}", as_json=as_json)


audit.hidden = True  # an option of `verify`
registers.add_command(audit)


@registers.command()
def push(
    *,
    study: str = argument(metavar=STUDY, shell_complete=offer_studies),
    repository: str = argument(metavar="OWNER/NAME"),
    tag: str | None = option(
        metavar="TAG", help="Tag for this version, such as v1.0.0; an existing tag is not moved."
    ),
    parent: str | None = option(
        metavar="SHA", help="Commit this is based on; refused if the repository's head is another."
    ),
    private: bool = flag(help="Create a private repository; refused if it exists and is public."),
    replace: bool = flag(help="Allow rows or a registration in the repository to be changed or removed."),
    dry_run: bool = flag(help="Print what would be sent, and send nothing."),
    as_json: bool = json_option,
) -> None:
    """Push a study to a dataset repository on the Hub, as one commit.

    The study is verified first, and afterwards what the Hub reports of every file is compared with the
    manifest. Repeat an interrupted push: what has arrived is not sent again. Registers are append-only: rows
    and registrations in the repository are not changed without --replace. Log in with HF_TOKEN or `hf auth
    login`.

    \b
    Examples:
      toolkit registers push embedded my-group/embedded --dry-run
      toolkit registers push embedded my-group/embedded --tag v1.0.0
      toolkit registers push published my-group/published --private --json
    """
    from toolkit.registers.hub.client import parse_reference
    from toolkit.registers.hub.transfer import push as push_study

    if "@" in repository:
        raise UsageError(
            "a push goes to a repository's branch main", found=repository, remedy="leave out @..."
        )
    name = parse_reference(repository).repository
    pushed = push_study(
        cases.open_study(study),
        name,
        check=_check_pushed,
        private=private,
        parent=parent,
        overwrite=replace,
        tag=tag,
        dry_run=dry_run,
        # The client's own bars show how far it is; beside them there is room for lines only.
        say=output.remark if sys.stderr.isatty() else lambda _: None,
    )
    if as_json:
        output.print_json(pushed)
    else:
        _print_push(pushed)


@registers.command()
def pull(
    *,
    reference: str = argument(metavar="OWNER/NAME[@REVISION]"),
    into: Path | None = option(type=FILE, help="Folder for a copy; default: the Hub's cache."),
    offline: bool = flag(help="Use the cache only; do not contact the Hub."),
    accept_moved: bool = flag(help="Accept a tag that has moved to another commit."),
    as_json: bool = json_option,
) -> None:
    """Pull a study from the Hub and verify it: every file, every row.

    REVISION is a branch, a tag or a commit's SHA.

    The SHA of the commit is printed; use it to name this version permanently. Cached files are checked like
    new ones. Without a connection the cache is used, with a warning.

    \b
    Examples:
      toolkit registers pull some-group/their-study@v1.0.0
      toolkit registers pull some-group/their-study --into their-study
      toolkit registers pull some-group/their-study@v1.0.0 --offline
    """
    from toolkit.registers.hub import transfer as hub
    from toolkit.registers.hub.client import parse_reference
    from toolkit.verification.steps import number_of_steps

    asked = parse_reference(reference)
    study = hub.pull(asked, offline=offline, accept_moved=accept_moved, say=output.remark)
    with output.stepped("verify", number_of_steps(study)) as progress:
        verified = cases.verify_registers(study, progress=progress)
    if verified.missing:
        output.remark(f"{verified.missing}: seeds, probe and stored decisions were not held against it")
    if into is not None:
        hub.check_into(into, study)
        with output.steps("copy") as progress:
            study = hub.copy_into(into, study, progress)
    if study.origin is None:
        raise TypeError(study)
    if as_json:
        files, digest = len(study.manifest.files), study.manifest.logical_sha256
        output.print_json(Pulled(study.name, "verified", study.origin, str(study.folder), files, digest))
        return
    output.say_line(f"{study.name}: verified, {len(study.manifest.files)} files in {study.folder}")
    output.say_line(f"  commit {study.origin.commit}")
    output.say_line(f"  logical SHA-256 {study.manifest.logical_sha256}")
    output.print_unbroken(f"  toolkit decide --all --study {study.origin.pinned}")


def _check_pushed(study: Study) -> None:
    """Check that a study follows from its rows, and that a registration which it carries is its own."""
    from toolkit.prereg.registration import load_registration

    named = study.manifest.registration
    folder = study.folder / "prereg" / named.name
    carried = load_registration(folder).sha256 if folder.exists() else named.sha256
    if carried != named.sha256:
        raise DamagedError(
            "the registration that the study carries is not the one that its manifest names",
            expected=f"{named.name}, SHA-256 {named.sha256}",
            found=f"SHA-256 {carried}",
            where=folder,
            remedy="import the study again with the registration that it belongs to",
        )
    cases.verify_registers(study)


def _print_push(push: Push) -> None:
    for done, names in (("add", push.added), ("change", push.changed), ("delete", push.deleted)):
        for name in names:
            output.say_line(f"  {done} {name}")
    if push.outcome == "planned":
        parent = f"on top of {push.parent}" if push.parent else "in a new repository"
        output.say_line(
            f"{push.repository}: nothing was changed; {push.same} files are there already, {parent}"
        )
        return
    done = "has this already" if push.outcome == "unchanged" else "pushed"
    tag = f", tag {push.tag}" if push.tag else ""
    stated = f"the Hub states {push.checked_files} files as here"
    output.say_line(f"{push.repository}: {done}, commit {push.commit}{tag}; {stated}")
    output.say_line(f"  cite it as {push.repository}@{push.commit}")
    output.print_unbroken(f"  toolkit registers pull {push.repository}@{push.tag or push.commit}")
