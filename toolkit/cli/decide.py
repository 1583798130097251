"""`toolkit decide`: execute registered rules on registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.standing import require_option
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.text import Text

    from toolkit.decisions.decision import AmendmentRef, Decision
    from toolkit.registers.study import Origin


@click.command()
@click.argument("rules", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Decide every rule of the registration.")
@output.study_option
@click.option("--fail-on-miss", is_flag=True, help="End with exit code 1 if a rule is missed.")
@require_option
@trust_option
@output.json_option
@click.pass_context
def decide(
    context: click.Context,
    *,
    rules: tuple[str, ...],
    every: bool,
    studies: tuple[str, ...],
    fail_on_miss: bool,
    least: str | None,
    trust_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Execute RULES as written in the frozen registration, on the registers of a study.

    No threshold lives in code: change a rule and its recorded hash no longer matches. Without a named study,
    every shipped one decides the rules that its registration has.

    Beside the verdicts stands what their registration stands on: public, a demonstration, incomplete or
    failed. Under one that failed the command ends with exit code 1. An amendment made after the runs replaces
    no verdict; what it would say is shown as exploratory.

    What a rule reads is held against the rows that it follows from, and intervals are computed from episode
    rows. A stored verdict is compared with the one that is reached, and never believed.

    \b
    Examples:
      toolkit decide H2a
      toolkit decide H2a H2b gate2 --study published --json
      toolkit decide --all
      toolkit decide --all --study published
      toolkit decide H2a --study some-group/their-study@v1.0.0
      toolkit decide --all --study embedded --require demonstration
    """
    if bool(rules) == every:
        raise UsageError(
            "name the rules to decide, or --all" + (", not both" if rules else ""),
            remedy="toolkit decide H2a, or toolkit decide --all",
        )
    decisions = api.decide_rules(rules, studies, trust_files=trust_files)
    if as_json:
        output.print_json([decision.as_dict() for decision in decisions])
    else:
        print_decisions(decisions)
    standing.end(context, standing.standings_of(decisions), least)
    if fail_on_miss and any(decision.missed for decision in decisions):
        context.exit(1)


def print_decisions(decisions: Sequence[Decision]) -> None:
    """Print decisions as a table, and below it what a reader must not miss."""
    from rich.text import Text

    out = output.console()
    for study, origin in dict.fromkeys((decision.study, decision.origin) for decision in decisions):
        mine = [decision for decision in decisions if (decision.study, decision.origin) == (study, origin)]
        headings = ("rule", "what", "verdict", "estimate", "interval", "evidence")
        shown = output.table(headings, f"Study {study}", overflow="fold")
        for decision in mine:
            shown.add_row(
                decision.rule,
                Text(decision.title),
                verdict_text(decision),
                estimate_text(decision),
                interval_text(decision),
                "" if decision.evidence == "not_estimated" else decision.evidence.replace("_", " "),
            )
        out.print(shown)
        if origin:
            output.say_line(f"  {origin_text(origin)}")
        for registered in dict.fromkeys(map(standing_text, mine)):
            output.say_line(f"  {registered}")
        for note in notes(mine):
            output.say_line(f"  {note}")


def standing_text(decision: Decision) -> str:
    """Return what a decision's registration stands on, on one line."""
    return f"Registration {decision.registration[0]}: {decision.standing}"


def verdict_text(decision: Decision) -> Text:
    """Return a verdict for a table, marked where it does not count as it stands."""
    made = output.marked(decision.verdict)
    if decision.standing.failed_steps:
        made.append(" (registration FAILED)", "red")
    return made.append(" (exploratory)") if decision.is_exploratory else made


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
        lines += [f"{decision.rule}: {text}" for text in exploratory_text(decision)]
        if decision.added_by:
            lines.append(f"{decision.rule}: added by amendment {decision.added_by.id}")
        if decision.amendment and decision.amendment.relation != "adds":
            done = "amended by" if decision.amendment.relation == "replaces" else "restated after amendment"
            lines.append(f"{decision.rule}: {done} {decision.amendment.id}")
        for done, refs in _by_deed(decision.rests_on).items():
            lines.append(f"{decision.rule}: rests on rules {done} by amendment {', '.join(refs)}")
        if decision.missing and decision.verdict != "not_run":
            lines.append(f"{decision.rule}: missing {'; '.join(decision.missing)}")
        if decision.bounds:
            lines.append(f"{decision.rule}: {decision.bounds.in_words}")
        lines += [f"{decision.rule}: CLOSE CALL: {call}" for call in decision.close_calls]
        lines += [f"{decision.rule}: {c.id}: {caution}" for c in decision.criteria for caution in c.cautions]
    return lines + _origins(decisions)


def exploratory_text(decision: Decision) -> Iterator[str]:
    """Yield what amendments made after the runs have to do with a decision."""
    for changed in decision.exploratory:
        yield f"exploratory, as amendment {changed.amendment} would have it after the runs: {changed.verdict}"
    if decision.is_exploratory:
        yield "exploratory: the rule was added after the runs, and binds nothing"


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
