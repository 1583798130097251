"""`toolkit sql`, `toolkit export`: what a study holds, as somebody asks for it or others read it."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from toolkit import cases
from toolkit.cli import output
from toolkit.cli.options import (
    FILE,
    FOLDER,
    STUDY,
    argument,
    command,
    flag,
    json_option,
    offer_rules,
    offer_runs,
    offer_studies,
    option,
)
from toolkit.errors import UsageError
from toolkit.exports import FORMATS
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from toolkit.registers.query import Answer, Asking, RemoteStudy
    from toolkit.registers.study import Study


class Exported(Document, frozen=True):
    """A study in another project's format."""

    study: Annotated[str, about("Name of the study.")]
    format: Annotated[Literal["every-eval-ever", "in-toto"], about("Whose format.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[dict[str, int], about("Bytes by path.")]
    bytes: Annotated[int, about("Of all files.")]


class WrittenAnswer(Document, frozen=True):
    """An answer that was written to a file: `sql --parquet`."""

    file: Annotated[str, about("Its path.")]
    rows: Annotated[int, about("How many rows.")]


AnswerRows = list[dict[str, object]]
"""The rows of an answer, value by column; what JSON has no word for is text."""
MOST_ROWS = 100
"""Rows of a table for people; more than a screen holds, and less than one waits for."""


@command()
def sql(
    *,
    query: str = argument(),
    study: str | None = option(
        metavar=STUDY,
        shell_complete=offer_studies,
        help="Study to query; default: `published`, or the only one here.",
    ),
    as_csv: bool = flag("--csv", help="Print comma-separated values."),
    parquet: Path | None = option(
        type=FILE, metavar="FILE", help="Write the answer to a new Parquet file, with its types."
    ),
    all_rows: bool = flag(help=f"Print all rows, not only the first {MOST_ROWS}."),
    remote: bool = flag(
        help="Query the study on the Hub in place: downloads only what is needed, checks no hashes."
    ),
    timeout_s: float = option(
        "--timeout",
        type=click.FloatRange(0.01, 86_400),
        default=60,
        metavar="SECONDS",
        show_default=True,
        help="Time limit for the query.",
    ),
    as_json: bool = json_option,
) -> None:
    """Run a read-only QUERY (DuckDB SQL) on a study; each table is a view.

    A query can read the study's files and nothing else. DuckDB stops a query that needs more than 4 GiB for
    its rows (one huge value is not counted) or runs longer than --timeout. --json holds the whole answer in
    memory; --csv and --parquet stream answers of any length.

    \b
    Examples:
      toolkit sql "SELECT arm, sum(spurious) FROM groups_summary GROUP BY ALL"
      toolkit sql "DESCRIBE episodes" --study embedded
      toolkit sql "FROM runs" --csv > runs.csv
      toolkit sql "SELECT avg(calls) FROM episodes" --study owner/name@v1 --remote
    """
    if as_csv and (as_json or parquet):
        raise UsageError(
            "--csv and --parquet exclude each other" if parquet else "--csv and --json exclude each other"
        )
    from toolkit.registers.query import asking

    with output.steps("opening the study"):
        opened = _opened(study, remote=remote)
    with asking(opened, timeout_s) as ask:
        if parquet is not None:
            rows = ask.write_parquet(query, parquet)
            document = WrittenAnswer(str(parquet), rows)
            output.tell(document, f"{rows} rows written to {parquet}", as_json=as_json)
        elif as_json:
            output.print_json(documents(ask(query)))
        elif as_csv:
            _print_csv(ask, query)
        else:
            _print_table(ask(query, None if all_rows else MOST_ROWS))


def _opened(name: str | None, *, remote: bool) -> Study | RemoteStudy:
    """Return the study that is asked; one on the Hub with a word on what was checked and what was not."""
    if not remote:
        return cases.open_study(name or cases.usual_study())
    if name is None:
        raise UsageError("say which study on the Hub to ask", expected="--study owner/name@revision")
    from toolkit.registers.hub.client import parse_reference
    from toolkit.registers.query import open_remote

    study = open_remote(parse_reference(name), say=output.remark)
    output.remark(
        f"{study.place}: the Hub states the SHA-256 of the manifest for every file; "
        "what a query reads of them was not hashed"
    )
    return study


def _print_csv(ask: Asking, query: str) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, (columns, rows) in enumerate(ask.batches(query)):
        if not number:
            writer.writerow(columns)
        writer.writerows(map(_printable, rows) if sys.stdout.isatty() else rows)


def _printable(row: tuple[object, ...]) -> list[object]:
    """Return a row as a terminal may see it."""
    return [output.visible(value) if isinstance(value, str) else value for value in row]


def _print_table(answer: Answer) -> None:
    rows = [["" if value is None else str(value) for value in row] for row in answer.rows]
    output.print_table(answer.columns, rows, more="--csv")
    left = answer.total - len(answer.rows)
    some = f"the first {len(answer.rows)} of {answer.total} rows: --all-rows prints the other {left}, "
    output.say_line(some + "--csv and --parquet hold all" if left else f"{answer.total} rows")


def documents(answer: Answer) -> AnswerRows:
    """Return an answer's rows as JSON documents; what JSON has no word for becomes text."""
    twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
    if twice:
        raise UsageError(
            "two columns have one name, and a JSON document can hold one of them",
            found=", ".join(twice),
            remedy="give each column a name of its own with AS",
        )
    return [
        {name: output.cell(value) for name, value in zip(answer.columns, row, strict=True)}
        for row in answer.rows
    ]


@command()
def export(
    *,
    study: str = argument(metavar=STUDY, shell_complete=offer_studies),
    form: str = option("--as", type=click.Choice(list(FORMATS)), required=True, help="Format."),
    into: Path | None = option(type=FOLDER, help="New folder to write; default: STUDY-FORMAT."),
    runs: str = option(
        "--run",
        default="",
        show_default=False,
        metavar="GLOB",
        shell_complete=offer_runs,
        help="Runs to export; default: all.",
    ),
    rules: tuple[str, ...] = option(
        "--rule", multiple=True, shell_complete=offer_rules, help="Rule to export; default: all."
    ),
    episodes: bool = flag(help="Also export each episode, about 3 KB each."),
    date: datetime | None = option(
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="YYYY-MM-DD",
        help="Date of the study, if the study does not record it.",
    ),
    as_json: bool = json_option,
) -> None:
    """Export a study in another project's format; the same study gives the same bytes.

    \b
    every-eval-ever  a record a model and step, in the folders of the project's
                     datastore; with --episodes, its JSONL of episodes beside it
    in-toto          a Statement a rule, unsigned: subjects are the register
                     files, the predicate is the decision with registration,
                     amendments and tokens

    A model is a run of the study, or what `toolkit evaluate` was given: name the folder of its
    registers, and --date for every-eval-ever.

    \b
    Examples:
      toolkit export tiny-lm --as every-eval-ever --run 'c2-*' --episodes
      toolkit export published --as in-toto --rule H2a --into statements
    """
    from toolkit.exports.formats import Export, write_new

    opened = cases.open_study(study)
    folder = into or Path(f"{opened.name}-{form}")
    with output.steps(f"export {opened.name}"):
        made = date and date.replace(tzinfo=UTC)
        wanted = Export(form, runs, rules, episodes, made)
        sizes = write_new(folder, cases.export(opened, wanted))
    total = sum(sizes.values())
    document = Exported(opened.name, form, str(folder), sizes, total)  # type: ignore[arg-type]
    output.tell(
        document, f"{opened.name}: {len(sizes)} files, {total} bytes, written in {folder}", as_json=as_json
    )
