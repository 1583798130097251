"""`toolkit sql`: ask the registers something else."""

from __future__ import annotations

import csv
import math
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.load import decidable, load_study
from toolkit.cli.output import STUDY, console, json_option, print_json
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.registers.query import Answer


PUBLISHED = "published"


@click.command()
@click.argument("query")
@click.option("--study", metavar=STUDY, help="Study to ask; the only one, or `published`, if left out.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@json_option
def sql(*, query: str, study: str | None, as_csv: bool, as_json: bool) -> None:
    """Run one reading QUERY (DuckDB's SQL) on a study; each table is a view.

    \b
    Examples:
      toolkit sql "SELECT arm, seed, sum(spurious), sum(all_correct) FROM groups_summary GROUP BY ALL"
      toolkit sql "DESCRIBE episodes" --study embedded
      toolkit sql "FROM runs" --csv > runs.csv
    """
    from toolkit.registers.query import ask

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    if study is None:
        shipped = decidable(find_home())
        if len(shipped) != 1 and PUBLISHED not in shipped:
            raise UsageError("say which study to ask", expected=f"--study {' or '.join(shipped)}")
        study = PUBLISHED if PUBLISHED in shipped else shipped[0]
    answer = ask(load_study(study), query)
    if as_json:
        print_json(documents(answer))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        from rich.table import Table
        from rich.text import Text

        table = Table(caption=f"{len(answer.rows)} rows", caption_justify="left")
        for column in answer.columns:
            table.add_column(Text(column), no_wrap=True)
        for row in answer.rows:
            table.add_row(*(Text("" if value is None else str(value)) for value in row))
        console(wide=True).print(table)


def documents(answer: Answer) -> list[dict[str, Any]]:
    """Return an answer's rows as JSON documents; what JSON has no word for becomes text.

    Raises:
        UsageError: two columns have one name.
    """
    twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
    if twice:
        raise UsageError(
            "two columns have one name, and a JSON document can hold one of them",
            found=", ".join(twice),
            remedy="give each column a name of its own with AS",
        )
    return [
        {name: _cell(value) for name, value in zip(answer.columns, row, strict=True)} for row in answer.rows
    ]


def _cell(value: object) -> object:
    match value:
        case bool() | int() | str() | None | datetime():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): _cell(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_cell(inner) for inner in value]
        case _:
            return str(value)
