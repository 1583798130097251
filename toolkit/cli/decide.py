"""`toolkit decide`: execute registered rules on registers; `toolkit explain`: what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit import api
from toolkit.cli import output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.standing import require_option
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from toolkit.decisions.case import Case
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
    decisions = api.decide(rules, studies, trust_files=trust_files)
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
                _verdict(decision),
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


def _verdict(decision: Decision) -> Text:
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


@click.command()
@click.argument("rules", nargs=-1)
@output.study_option
@click.option("--language", is_flag=True, help="List the operators of the rule language instead.")
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Estimate by a mixed-effects model, too; it changes no verdict.",
)
@trust_option
@output.json_option
@click.pass_context
def explain(
    context: click.Context,
    *,
    rules: tuple[str, ...],
    studies: tuple[str, ...],
    language: bool,
    sensitivity: bool,
    trust_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Explain RULES: the registered text, each criterion with its number, and the rows behind it.

    \b
    Examples:
      toolkit explain H2a
      toolkit explain P13 --json
      toolkit explain H2a --study embedded --sensitivity
      toolkit explain --language
    """
    if bool(rules) == language:
        raise UsageError("name the rules to explain, or --language", remedy="toolkit explain H2a")
    if language:
        _explain_language(as_json=as_json)
        return
    cases = api.load_cases(studies, trust_files=trust_files)
    asked = api.rules_asked(cases, rules, everywhere=bool(studies))
    explanations = [api.explain(case, rule) for case, rule in asked]
    if sensitivity:
        from toolkit.study.power.mixed import mixed_effects

        for (case, rule), shown in zip(asked, explanations, strict=True):
            shown["sensitivity"] = mixed_effects(case.book, case.engine, rule).as_dict()
    if as_json:
        output.print_json(explanations)
    else:
        out = output.console()
        for (case, _), shown in zip(asked, explanations, strict=True):
            _print(out, case, shown)
    standing.end(context, standing.standings_of(case.decide(rule) for case, rule in asked), None)


def _print(out: Console, case: Case, shown: dict[str, Any]) -> None:
    named, decision = f"{shown['rule']}  {shown['title']}", case.decide(shown["rule"])
    out.print(output.headline(named, f"   study {shown['study']}: ", _verdict(decision)))
    lines = [
        standing_text(decision),
        *exploratory_text(decision),
        f"\n{shown['text']}\n",
        *_criteria_lines(shown),
        *_estimate_lines(decision, shown),
        *_restated_lines(shown),
        *_provenance_lines(case, shown),
        "",
    ]
    for line in lines:
        click.echo(output.visible_lines(line))


def _criteria_lines(shown: dict[str, Any]) -> Iterator[str]:
    for criterion in shown["criteria"]:
        holds = {True: "holds", False: "does not hold", None: "unknown"}[criterion["holds"]]
        reading = f" [reading: {criterion['reading']}]" if "reading" in criterion else ""
        yield f"  {criterion['id']}: {holds}{reading}"
        yield f"    {criterion['text']}"
        yield f"    {criterion['test']}"
        if criterion["decimal"] is not None:
            yield f"    value {_value(criterion)}   from {', '.join(criterion['basis'])}"
        for procedure in criterion.get("procedures", []):
            yield f"    {procedure}"
        for reason in criterion.get("missing", []):
            yield f"    missing: {reason}"
        for caution in criterion.get("cautions", []):
            yield f"    caution: {caution}"


def _estimate_lines(decision: Decision, shown: dict[str, Any]) -> Iterator[str]:
    from toolkit.decisions.interval import Interval

    if decision.estimate and estimate_text(decision):
        yield f"\nEstimate   {decision.estimate.title}: {estimate_text(decision)}"
    if isinstance(decision.interval, Interval):
        yield f"Interval   {interval_text(decision)}, {decision.interval.origin}: {decision.interval.method}"
        yield f"Evidence   {shown['evidence'].replace('_', ' ')}"
    if "sensitivity" in shown:
        yield f"Mixed      {shown['sensitivity']['text']}; {shown['sensitivity']['label']}"
    if decision.bounds:
        yield f"Missing    {decision.bounds.in_words}"
    for test in decision.tests:
        yield f"Test       {test.test.id} of {test.test.endpoint}: {test.words}"
    for call in decision.close_calls:
        yield f"CLOSE CALL {call}"
    for reading, verdict in shown.get("readings", {}).items():
        binds = " (binds)" if reading == shown["binding_reading"] else ""
        yield f"Reading    {reading}{binds}: {verdict}. {shown['readings_text'][reading]}"
    if "superseded" in shown:
        yield f"Superseded {shown['original_verdict']} originally. {shown['superseded']}"
    for secondary in decision.secondary:
        shown_by = ", ".join(
            f"{key}: {'censored or missing' if value is None else value}"
            for key, value in secondary.as_dict().get("by_seed", {}).items()
        )
        yield f"Secondary  {secondary.title}: {shown_by}"


