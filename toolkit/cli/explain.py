"""`toolkit explain`: a rule in words, each criterion with its number, and where the rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit import api
from toolkit.cli.decide import estimate_text, interval_text
from toolkit.cli.output import console, headline, json_option, marked, print_json, study_option
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision


@click.command()
@click.argument("rules", nargs=-1)
@study_option
@click.option("--language", is_flag=True, help="List the operators of the rule language instead.")
@json_option
def explain(*, rules: tuple[str, ...], studies: tuple[str, ...], language: bool, as_json: bool) -> None:
    """Explain RULES: the registered text, each criterion with its number, and the rows behind it.

    \b
    Examples:
      toolkit explain H2a
      toolkit explain P13 --json
      toolkit explain --language
    """
    if bool(rules) == language:
        raise UsageError("name the rules to explain, or --language", remedy="toolkit explain H2a")
    if language:
        _explain_language(as_json=as_json)
        return
    asked = api.rules_asked(api.load_cases(studies), rules, everywhere=bool(studies))
    explanations = [api.explain(case, rule) for case, rule in asked]
    if as_json:
        print_json(explanations)
        return
    out = console()
    for (case, _), shown in zip(asked, explanations, strict=True):
        _print(out, case, shown)


def _print(out: Console, case: Case, shown: dict[str, Any]) -> None:
    named = f"{shown['rule']}  {shown['title']}"
    out.print(headline(named, f"   study {shown['study']}: ", marked(shown["verdict"])))
    lines = [
        f"\n{shown['text']}\n",
        *_criteria_lines(shown),
        *_estimate_lines(case.engine.decide(shown["rule"]), shown),
        *_provenance_lines(case, shown),
        "",
    ]
    for line in lines:
        out.print(line, soft_wrap=True, highlight=False, markup=False)


def _criteria_lines(shown: dict[str, Any]) -> Iterator[str]:
    for criterion in shown["criteria"]:
        holds = {True: "holds", False: "does not hold", None: "unknown"}[criterion["holds"]]
        reading = f" [reading: {criterion['reading']}]" if "reading" in criterion else ""
        yield f"  {criterion['id']}: {holds}{reading}"
        yield f"    {criterion['text']}"
        yield f"    {criterion['test']}"
        if criterion["decimal"] is not None:
            yield f"    value {_value(criterion)}   from {', '.join(criterion['basis'])}"
        for reason in criterion.get("missing", []):
            yield f"    missing: {reason}"


def _estimate_lines(decision: Decision, shown: dict[str, Any]) -> Iterator[str]:
    from toolkit.decisions.interval import Interval

    if decision.estimate and estimate_text(decision):
        yield f"\nEstimate   {decision.estimate.title}: {estimate_text(decision)}"
    if isinstance(decision.interval, Interval):
        yield f"Interval   {interval_text(decision)}, {decision.interval.origin}: {decision.interval.method}"
        yield f"Evidence   {shown['evidence'].replace('_', ' ')}"
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


def _provenance_lines(case: Case, shown: dict[str, Any]) -> Iterator[str]:
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
        yield f"Register   {register['config']} {register['sha256']}"


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
    from toolkit.decisions.expressions import ARITHMETIC, COMPARISONS, OPERATORS

    if as_json:
        operators = {
            name: {"takes": [k.value for k in o.takes], "gives": o.gives.value, "meaning": o.meaning}
            for name, o in OPERATORS.items()
        }
        print_json({"operators": operators, "comparisons": COMPARISONS, "arithmetic": ARITHMETIC})
        return
    from rich.table import Table

    table = Table(title="The rule language", title_justify="left", title_style="bold")
    for column in ("operator", "takes", "gives", "meaning"):
        table.add_column(column)
    for name, operator in OPERATORS.items():
        more = ", …" if operator.many else ""
        table.add_row(
            name, ", ".join(k.value for k in operator.takes) + more, operator.gives.value, operator.meaning
        )
    truths = "true or false, or a series of them"
    table.add_row(" ".join(COMPARISONS), "numbers or series", truths, "exact comparison")
    table.add_row(" ".join(ARITHMETIC), "numbers or series", "a number, or a series", "exact arithmetic")
    console().print(table)
