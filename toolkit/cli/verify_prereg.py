"""`toolkit verify-prereg`: was it registered first?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.load import verify_named
from toolkit.cli.output import console, headline, json_option, marked, print_json
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.prereg.verification import Verification


@click.command("verify-prereg")
@click.argument("registrations", nargs=-1)
@json_option
@click.pass_context
def verify_prereg(context: click.Context, *, registrations: tuple[str, ...], as_json: bool) -> None:
    """Verify REGISTRATIONS (every one here if none is named): files, document, tokens, chronology.

    \b
    Examples:
      toolkit verify-prereg
      toolkit verify-prereg paired-rollouts --json
    """
    home = find_home()
    results = [verify_named(name, home) for name in registrations or home.registration_names()]
    if as_json:
        print_json([as_document(result) for result in results])
    else:
        for result in results:
            print_verification(result)
    verdicts = {result.verdict for result in results}
    context.exit(1 if "not_verified" in verdicts else 3 if "incomplete" in verdicts else 0)


def as_document(result: Verification) -> dict[str, Any]:
    """Return a verification as it is printed with `--json`."""
    order = ("run_before_freeze", "incomplete", "runs_after_freeze")
    verdicts = [c.verdict for c in result.chronology] or ["incomplete"]
    return {
        "registration": result.registration,
        "verdict": result.verdict,
        "standing": result.standing,
        "document_sha256": result.document_sha256,
        "existed_by": None,
        "authorities": [{"name": name, "recorded_time": time} for name, time in result.authorities],
        "chronology": {
            "verdict": min(verdicts, key=order.index),
            "runs_after": sum(len(c.runs_after) for c in result.chronology),
            "disclosed_exceptions": [run for c in result.chronology for run in c.disclosed_exceptions],
            "undisclosed": [run for c in result.chronology for run in c.undisclosed],
        },
        "checks": [
            {"step": c.step, "name": c.name, "outcome": c.outcome, "detail": c.detail} for c in result.checks
        ],
    }


def print_verification(result: Verification) -> None:
    """Print a verification, step by step."""
    from rich.text import Text

    from toolkit.prereg.verification import PROMISE

    out = console()
    out.print(headline(result.registration, ": ", marked(result.verdict)))
    for check in result.checks:
        out.print(Text.assemble(f"  {check.step}. {check.name}: ", marked(check.outcome)))
        out.print(f"     {check.detail}", soft_wrap=True, highlight=False, markup=False)
    out.print(f"  {PROMISE}", soft_wrap=True, highlight=False, markup=False)
