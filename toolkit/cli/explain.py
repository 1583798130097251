"""`toolkit explain`: what registered rules say, and why they came out as they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit import api
from toolkit.cli import output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.decide import estimate_text, exploratory_text, interval_text, standing_text, verdict_text
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision


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
    from toolkit.decisions import explanation

    if bool(rules) == language:
        raise UsageError("name the rules to explain, or --language", remedy="toolkit explain H2a")
    if language:
        _explain_language(as_json=as_json)
        return
    cases = api.load_cases(studies, trust_files=trust_files)
    asked = api.rules_asked(cases, rules, everywhere=bool(studies))
    explanations = [explanation.explain(case, rule).as_dict() for case, rule in asked]
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
    out.print(output.headline(named, f"   study {shown['study']}: ", verdict_text(decision)))
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
