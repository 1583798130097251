"""`toolkit explain`: what registered rules say, and why they came out as they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit import api
from toolkit.cli import offers, output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.decide import print_reasons
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision
    from toolkit.prereg.record import Amendment


@click.command()
@click.argument("rules", nargs=-1, shell_complete=offers.rules)
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
        for (case, _), shown in zip(asked, explanations, strict=True):
            _print(case, shown)
    standing.end(context, standing.standings_of(case.decide(rule) for case, rule in asked), None)


def _print(case: Case, shown: dict[str, Any]) -> None:
    print_reasons(case.decide(shown["rule"]), seeds=True)
    for line in (
        "",
        *shown["text"].split("\n"),
        "",
        *_more_lines(case.decide(shown["rule"]), shown),
        *_restated_lines(shown),
    ):
        output.say_line(line)
    _print_provenance(case, shown)
    output.say_line("")


def _more_lines(decision: Decision, shown: dict[str, Any]) -> Iterator[str]:
    """Yield what belongs to a rule and decides nothing, and what its criteria are as tests."""
    from toolkit.decisions.interval import Interval

    for criterion in shown["criteria"]:
        for procedure in criterion.get("procedures", []):
            yield f"Level      {procedure}"
    if isinstance(decision.interval, Interval):
        yield f"Interval   {decision.interval.origin}: {decision.interval.method}"
    if "sensitivity" in shown:
        yield f"Mixed      {shown['sensitivity']['text']}; {shown['sensitivity']['label']}"
    for test in decision.tests:
        yield f"Test       {test.test.id} of {test.test.endpoint}: {test.words}"
    for reading, verdict in shown.get("readings", {}).items():
        binds = " (binds)" if reading == shown["binding_reading"] else ""
        yield f"Reading    {reading}{binds}: {verdict}. {shown['readings_text'][reading]}"
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
    yield ""
    yield f"{what} {restated['document']}, SHA-256 {restated['sha256']}"
    if not restated["is_at_hand"]:
        yield f"  Its words are not here: {restated['remedy']}."
    for span in restated["spans"]:
        first, last = span["lines"]
        lines = f"lines {first} to {last}" if last > first else f"line {first}"
        yield f"  {span['name']}, {lines}"
        yield from (f"    | {line}" for line in (span["text"] or "").splitlines() if line)


def _print_provenance(case: Case, shown: dict[str, Any]) -> None:
    """Print where a verdict comes from: formulas, rows, deviations, amendments, files and their digests."""
    for number, statistic in enumerate(shown.get("statistics", [])):
        if not number:
            output.say_line("")
            output.say_line("Statistics, computed exactly from the endpoints below")
        output.say_line(f"  {statistic['id']}: {statistic['title']}")
        output.say_line(f"    {statistic['formula']}")
    output.say_line("")
    output.say_line(f"Rows (paste into toolkit sql --study {_named(case)})")
    for endpoint in shown["endpoints"]:
        output.say_line(f"  {endpoint['id']}: {endpoint['title']}")
        output.say_line(f"    {endpoint['rows']}")
    for line in _origin_lines(case, shown):
        output.say_line(line)
    amendment = _amendment(case, shown)
    output.say_line("")
    output.say_whole(
        f"Rule       {case.registration.folder / (amendment.file if amendment else 'rules.toml')}"
    )
    output.say_whole(f"Frozen     {shown['registration']['name']} {shown['registration']['sha256']}")
    if case.study.origin:
        output.say_whole(f"Hub        {case.study.origin.pinned}, asked for as {case.study.origin.revision}")
    for register in shown["registers"]:
        hashed = register["sha256"] or f"{len(register['files'])} files, each hashed when it was read"
        output.say_whole(f"Register   {register['config']} {hashed}")


def _origin_lines(case: Case, shown: dict[str, Any]) -> Iterator[str]:
    """Yield the deviations that concern a rule, and what amendments did to it."""
    for deviation in shown["deviations"]:
        yield ""
        yield f"{deviation['id']} {deviation['title']}: {deviation['text']}"
    if "addition" in shown:
        added = shown["addition"]
        origin = f"added by amendment {added['id']} ({added['dated']})"
        yield ""
        yield f"Origin     {origin}, what had been seen: {added['seen']}"
    amendment = _amendment(case, shown)
    if amendment:
        change = case.book.changes[shown["rule"]]
        yield ""
        yield f"Amendment  {amendment.id} {change.relation} this rule. {amendment.reason}"
        if change.relation != "adds":
            yield f"           What had been seen: {amendment.seen}"
            yield f"{'As frozen' if change.frozen else 'As added '}  {change.first.text}"


def _amendment(case: Case, shown: dict[str, Any]) -> Amendment | None:
    return next((a for a in case.registration.amendments if a.id == shown.get("amended_by")), None)


def _named(case: Case) -> str:
    return case.study.origin.pinned if case.study.origin else case.study.name


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
