"""`toolkit sql`: ask the registers something else."""

from __future__ import annotations

import csv
import sys

import click

from toolkit.cli.load import load_study
from toolkit.cli.output import console, json_option, print_json
from toolkit.errors import UsageError
from toolkit.places import find_home


@click.command()
@click.argument("query")
@click.option("--study", metavar="NAME|PATH", help="Study to read; may be left out where there is only one.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@json_option
def sql(*, query: str, study: str | None, as_csv: bool, as_json: bool) -> None:
    """Run one reading QUERY (DuckDB's SQL) on a study; each table is a view.

    \b
    Examples:
      toolkit sql "SELECT arm, seed, sum(spurious), sum(all_correct) FROM groups_summary GROUP BY ALL"
      toolkit sql "DESCRIBE evaluations"
      toolkit sql "FROM runs" --csv > runs.csv
    """
    from toolkit.registers.query import ask

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    if study is None:
        shipped = find_home().studies()
        if len(shipped) != 1:
            raise UsageError("say which study to ask", expected=f"--study {' or '.join(shipped) or 'PATH'}")
        study = shipped[0]
    answer = ask(load_study(study), query)
    if as_json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        from rich.table import Table
        from rich.text import Text

        table = Table(caption=f"{len(answer.rows)} rows", caption_justify="left")
        for column in answer.columns:
            table.add_column(Text(column), overflow="fold")
        for row in answer.rows:
            table.add_row(*(Text("" if value is None else str(value)) for value in row))
        console().print(table)
