"""`toolkit findings`: secondary analyses of a study, computed from its registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.load import load_study, usual_study
from toolkit.cli.output import STUDY, console, headline, json_option, print_json
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from toolkit.study.findings import Finding


MOST = 16
"""Members of a list that are shown to people; --json has all."""


@click.command()
@click.option(
    "--study", "name", metavar=STUDY, help="Study to read; `published`, or the only one, if left out."
)
@json_option
def findings(*, name: str | None, as_json: bool) -> None:
    """Show secondary analyses of the published study; none of them changes a verdict.

    \b
    Examples:
      toolkit findings
      toolkit findings --study published --json
    """
    from toolkit.study.findings import LABEL
    from toolkit.study.findings import findings as compute

    study = load_study(name or usual_study())
    if not study.has("runs"):
        raise UsageError(f"{study.name!r} has no runs: there is nothing to analyse", where=study.folder)
    found = compute(study)
    if as_json:
        entries = [finding.as_dict() for finding in found]
        print_json({"study": study.name, "label": LABEL, "findings": entries})
        return
    out = console(wide=True)
    for finding in found:
        _show(out, finding, LABEL)


def _show(out: Console, finding: Finding, label: str) -> None:
    from rich.text import Text

    out.print(headline(finding.title, f"   {finding.id}   ({label})"))
    width = max(map(len, finding.numbers), default=0)
    for name, value in finding.numbers.items():
        out.print(Text(f"  {name.replace('_', ' '):{width}}  {_plain(value)}"))
    out.print(Text(f"  {finding.sentence}"))
    out.print(Text(f"  from: {finding.source}\n"))


def _plain(value: Any) -> str:
    if isinstance(value, list):
        more = f"  … {len(value)} in all" if len(value) > MOST else ""
        return "  ".join(map(_plain, value[:MOST])) + more or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
