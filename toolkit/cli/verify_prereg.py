"""`toolkit verify-prereg`: was it registered first?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers, output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.standing import require_option
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.prereg import verification
    from toolkit.registers.study import Study


@click.command("verify-prereg")
@click.argument("registrations", nargs=-1, shell_complete=offers.registrations)
@click.option(
    "--study",
    "named",
    multiple=True,
    metavar=output.STUDY,
    shell_complete=offers.studies,
    help="Verify the registration of this study, which may carry it, against its runs.",
)
@trust_option
@click.option(
    "--restatement",
    "restatements",
    multiple=True,
    metavar="LINK",
    help="Last link of a registration that restates a document frozen elsewhere: you compared the two.",
)
@click.option(
    "--openssl", "with_openssl", is_flag=True, help="Ask OpenSSL about each token, too: it can veto."
)
@require_option
@output.json_option
@click.pass_context
def verify_prereg(
    context: click.Context,
    *,
    registrations: tuple[str, ...],
    named: tuple[str, ...],
    trust_files: tuple[Path, ...],
    restatements: tuple[str, ...],
    with_openssl: bool,
    least: str | None,
    as_json: bool,
) -> None:
    """Verify REGISTRATIONS (every one here if none is named): files, document, tokens, chronology.

    No network is used. What is missing is named, with where it is to be had and where to put it.

    \b
    Examples:
      toolkit verify-prereg
      toolkit verify-prereg paired-rollouts --json
      toolkit verify-prereg paired-rollouts --openssl
      toolkit verify-prereg --study embedded
      toolkit verify-prereg embedded --require demonstration
    """
    from toolkit.prereg.verification import standing_of

    if registrations and named:
        raise UsageError("name registrations, or the studies that they belong to")
    wanted = _wanted(registrations, named)
    results = []
    with output.stepped("verify", len(wanted)) as progress:
        for folder, studies in wanted:
            progress(folder.name)
            results.append(
                api.verify(
                    folder,
                    studies,
                    trust_files=trust_files,
                    restatements=restatements,
                    with_openssl=with_openssl,
                    all_belong=bool(named),
                )
            )
    if as_json:
        output.print_json([result.as_dict() for result in results])
    else:
        for result in results:
            print_verification(result)
    if least:
        standing.end(context, {result.registration: standing_of(result) for result in results}, least)
    verdicts = {result.verdict for result in results}
    context.exit(1 if "not_verified" in verdicts else 3 if "incomplete" in verdicts else 0)


def _wanted(registrations: Sequence[str], named: Sequence[str]) -> list[tuple[Path, Sequence[Study]]]:
    """Return the folders to verify, each with the studies whose runs have to come after it."""
    from toolkit.prereg.registration import is_draft

    home = find_home()
    if named:
        studies = [api.open_study(name, home) for name in dict.fromkeys(named)]
        return [(api.registration_of(study, home), [study]) for study in studies]
    every = [home.registration_folder(name) for name in registrations or home.registration_names()]
    # A draft claims nothing yet; whoever names it, or has nothing else, is told so.
    folders = every if registrations else [folder for folder in every if not is_draft(folder)] or every
    home.say_absent(output.remark)
    here = api.studies_here(home)
    return [(folder, here) for folder in folders]


def print_verification(result: verification.Verification) -> None:
    """Print a verification, step by step; plain lines, because tables take longer to load than it takes."""
    from toolkit.prereg.verification import TOKENS

    marks = output.standing_mark(result.standing)
    if result.is_restated and result.verdict == "verified":
        marks += "   THE DOCUMENT, NOT ITS RESTATEMENT HERE"
    output.say_line(output.bold(result.registration), ": ", output.styled(result.verdict), marks)
    for check in result.checks:
        output.say_line(f"  {check.step}. {check.name}: ", output.styled(check.outcome))
        # That step's detail is a list of facts, read more easily line by line.
        for line in check.detail.replace("; ", "\n" if check.step == TOKENS else "; ").split("\n"):
            output.say_line(f"     {line}")
    output.say_line(f"  {result.promise}")
