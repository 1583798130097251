"""What `toolkit evaluate` prints."""

from __future__ import annotations

from typing import Any

from toolkit.cli.output import console, print_json, say_line


def print_evaluation(document: dict[str, Any], *, as_json: bool) -> None:
    """Print what an evaluation found: as JSON, or as two tables and where the registers are."""
    if as_json:
        print_json(document)
        return
    from rich.table import Table
    from rich.text import Text

    sets = Table(
        title=Text(f"{document['model']}   {document['engine']}"), title_justify="left", title_style="bold"
    )
    for heading in ("regime", "tasks", "episodes", "success", "observed", "calls", "exposed"):
        sets.add_column(heading, justify="left" if heading == "regime" else "right", no_wrap=True)
    for row in document["sets"]:
        measured = [_figure(row[name]) for name in ("success", "observed", "calls", "exposed")]
        sets.add_row(row["regime"], str(row["tasks"]), str(row["episodes"]), *measured)
    console().print(sets)
    if document["luck_share"]:
        console().print(_luck_table(document["luck_share"]))
    registers = document["registers"]
    if registers is None:
        say_line("nothing was kept: --out FOLDER keeps every episode, and goes on where it was stopped")
    else:
        say_line(f"registers written to {registers['folder']}, logical hash {registers['logical_sha256']}")


def _luck_table(rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title="Luck share λ", title_justify="left", title_style="bold")
    for heading in ("regime", "reward", "λ", "pooled", "tasks with a share"):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        share = {"estimate": row["luck_share"], "low": row["low"], "high": row["high"], "level": row["level"]}
        pooled = "" if row["pooled"] is None else f"{row['pooled']:.3f}"
        shown = "the reward never varied" if row["luck_share"] is None else _figure(share)
        defined = f"{row['tasks_defined']} of {row['tasks']}"
        table.add_row(row["regime"], row["target"].replace("_", " "), shown, pooled, defined)
    return table


def _figure(figure: dict[str, Any]) -> str:
    if figure["low"] is None:
        return f"{figure['estimate']:.3f}"
    return f"{figure['estimate']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"
