"""`toolkit export`: a study in the formats of other projects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from toolkit import api
from toolkit.cli.options import (
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
from toolkit.cli.output import steps, tell
from toolkit.exports import FORMATS

if TYPE_CHECKING:
    from toolkit.documents.runs import ExportDocument, Format


@command()
def export(
    *,
    study: str = argument(metavar=STUDY, shell_complete=offer_studies),
    form: str = option("--as", type=click.Choice(list(FORMATS)), required=True, help="What it becomes."),
    into: Path | None = option(type=FOLDER, help="New folder to write; STUDY-FORMAT here if left out."),
    runs: str = option(
        "--run",
        default="",
        show_default=False,
        metavar="GLOB",
        shell_complete=offer_runs,
        help="Runs to tell of; all if left out.",
    ),
    rules: tuple[str, ...] = option(
        "--rule", multiple=True, shell_complete=offer_rules, help="Rule to state; every one if left out."
    ),
    episodes: bool = flag(help="Tell of each episode, too: about 3 KB each."),
    date: datetime | None = option(
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="YYYY-MM-DD",
        help="When the study was made, where nothing in it says so.",
    ),
    as_json: bool = json_option,
) -> None:
    """Write a study as other projects read it; the same study gives the same bytes.

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
    from toolkit.exports.formats import Wanted, write_new

    opened = api.open_study(study)
    folder = into or Path(f"{opened.name}-{form}")
    with steps(f"export {opened.name}"):
        made = date and date.replace(tzinfo=UTC)
        wanted = Wanted(form, runs, rules, episodes, made)
        sizes = write_new(folder, api.export(opened, wanted))
    total = sum(sizes.values())
    document: ExportDocument = {
        "study": opened.name,
        "format": cast("Format", form),
        "folder": str(folder),
        "files": sizes,
        "bytes": total,
    }
    tell(
        document,
        f"{opened.name}: {len(sizes)} files, {total} bytes, written in {folder}",
        as_json=as_json,
    )