def _restated_lines(shown: dict[str, Any]) -> Iterator[str]:
    restated = shown.get("restates")
    if not restated:
        return
    what = "The rule as frozen restates" if restated["of_frozen_rule"] else "Restates"
    yield f"\n{what} {restated['document']}, SHA-256 {restated['sha256']}"
    if not restated["is_at_hand"]:
        yield f"  Its words are not here: {restated['remedy']}."
    for span in restated["spans"]:
        first, last = span["lines"]
        lines = f"lines {first} to {last}" if last > first else f"line {first}"
        yield f"  {span['name']}, {lines}"
        yield from (f"    | {line}" for line in (span["text"] or "").splitlines() if line)


def _provenance_lines(case: Case, shown: dict[str, Any]) -> Iterator[str]:
    for number, statistic in enumerate(shown.get("statistics", [])):
        opened = "" if number else "\nStatistics, computed exactly from the endpoints below\n"
        yield f"{opened}  {statistic['id']}: {statistic['title']}\n    {statistic['formula']}"
    named = case.study.origin.pinned if case.study.origin else shown["study"]
    yield f"\nRows (paste into toolkit sql --study {named})"
    for endpoint in shown["endpoints"]:
        yield f"  {endpoint['id']}: {endpoint['title']}"
        yield f"    {endpoint['rows']}"
    for deviation in shown["deviations"]:
        yield f"\n{deviation['id']} {deviation['title']}: {deviation['text']}"
    amendment = next((a for a in case.registration.amendments if a.id == shown.get("amended_by")), None)
    if "addition" in shown:
        added = shown["addition"]
        origin = f"added by amendment {added['id']} ({added['dated']})"
        yield f"\nOrigin     {origin}, what had been seen: {added['seen']}"
    if amendment:
        change = case.book.changes[shown["rule"]]
        yield f"\nAmendment  {amendment.id} {change.relation} this rule. {amendment.reason}"
        if change.relation != "adds":
            yield f"           What had been seen: {amendment.seen}"
            yield f"{'As frozen' if change.frozen else 'As added '}  {change.first.text}"
    yield f"\nRule       {case.registration.folder / (amendment.file if amendment else 'rules.toml')}"
    yield f"Frozen     {shown['registration']['name']} {shown['registration']['sha256']}"
    if case.study.origin:
        yield f"Hub        {case.study.origin.pinned}, asked for as {case.study.origin.revision}"
    for register in shown["registers"]:
        hashed = register["sha256"] or f"{len(register['files'])} files, each hashed when it was read"
        yield f"Register   {register['config']} {hashed}"


def _value(criterion: dict[str, Any]) -> str:
    exact, decimal = criterion["value"], criterion["decimal"]
    if isinstance(decimal, dict):
        return ", ".join(f"{key}: {_pair(exact[key], decimal[key])}" for key in decimal)
    return _pair(exact, decimal)


def _pair(exact: str | None, decimal: float | None) -> str:
    if exact is None or decimal is None:
        return "missing"
    return f"{exact} = {decimal}" if "/" in exact else f"{decimal}"


def _explain_language(*, as_json: bool) -> None:
    from toolkit.decisions.endpoints import OVER_STEPS_SAY
    from toolkit.decisions.expressions import ARITHMETIC, COMPARISONS, DECLARED, OPERATORS
    from toolkit.decisions.methods import METHODS_SAY

    if as_json:
        operators = {
            name: {"takes": [k.value for k in o.takes], "gives": o.gives.value, "meaning": o.meaning}
            for name, o in OPERATORS.items()
        }
        document = {"operators": operators, "comparisons": COMPARISONS, "arithmetic": ARITHMETIC}
        document |= {"over_steps": OVER_STEPS_SAY, "declared": DECLARED, "interval_methods": METHODS_SAY}
        output.print_json(document)
        return
    language = output.table(("operator", "takes", "gives", "meaning"), "The rule language")
    for name, operator in OPERATORS.items():
        more = ", …" if operator.many else ""
        language.add_row(
            name, ", ".join(k.value for k in operator.takes) + more, operator.gives.value, operator.meaning
        )
    truths = "true or false, or a series of them"
    language.add_row(" ".join(COMPARISONS), "numbers or series", truths, "exact comparison")
    language.add_row(" ".join(ARITHMETIC), "numbers or series", "a number, or a series", "exact arithmetic")
    output.console().print(language)
    declared = output.table(("table", "what it declares"), "What tests and formulas name")
    for name, meaning in DECLARED.items():
        declared.add_row(f"\\[{name}]", meaning)
    output.console().print(declared)
    steps = output.table(("over_steps", "one number of several steps"), "Endpoints over several steps")
    for name, meaning in OVER_STEPS_SAY.items():
        steps.add_row(name, meaning)
    output.console().print(steps)
    methods = output.table(("method", "what it does, and when its level holds"), "Intervals")
    for name, meaning in METHODS_SAY.items():
        methods.add_row(name, meaning)
    output.console().print(methods)
