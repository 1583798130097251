"""`toolkit explain`: what registered rules say, and why they came out as they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers, output, standing
from toolkit.cli.authorities import trust_option
from toolkit.cli.decide import print_reasons
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.decisions.case import Case, Explanation, Restated
    from toolkit.decisions.decision import Decision
    from toolkit.prereg.record import Amendment


@click.command()
@click.argument("rules", nargs=-1, shell_complete=offers.rules)
@output.study_option
@click.option("--language", is_flag=True, help="List the operators of the rule language instead.")
@trust_option
@output.json_option
@click.pass_context
def explain(
    context: click.Context,
    *,
    rules: tuple[str, ...],
    studies: tuple[str, ...],
    language: bool,
    trust_files: tuple[Path, ...],
    as_json: bool,
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
    cases = api.load_cases(studies, rules=rules, trust_files=trust_files)
    asked = api.rules_asked(cases, rules, everywhere=bool(studies))
    explained = [(case, explain_rule(case, rule)) for case, rule in asked]
    if as_json:
        output.print_json([e.as_dict() for _, e in explained])
    else:
        for case, e in explained:
            _print(case, e)
    standing.end(context, standing.standings_of(e.decision for _, e in explained), None)


def _print(case: Case, explained: Explanation) -> None:
    print_reasons(explained.decision, seeds=True)
    more = list(_more_lines(explained))
    for line in (
        "",
        *explained.registered.text.split("\n"),
        *([""] if more else []),
        *more,
        *_restated_lines(explained.restates),
    ):
        output.say_line(line)
    _print_provenance(case, explained)
    output.say_line("")


def _more_lines(explained: Explanation) -> Iterator[str]:
    """Yield what belongs to a rule and decides nothing, and what its criteria are as tests."""
    from toolkit.decisions.intervals import Interval

    decision, readings = explained.decision, explained.registered.readings
    for criterion in decision.criteria:
        for procedure in criterion.procedures:
            yield f"Level      {procedure}"
    if isinstance(decision.interval, Interval):
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
        first, last = part.span.first, part.span.last
        lines = f"lines {first} to {last}" if last > first else f"line {first}"
        yield f"  {part.name}, {lines}"
        yield from (f"    | {line}" for line in (part.text or "").splitlines() if line)


def _print_provenance(case: Case, explained: Explanation) -> None:
    """Print where a verdict comes from: formulas, rows, deviations, amendments, files and their digests."""
    for number, statistic in enumerate(explained.statistics):
        if not number:
            output.say_line("")
            output.say_line("Statistics, computed exactly from the endpoints below")
        output.say_line(f"  {statistic.id}: {statistic.title}")
        output.say_line(f"    {statistic.formula}")
    output.say_line("")
    output.say_line(f"Rows (paste into toolkit sql --study {_named(case)})")
    for endpoint in explained.endpoints:
        output.say_line(f"  {endpoint.id}: {endpoint.title}")
        output.say_line(f"    {endpoint.rows}")
    amendment = _amendment(case, explained.decision)
    for line in _origin_lines(case, explained, amendment):
        output.say_line(line)
    output.say_line("")
    output.say_line(
        f"Rule       {case.registration.folder / (amendment.file if amendment else 'rules.toml')}"
    )
    output.say_line(f"Frozen     {' '.join(explained.decision.registration)}")
    if case.study.origin:
        output.say_line(f"Hub        {case.study.origin.pinned}, asked for as {case.study.origin.revision}")
    for register in explained.decision.registers:
        hashed = register.sha256 or f"{len(register.files)} files, each hashed when it was read"
        output.say_line(f"Register   {register.config} {hashed}")


def _origin_lines(case: Case, explained: Explanation, amendment: Amendment | None) -> Iterator[str]:
    """Yield the deviations that concern a rule, and what amendments did to it."""
    for deviation in explained.deviations:
        yield ""
        yield f"{deviation.id} {deviation.title}: {deviation.text}"
    added = explained.addition
    if added:
        yield ""
        yield f"Origin     added by amendment {added.id} ({added.dated}), what had been seen: {added.seen}"
    if amendment:
        change = case.book.changes[explained.decision.rule]
        yield ""
        yield f"Amendment  {amendment.id} {change.relation} this rule. {amendment.reason}"
        if change.relation != "adds":
            yield f"           What had been seen: {amendment.seen}"
            yield f"{'As frozen' if change.frozen else 'As added '}  {change.first.text}"


def _amendment(case: Case, decision: Decision) -> Amendment | None:
    named = decision.amendment.id if decision.amendment else ""
    return next((a for a in case.registration.amendments if a.id == named), None)


def _named(case: Case) -> str:
    return case.study.origin.pinned if case.study.origin else case.study.name


def _explain_language(*, as_json: bool) -> None:
    from toolkit.rules.endpoints import METHODS_SAY, OVER_STEPS_SAY
    from toolkit.rules.expressions import ARITHMETIC, COMPARISONS, DECLARED, OPERATORS

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
