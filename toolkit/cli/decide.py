"""`toolkit decide`: execute registered rules on registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers, output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.standing import require_option
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolkit.decisions.decision import AmendmentRef, CriterionResult, Decision
    from toolkit.registers.manifest import Origin


@click.command()
@click.argument("rules", nargs=-1, shell_complete=offers.rules)
@click.option("--all", "every", is_flag=True, help="Decide every rule of the registration.")
@output.study_option
@click.option("--seeds", is_flag=True, help="Show the estimate of every seed, not their range.")
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
    seeds: bool,
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
    with output.counted("decide") as (watch, _):
        decisions = api.decide_rules(rules, studies, trust_files=trust_files, watch=watch)
    if as_json:
        output.print_json([decision.as_dict() for decision in decisions])
    elif every:
        print_decisions(decisions, seeds=seeds)
    else:
        for at, decision in enumerate(decisions):
            if at:
                output.say_line("")
            print_reasons(decision, seeds=seeds)
    standing.end(context, standing.standings_of(decisions), least)
    if fail_on_miss and any(decision.missed for decision in decisions):
        context.exit(1)


def print_decisions(decisions: Sequence[Decision], *, seeds: bool = False) -> None:
    """Print decisions as a table a study, and below it what a reader must not miss."""
    from toolkit.decisions import decision
    from toolkit.decisions.intervals import Interval

    for study, mine in _by_study(decisions):
        output.print_table(
            ("rule", "what", "verdict", "estimate", "seeds", "interval", "evidence"),
            [
                (
                    made.rule,
                    made.title,
                    verdict_text(made),
                    made.estimate.mean_text if made.estimate else "",
                    _members(made) if seeds else decision.range_text(made),
                    made.interval.text if isinstance(made.interval, Interval) else "",
                    decision.interval_says(made),
                )
                for made in mine
            ],
            f"Study {study}",
            numbers=("estimate",),
            whole=("rule", "interval", *(() if seeds else ("seeds",))),
            dropped=("evidence", "interval", "what"),
        )
        for line in (*_study_lines(mine), *notes(mine)):
            output.say_line(f"  {line}")


def print_reasons(decision: Decision, *, seeds: bool = False) -> None:
    """Print one decision as a paragraph: the verdict, each criterion, the interval, what it stands on."""
    from toolkit.decisions import decision as reasons

    output.say_line(output.bold(f"{decision.rule}  {decision.title}"), f"  (study {decision.study})")
    output.say_line("  ", verdict_text(decision), f": {reasons.what_decided(decision)}")
    shown = ""
    for criterion in decision.criteria:
        output.say_line(
            "  ",
            output.tick(criterion.known),
            f" {criterion.id}: {criterion.text}{_reading(criterion, decision)}",
        )
        counted = reasons.counts_say(criterion.counts)
        output.say_line(
            f"    {reasons.criterion_says(criterion)}{f'; {counted}' if counted not in ('', shown) else ''}"
        )
        shown = counted
    for line in (
        *filter(None, [reasons.missing_says(decision)]),
        *reasons.estimate_lines(decision, seeds=seeds),
        *_study_lines([decision]),
        *notes_of(decision),
    ):
        output.say_line(f"  {line}")


def _members(decision: Decision) -> str:
    return decision.estimate.members_text if decision.estimate and decision.estimate.mean_text else ""


def _reading(criterion: CriterionResult, decision: Decision) -> str:
    if not criterion.reading:
        return ""
    return f" [reading {criterion.reading}{'' if criterion.reading == decision.binding else ', not binding'}]"


def standing_text(decision: Decision) -> str:
    """Return what a decision's registration stands on, on one line."""
    name, missing = decision.registration[0], decision.standing.missing
    if not missing or decision.standing.failed_steps:
        return f"Registration {name}: {decision.standing}"
    first, *more = missing
    others = f", and {len(more)} more" if more else ""
    return f"Registration {name}: incomplete, {first}{others} (toolkit verify-prereg {name})"


