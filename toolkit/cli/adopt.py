"""`toolkit adopt`: the evidence of a published study, from a checkout of its authors' repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from toolkit import api
from toolkit.cli import output
from toolkit.cli.options import (
    FOLDER,
    argument,
    command,
    flag,
    json_option,
    offer_studies,
    trust_option,
)
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.documents.registrations import AdoptDocument
    from toolkit.documents.registrations import AdoptionOutcome as Outcome
    from toolkit.prereg.adoption import Evidence, Folder
    from toolkit.registers.published import Comparison
    from toolkit.registers.study import Study

MOST = 5
TRIED: Final = "dry run"


@command()
@click.pass_context
def adopt(
    context: click.Context,
    *,
    study: str = argument(shell_complete=offer_studies),
    checkout: Path = argument(type=FOLDER),
    dry_run: bool = flag(help="Verify and compare everything; write nothing."),
    trust_files: tuple[Path, ...] = trust_option,
    as_json: bool = json_option,
) -> None:
    """Take the evidence of STUDY's freeze from CHECKOUT, a checkout of its authors' repository.

    The frozen document, both tokens, their request and certificates are verified and put where
    `verify-prereg` and `explain` read them, all at once or not at all. The task pools' hashes, and every
    figure that the authors' run registers hold, are compared with those of STUDY; what the checkout does
    not have is named. No network is used, and nothing outside CHECKOUT is read.

    Ends with 1 if something differs, and with 3 if a part of the evidence is missing.

    \b
    Examples:
      toolkit adopt published ../paired-rollouts
      toolkit adopt published ../paired-rollouts --dry-run --json
      toolkit verify-prereg paired-rollouts
    """
    from datetime import UTC, datetime

    from toolkit.prereg import adoption
    from toolkit.prereg.adoption import Folder
    from toolkit.prereg.record import known_authorities, known_restatements
    from toolkit.prereg.registration import load_registration
    from toolkit.prereg.verification import Reader

    home = find_home()
    if home.is_shipped:
        raise UsageError(
            "the registrations that came with the package are not written",
            where=home.registrations,
            remedy="change into a checkout of this project, or set TOOLKIT_HOME to one",
        )
    opened, folder = api.open_study(study, home), Folder(checkout)
    registration = load_registration(home.registration_folder(opened.manifest.registration.name))
    reader = Reader(known_authorities(*trust_files), datetime.now(UTC), restatements=known_restatements())
    with output.stepped(f"adopt {study}", 4) as progress:
        found = adoption.examine(registration, folder, reader, progress)
        progress("comparing the figures of the runs")
        figures = _compared(opened, folder, found.runs)
        outcome: Outcome = TRIED if dry_run else adoption.put_in_place(found)
    if as_json:
        output.print_json(_document(found, outcome, figures))
    else:
        _show(found, outcome, figures)
    context.exit(1 if found.pools.differences or (figures and figures.differences) else 0)


def _compared(study: Study, checkout: Folder, runs: str) -> Comparison | None:
    """Compare the figures of a study that was transcribed from run registers; None of any other study."""
    from toolkit.registers.published import SOURCES, STUDY, compare_runs, read_source

    if study.name != STUDY:
        return None
    for name in SOURCES:
        study.prove(f"source/{name}.csv")
    return compare_runs(read_source(study.folder / "source"), checkout, runs)


def _document(done: Evidence, outcome: Outcome, figures: Comparison | None) -> AdoptDocument:
    verification = done.verification
    document: AdoptDocument = {
        "registration": verification.registration,
        "outcome": outcome,
        "folder": str(done.folder),
        "files": sorted(done.contents),
        "document_sha256": verification.document_sha256,
        "authorities": [judged.as_dict() for judged in verification.authorities],
        "checks": [check.as_dict() for check in done.checks],
        "pools": {
            "compared": done.pools.compared,
            "differences": done.pools.differences,
            "not_compared": done.pools.not_compared,
        },
        "figures": None,
    }
    if figures is not None:
        document["figures"] = {
            "runs": figures.runs,
            "compared": figures.compared,
            "differences": [difference.as_dict() for difference in figures.differences],
            "not_compared": figures.not_compared,
        }
    return document


def _show(done: Evidence, outcome: Outcome, figures: Comparison | None) -> None:
    what = {"adopted": "in its place", "unchanged": "in its place already", TRIED: "not written"}
    pools = done.pools
    output.say_line(f"{done.verification.registration}: the evidence verifies and is {what[outcome]}")
    output.say_line(f"  {done.folder}: {', '.join(sorted(done.contents))}")
    for check in done.checks:
        output.say_line(f"  {check.step}. {check.name}: ", output.styled(check.outcome))
    _say(f"hashes of task pools compared: {pools.compared}", pools.differences, pools.not_compared)
    if figures is None:
        output.say_line("figures: this study was not transcribed from run registers; none compared")
        return
    _say(
        f"figures compared: {figures.compared}, of {figures.runs} runs",
        [f"{d.figure}: published {d.published}, in the checkout {d.found}" for d in figures.differences],
        figures.not_compared,
    )
    output.say_line(f"Now: toolkit verify-prereg {done.verification.registration}")


def _say(compared: str, differences: Sequence[str], not_compared: Sequence[str]) -> None:
    """Print what was compared, the first differences, and what was not compared."""
    output.say_line(f"{compared}; different: {len(differences)}")
    for what, told in (("DIFFERS", differences), ("not compared", not_compared)):
        for line in told[:MOST]:
            output.say_line(f"  {what}: {line}")
        if len(told) > MOST:
            output.say_line(f"  {what}: {len(told) - MOST} more; --json has them all")
