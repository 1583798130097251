"""`toolkit decide` and `explain`: execute registered rules on registers; why they came out as they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cases import decide_rules, load_cases, rules_asked
from toolkit.cli import output
from toolkit.cli.options import (
    argument,
    command,
    flag,
    json_option,
    offer_rules,
    require_option,
    study_option,
    trust_option,
)
from toolkit.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.decisions.case import Case, Explanation, Restated
    from toolkit.decisions.decision import AmendmentRef, CriterionResult, Decision
    from toolkit.prereg.verification import Standing


@command()
@click.pass_context
def decide(
    context: click.Context,
    *,
    rules: tuple[str, ...] = argument(nargs=-1, shell_complete=offer_rules),
    every: bool = flag("--all", help="Decide every rule of the registration."),
    studies: tuple[str, ...] = study_option,
    seeds: bool = flag(help="Show the estimate of each seed instead of their range."),
    fail_on_miss: bool = flag(help="Exit with 1 if any rule is a miss."),
    least: str | None = require_option,
    trust_files: tuple[Path, ...] = trust_option,
    as_json: bool = json_option,
) -> None:
    """Execute RULES as written in the frozen registration, on the registers of a study.

    No threshold is in the code: change a rule, and its recorded hash no longer matches. Without --study,
    every study here decides its own rules.

    Each verdict comes with the standing of its registration: public, demonstration, incomplete or failed. If
    it failed, the exit code is 1. An amendment made after the runs changes no verdict; its result is shown as
    exploratory.

    Every figure a rule reads is checked against the rows it was computed from, and intervals are computed
    from episode rows. Stored verdicts are compared with the new ones, never trusted.

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
        decisions = decide_rules(rules, studies, trust_files=trust_files, watch=watch)
    if as_json:
        output.print_json(decisions)
    elif every:
        print_decisions(decisions, seeds=seeds)
    else:
        for at, decision in enumerate(decisions):
            if at:
                output.say_line("")
            print_reasons(decision, seeds=seeds)
    end(context, standings_of(decisions), least)
    if fail_on_miss and any(decision.missed for decision in decisions):
        context.exit(1)


def print_decisions(decisions: Sequence[Decision], *, seeds: bool = False) -> None:
    """Print decisions as a table a study, and below it what a reader must not miss."""
    from toolkit.decisions import decision

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
                    made.interval.text if made.interval else "",
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
    name, missing = decision.registration.name, decision.standing.missing
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
    origins = [
        f"Read from {origin.pinned}, asked for as {origin.revision}"
        for origin in (decision.origin for decision in decisions)
        if origin
    ]
    return dict.fromkeys([*origins, *map(standing_text, decisions)])


def notes(decisions: Sequence[Decision]) -> list[str]:
    """Return the remarks that belong under a table of decisions."""
    from toolkit.decisions.decision import missing_says

    lines = []
    for decision in decisions:
        lines += notes_of(decision)
        if decision.missing and decision.verdict != "not_run":
            lines.append(f"{decision.rule}: {missing_says(decision)}")
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
    if decision.readings_agree is False:
        readings = ", ".join(f"{name}: {spoken(verdict)}" for name, verdict in decision.readings.items())
        lines.append(f"READINGS DISAGREE ({readings}); {decision.binding} binds")
    if decision.original_verdict:
        lines.append(f"{spoken(decision.original_verdict)} originally. {decision.superseded}")
    if decision.pilot_rows:
        lines.append(f"CONTAINS PILOT ROWS: {decision.pilot_rows}")
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
    origins = {d.interval.origin: d.interval.source for d in decisions if d.interval}
    return [
        "Intervals are as published: the episode rows behind them are not available."
        if source == "published"
        else f"Intervals are {origin}."
        for origin, source in origins.items()
    ]


@command()
@click.pass_context
def explain(
    context: click.Context,
    *,
    rules: tuple[str, ...] = argument(nargs=-1, shell_complete=offer_rules),
    studies: tuple[str, ...] = study_option,
    language: bool = flag(help="List the operators of the rule language instead."),
    trust_files: tuple[Path, ...] = trust_option,
    as_json: bool = json_option,
) -> None:
    """Explain RULES: the registered text, each criterion with its number, and the rows behind it.

    \b
    Examples:
      toolkit explain H2a
      toolkit explain P13 --json
      toolkit explain --language
    """
    from toolkit.decisions.case import explain as explain_rule

    if bool(rules) == language:
        raise UsageError("name the rules to explain, or --language", remedy="toolkit explain H2a")
    if language:
        _explain_language(as_json=as_json)
        return
    cases = load_cases(studies, rules=rules, trust_files=trust_files)
    asked = rules_asked(cases, rules, everywhere=bool(studies))
    explained = [(case, explain_rule(case, rule)) for case, rule in asked]
    if as_json:
        output.print_json([e for _, e in explained])
    else:
        for case, e in explained:
            _print(case, e)
    end(context, standings_of(e for _, e in explained), None)


def _print(case: Case, explained: Explanation) -> None:
    print_reasons(explained, seeds=True)
    more = list(_more_lines(explained))
    for line in (
        "",
        *explained.text.split("\n"),
        *([""] if more else []),
        *more,
        *_restated_lines(explained.restates),
        *_provenance_lines(case, explained),
        "",
    ):
        output.say_line(line)