def verdict_text(decision: Decision) -> str:
    """Return a verdict in its colour, marked where it does not count as it stands."""
    made = output.styled(decision.verdict, decision.verdict.replace("_", " "))
    if decision.standing.failed_steps:
        made = output.Styled(f"{made}{output.coloured(' (registration FAILED)', 'red')}")
    return output.Styled(f"{made} (exploratory)") if decision.is_exploratory else made


def _by_study(decisions: Sequence[Decision]) -> Iterator[tuple[str, list[Decision]]]:
    for study, origin in dict.fromkeys((decision.study, decision.origin) for decision in decisions):
        yield study, [made for made in decisions if (made.study, made.origin) == (study, origin)]


def _study_lines(decisions: Sequence[Decision]) -> dict[str, None]:
    """Return where a study was read, and what its registration stands on, each line once."""
    origins = [origin_text(decision.origin) for decision in decisions if decision.origin]
    return dict.fromkeys([*origins, *map(standing_text, decisions)])


def origin_text(origin: Origin) -> str:
    """Return which commit of the Hub was decided on, in a form that can be given to `--study`."""
    return f"Read from {origin.pinned}, asked for as {origin.revision}"


def notes(decisions: Sequence[Decision]) -> list[str]:
    """Return the remarks that belong under a table of decisions."""
    lines = []
    for decision in decisions:
        lines += notes_of(decision)
        if decision.missing and decision.verdict != "not_run":
            lines.append(f"{decision.rule}: missing {'; '.join(decision.missing)}")
    unplayed = ", ".join(decision.rule for decision in decisions if decision.verdict == "not_run")
    return (
        lines
        + ([f"not run, because its runs were not made: {unplayed}"] if unplayed else [])
        + _origins(decisions)
    )


def notes_of(decision: Decision) -> list[str]:
    """Return what a reader of a verdict must not miss."""
    from toolkit.decisions.decision import spoken

    lines = []
    if not decision.readings_agree:
        readings = ", ".join(f"{name}: {spoken(verdict)}" for name, verdict in decision.readings.items())
        lines.append(f"READINGS DISAGREE ({readings}); {decision.binding} binds")
    if decision.original_verdict:
        lines.append(f"{spoken(decision.original_verdict)} originally. {decision.superseded}")
    lines += exploratory_text(decision)
    if decision.added_by:
        lines.append(f"added by amendment {decision.added_by.id}")
    if decision.amendment and decision.amendment.relation != "adds":
        done = "amended by" if decision.amendment.relation == "replaces" else "restated after amendment"
        lines.append(f"{done} {decision.amendment.id}")
    for done, refs in _by_deed(decision.rests_on).items():
        lines.append(f"rests on rules {done} by amendment {', '.join(refs)}")
    if decision.bounds:
        lines.append(decision.bounds.in_words)
    lines += [f"CLOSE CALL: {call}" for call in decision.close_calls]
    lines += [
        f"{c.id}: {caution}" for c in decision.criteria if c.known is not None for caution in c.cautions
    ]
    return [f"{decision.rule}: {line}" for line in lines]


def exploratory_text(decision: Decision) -> Iterator[str]:
    """Yield what amendments made after the runs have to do with a decision."""
    from toolkit.decisions.decision import spoken

    for changed in decision.exploratory:
        after = f"exploratory, as amendment {changed.amendment} would have it after the runs"
        yield f"{after}: {spoken(changed.verdict)}"
    if decision.is_exploratory:
        yield "exploratory: the rule was added after the runs, and binds nothing"


def _by_deed(refs: Sequence[AmendmentRef]) -> dict[str, list[str]]:
    """Return the amendments that changed rules, and those that added some, each once."""
    deeds = {"changed": [ref for ref in refs if ref.relation != "adds"]}
    deeds["added"] = [ref for ref in refs if ref.relation == "adds"]
    return {deed: list(dict.fromkeys(ref.id for ref in done)) for deed, done in deeds.items() if done}


def _origins(decisions: Sequence[Decision]) -> list[str]:
    """Return where the intervals come from, each way once."""
    from toolkit.decisions.intervals import Interval

    origins = {d.interval.origin: d.interval.source for d in decisions if isinstance(d.interval, Interval)}
    return [
        "Intervals are as published: the episode rows behind them are not available."
        if source == "published"
        else f"Intervals are {origin}."
        for origin, source in origins.items()
    ]
