"""`toolkit decide`: execute registered rules on registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli.output import console, json_option, marked, print_json, study_option
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.decisions.decision import AmendmentRef, Decision
    from toolkit.registers.study import Origin


@click.command()
@click.argument("rules", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Decide every rule of the registration.")
@study_option
@click.option("--fail-on-miss", is_flag=True, help="End with exit code 1 if a rule is missed.")
@click.option("--recompute", is_flag=True, help="Compute every interval from episode rows, stored or not.")
@json_option
@click.pass_context
def decide(
    context: click.Context,
    *,
    rules: tuple[str, ...],
    every: bool,
    studies: tuple[str, ...],
    fail_on_miss: bool,
    recompute: bool,
    as_json: bool,
) -> None:
    """Execute RULES as written in the frozen registration, on the registers of a study.

    No threshold lives in code: change a rule and its recorded hash no longer matches. Without a named study,
    every shipped one decides the rules that its registration has.

    An interval is computed from episode rows, unless the study stores it for exactly these rows and rules.

    \b
    Examples:
      toolkit decide H2a
      toolkit decide H2a H2b gate2 --study published --json
      toolkit decide --all
      toolkit decide --all --study published --recompute
      toolkit decide H2a --study some-group/their-study@v1.0.0
    """
    if bool(rules) == every:
        raise UsageError(
            "name the rules to decide, or --all" + (", not both" if rules else ""),
            remedy="toolkit decide H2a, or toolkit decide --all",
        )
    decisions = api.decide(rules, studies, recompute=recompute)
    if as_json:
        print_json([decision.as_dict() for decision in decisions])
    else:
        print_decisions(decisions)
    if fail_on_miss and any(decision.missed for decision in decisions):
        context.exit(1)


def print_decisions(decisions: Sequence[Decision]) -> None:
    """Print decisions as a table, and below it what a reader must not miss."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    for study, origin in dict.fromkeys((decision.study, decision.origin) for decision in decisions):
        mine = [one for one in decisions if (one.study, one.origin) == (study, origin)]
        table = Table(title=Text(f"Study {study}"), title_justify="left", title_style="bold")
        for column in ("rule", "what", "verdict", "estimate", "interval", "evidence"):
            table.add_column(column, overflow="fold")
        for decision in mine:
            table.add_row(
                decision.rule,
                Text(decision.title),
                marked(decision.verdict),
                estimate_text(decision),
                interval_text(decision),
                "" if decision.evidence == "not_estimated" else decision.evidence.replace("_", " "),
            )
        out.print(table)
        if origin:
            out.print(f"  {origin_text(origin)}", soft_wrap=True, highlight=False, markup=False)
        for note in notes(mine):
            out.print(f"  {note}", soft_wrap=True, highlight=False, markup=False)


def origin_text(origin: Origin) -> str:
    """Return which commit of the Hub was decided on, in a form that can be given to `--study`."""
    return f"Read from {origin.pinned}, asked for as {origin.revision}"


def notes(decisions: Sequence[Decision]) -> list[str]:
    """Return the remarks that belong under a table of decisions."""
    lines = []
    for decision in decisions:
        if not decision.readings_agree:
            readings = ", ".join(f"{name}: {verdict}" for name, verdict in decision.readings.items())
            lines.append(f"{decision.rule}: READINGS DISAGREE ({readings}); {decision.binding} binds")
        if decision.original_verdict:
            lines.append(f"{decision.rule}: {decision.original_verdict} originally. {decision.superseded}")
        if decision.added_by:
            lines.append(f"{decision.rule}: added by amendment {decision.added_by.id}")
        if decision.amendment and decision.amendment.relation != "adds":
            done = "amended by" if decision.amendment.relation == "replaces" else "restated after amendment"
            lines.append(f"{decision.rule}: {done} {decision.amendment.id}")
        for done, refs in _by_deed(decision.rests_on).items():
            lines.append(f"{decision.rule}: rests on rules {done} by amendment {', '.join(refs)}")
        if decision.missing and decision.verdict != "not_run":
            lines.append(f"{decision.rule}: missing {'; '.join(decision.missing)}")
        lines += [f"{decision.rule}: CLOSE CALL: {call}" for call in decision.close_calls]
    return lines + _origins(decisions)


def _by_deed(refs: Sequence[AmendmentRef]) -> dict[str, list[str]]:
    """Return the amendments that changed rules, and those that added some, each once."""
    deeds = {"changed": [ref for ref in refs if ref.relation != "adds"]}
    deeds["added"] = [ref for ref in refs if ref.relation == "adds"]
    return {deed: list(dict.fromkeys(ref.id for ref in done)) for deed, done in deeds.items() if done}


def _origins(decisions: Sequence[Decision]) -> list[str]:
    """Return where the intervals come from, each way once."""
    from toolkit.decisions.interval import Interval

    origins = {d.interval.origin: d.interval.source for d in decisions if isinstance(d.interval, Interval)}
    return [
        "Intervals are as published: the episode rows behind them are not available."
        if source == "published"
        else f"Intervals are {origin}."
        for origin, source in origins.items()
    ]


def estimate_text(decision: Decision) -> str:
    """Return an estimate as `+0.0370 (+0.0539 -0.0016 +0.0586)`."""
    if decision.estimate is None:
        return ""
    shown = decision.estimate.as_dict()
    if shown["mean"] is None:
        return ""
    members = decision.estimate.members
    if members is None:
        return f"{shown['mean']:.4f}"
    return f"{shown['mean']:+.4f} ({' '.join(f'{m:+.4f}' for m in shown[f'by_{members.unit}'].values())})"


def interval_text(decision: Decision) -> str:
    """Return an interval as `95% [-0.0039, +0.0779]`."""
    interval = decision.as_dict()["interval"]
    if interval is None:
        return ""
    return f"{100 * interval['level']:g}% [{interval['low']:+.4f}, {interval['high']:+.4f}]"