def _more_lines(explained: Explanation) -> Iterator[str]:
    """Yield what belongs to a rule and decides nothing, and what its criteria are as tests."""
    decision, readings = explained, explained.readings_text or {}
    for criterion in decision.criteria:
        for procedure in criterion.procedures:
            yield f"Level      {procedure}"
    if decision.interval:
        yield f"Interval   {decision.interval.origin}: {decision.interval.method}"
    for test in decision.tests:
        yield f"Test       {test.test.id} of {test.test.endpoint}: {test.words}"
    for reading, verdict in decision.readings.items():
        binds = " (binds)" if reading == decision.binding else ""
        yield f"Reading    {reading}{binds}: {verdict}. {readings[reading]}"
    for secondary in decision.secondary:
        yield f"Secondary  {secondary.in_words}"


def _restated_lines(restated: Restated | None) -> Iterator[str]:
    if restated is None:
        return
    what = "The rule as frozen restates" if restated.of_frozen_rule else "Restates"
    yield ""
    yield f"{what} {restated.document}, SHA-256 {restated.sha256}"
    if restated.remedy:
        yield f"  Its words are not here: {restated.remedy}."
    for part in restated.spans:
        first, last = part.lines
        lines = f"lines {first} to {last}" if last > first else f"line {first}"
        yield f"  {part.name}, {lines}"
        yield from (f"    | {line}" for line in (part.text or "").splitlines() if line)


def _provenance_lines(case: Case, explained: Explanation) -> Iterator[str]:
    """Yield where a verdict comes from: formulas, rows, deviations, amendments, files and their digests."""
    decision, study = explained, case.study
    if explained.statistics:
        yield from ("", "Statistics, computed exactly from the endpoints below")
    for statistic in explained.statistics:
        yield from (f"  {statistic.id}: {statistic.title}", f"    {statistic.formula}")
    yield ""
    yield f"Rows (paste into toolkit sql --study {study.origin.pinned if study.origin else study.name})"
    for endpoint in explained.endpoints:
        yield from (f"  {endpoint.id}: {endpoint.title}", f"    {endpoint.rows}")
    for deviation in explained.deviations:
        yield from ("", f"{deviation.id} {deviation.title}: {deviation.text}")
    if added := explained.addition:
        yield ""
        yield f"Origin     added by amendment {added.id} ({added.dated}), what had been seen: {added.seen}"
    named = decision.amendment.id if decision.amendment else ""
    amendment = next((each for each in case.registration.amendments if each.id == named), None)
    if amendment:
        change = case.book.changes[decision.rule]
        yield from ("", f"Amendment  {amendment.id} {change.relation} this rule. {amendment.reason}")
        if change.relation != "adds":
            yield f"           What had been seen: {amendment.seen}"
            yield f"{'As frozen' if change.frozen else 'As added '}  {change.first.text}"
    yield ""
    yield f"Rule       {case.registration.folder / (amendment.file if amendment else 'rules.toml')}"
    yield f"Frozen     {decision.registration.name} {decision.registration.sha256}"
    if study.origin:
        yield f"Hub        {study.origin.pinned}, asked for as {study.origin.revision}"
    for register in decision.registers:
        hashed = register.sha256 or f"{len(register.files)} files, each hashed when it was read"
        yield f"Register   {register.config} {hashed}"


def _explain_language(*, as_json: bool) -> None:
    from toolkit.decisions.case import Language, Operator
    from toolkit.rules.endpoints import METHODS_SAY, OVER_STEPS_SAY
    from toolkit.rules.expressions import ARITHMETIC, COMPARISONS, DECLARED, OPERATORS

    if as_json:
        operators = {
            name: Operator(tuple(k.value for k in o.takes), o.gives.value, o.meaning)
            for name, o in OPERATORS.items()
        }
        output.print_json(Language(operators, COMPARISONS, ARITHMETIC, OVER_STEPS_SAY, DECLARED, METHODS_SAY))
        return
    truths = "true or false, or a series of them"
    output.print_table(
        ("operator", "takes", "gives", "meaning"),
        [
            *(
                (
                    name,
                    ", ".join(k.value for k in o.takes) + (", …" if o.many else ""),
                    o.gives.value,
                    o.meaning,
                )
                for name, o in OPERATORS.items()
            ),
            (" ".join(COMPARISONS), "numbers or series", truths, "exact comparison"),
            (" ".join(ARITHMETIC), "numbers or series", "a number, or a series", "exact arithmetic"),
        ],
        "The rule language",
        dropped=("takes", "gives"),
    )
    for title, heading, meaning, said in (
        (
            "What tests and formulas name",
            "table",
            "what it declares",
            {f"[{n}]": m for n, m in DECLARED.items()},
        ),
        ("Endpoints over several steps", "over_steps", "one number of several steps", OVER_STEPS_SAY),
        ("Intervals", "method", "what it does, and when its level holds", METHODS_SAY),
    ):
        output.say_line("")
        output.print_table((heading, meaning), list(said.items()), title)


require_option = click.option(
    "--require",
    "least",
    type=click.Choice(("public", "demonstration")),
    help="Exit with 1 if a registration has a lower standing; meant for CI.",
)


def standings_of(decisions: Iterable[Decision]) -> dict[str, Standing]:
    """Return what registrations stand on, by name: of several studies the least."""
    from toolkit.prereg.verification import rank

    found: dict[str, Standing] = {}
    for decision in decisions:
        name = decision.registration.name
        found[name] = min(found.get(name, decision.standing), decision.standing, key=rank)
    return found


def end(context: click.Context, standings: Mapping[str, Standing], least: str | None) -> None:
    """End with exit code 1 where a registration failed, or stands on less than is required.

    Called when everything is printed: a verdict is shown as what it is.
    """
    from toolkit.prereg.verification import require

    try:
        require(standings, least)
    except VerificationError as error:
        output.print_error(error)
        context.exit(error.exit_code)
