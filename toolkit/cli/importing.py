"""`toolkit registers import`: any study in, from its own table of episodes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers
from toolkit.cli.output import FILE, check_option, json_option, print_json, say_line, stepped, styled
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.documents.registers import ImportDocument, Written
    from toolkit.drafting.importing import Imported

MOST_NAMES = 5
GIVEN_BACK = {
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Settings of polars' and Arrow's allocators, read when they are first imported: what was freed is given back
at once. An import of a million rows then holds a fifth less, and takes as long."""


STEPS = 5
"""What an import tells of: log, rows, registers to decide on, decisions, the study's own registers."""


@click.command("import")
@click.argument("study", shell_complete=offers.registrations)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--mapping", type=FILE, help="File that says how to read the table; mappings/STUDY.toml if left out."
)
@click.option(
    "--replace",
    "reason",
    metavar="REASON",
    help="Why registers that were decided on get other rows; recorded.",
)
@check_option
@json_option
def import_registers(
    *,
    study: str,
    sources: tuple[str, ...],
    mapping: Path | None,
    reason: str | None,
    check: bool,
    as_json: bool,
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
    with stepped(f"import {study}", STEPS) as progress:
        done = api.import_registers(
            study, sources, home, mapping=mapping, reason=reason, check=check, progress=progress
        )
    folder = home.registers / study
    outcome: Written = "identical" if check else "written"
    if as_json:
        print_json(_document(done, folder, outcome))
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
    say_line(f"{manifest.study}: {outcome} in {folder}")
    say_line(f"  {rows}")
    registered = len(done.present) + len(done.absent)
    say_line(f"  {len(done.present)} of {registered} registered runs")
    for what, names in (("absent", done.absent), ("not registered, and not decided on", done.unregistered)):
        if names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            say_line(f"  {what}: {', '.join(names[:MOST_NAMES])}{more}")
    for said in done.said:
        say_line(f"  {said}")
    for rule, verdict in done.decided.items():
        say_line(f"  {rule} ", styled(verdict))
