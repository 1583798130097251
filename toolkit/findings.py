"""What the studies found: sentences that verdicts bear, with numbers of registers; and their cards."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes, read_text, write_all
from toolkit.registers import manifest as manifests
from toolkit.registers.arrow import Row
from toolkit.registers.cards import repository_documents
from toolkit.registers.query import ask
from toolkit.registers.row_tables import DECISIONS
from toolkit.registers.schema import RUNS, TABLES
from toolkit.rules.values import Missing, Series, Value, fixed, mean_of
from toolkit.structs import replace

FILE = "findings.toml"
PLACES = ("front", "surprise", "study", "card", "theory", "paper")
ENDS = ("level", "low", "high")
# A number by itself; H1a, C2 and 2B are names.
_DECIMALS = re.compile(r"(\+?)\.(\d+)f")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*(?!\w)")


@dataclass(frozen=True)
class Finding:
    """A sentence or two on what a study found."""

    study: str  # the study, which alone it speaks of
    text: str  # the words, with every number filled in
    rules: tuple[str, ...]  # the rules whose verdicts it says
    query: str  # the SELECT that gives its other numbers; empty where there are none
    at: tuple[str, ...]  # the places that show it, of `PLACES`
    is_exploratory: bool  # whether no rule bears it that was registered before the runs

    def refused(self, problem: str, *, expected: str, found: object) -> DamagedError:
        """Return the error for what does not fit it."""
        return DamagedError(problem, expected=expected, found=f"{found}, in {self.text!r}", where=FILE)


def read_findings(cards: Path, cases: Sequence[Case], *, holding_alone: bool = False) -> tuple[Finding, ...]:
    """Read what was found of the studies here, held against their verdicts, its numbers filled in."""
    path = cards / FILE
    if not path.is_file():
        return ()
    try:
        entries = [_entry(entry) for entry in tomllib.loads(read_text(path))["finding"]]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(
            "the findings cannot be read",
            expected="[[finding]] with study, text, at (of " + ", ".join(PLACES) + "), verdicts or a query",
            found=str(error),
            where=path,
        ) from None
    by_study = {case.study.name: case for case in cases}
    found = []
    for entry, verdicts in ((entry, said) for entry, said in entries if entry.study in by_study):
        try:
            found.append(_check(entry, verdicts, by_study[entry.study]))
        except DamagedError:
            if not holding_alone:
                raise
    return tuple(found)


def at(findings: Sequence[Finding], place: str, study: str = "") -> tuple[Finding, ...]:
    """Return the findings of a place; of one study where it is named."""
    return tuple(one for one in findings if place in one.at and study in ("", one.study))


def card_text(findings: Sequence[Finding], study: str) -> str:
    """Return a study's findings as its dataset card lists them, in Markdown."""
    return "\n".join(f"- {one.text} {_borne(one)}" for one in at(findings, "card", study))


def _borne(finding: Finding) -> str:
    rules = f"rule {finding.rules[0]}" if len(finding.rules) == 1 else f"rules {', '.join(finding.rules)}"
    told = ["exploratory"] if finding.is_exploratory else []
    return f"({'; '.join([*told, *([rules] if finding.rules else [])])})"


def _entry(entry: Mapping[str, Any]) -> tuple[Finding, dict[str, str]]:
    """Return a finding, its numbers not filled in yet, and the verdict that it says of each rule."""
    unknown = set(entry) - {"study", "text", "verdicts", "query", "at"}
    study, text = str(entry["study"]), " ".join(entry["text"].split())
    verdicts, query = dict(entry.get("verdicts", {})), str(entry.get("query", "")).strip()
    made = Finding(study, text, tuple(verdicts), query, tuple(entry["at"]), is_exploratory=not verdicts)
    if unknown or not made.at or not set(made.at) <= set(PLACES):
        raise ValueError(f"keys {sorted(unknown)}, places {made.at}, in {text!r}")
    if not verdicts and not query:
        raise ValueError(f"neither verdicts nor a query, in {text!r}")
    return made, verdicts


def _check(entry: Finding, verdicts: Mapping[str, str], case: Case) -> Finding:
    decisions = {rule: _reached(entry, case, rule, verdicts[rule]) for rule in verdicts}
    value = partial(_value, case, decisions, _answers(entry, case))
    exploratory = not decisions or any(decision.is_exploratory for decision in decisions.values())
    text = "".join(_filled(entry, value))
    return replace(entry, text=text, is_exploratory=exploratory)


def _reached(entry: Finding, case: Case, rule: str, said: str) -> Decision:
    """Return the decision on a rule, whose verdict is the one that a finding says."""
    if rule not in case.book.rules:
        raise entry.refused(
            "a finding names a rule that its study lacks", expected=", ".join(case.book.rules), found=rule
        )
    decision = case.decide(rule)
    if decision.verdict != said:
        raise entry.refused(
            "a finding says another verdict than the rule reaches",
            expected=f"{entry.study}/{rule} {decision.verdict}",
            found=said,
        )
    return decision


def _answers(entry: Finding, case: Case) -> dict[str, Any]:
    """Return what the query of a finding gives, by column."""
    if not entry.query:
        return {}
    try:
        answer = ask(case.study, entry.query)
    except UsageError as error:
        raise entry.refused("a finding's query is refused", expected="a SELECT", found=error.found) from None
    if len(answer.rows) != 1:
        raise entry.refused("a finding's query gives no single row", expected="1 row", found=len(answer.rows))
    return dict(zip(answer.columns, answer.rows[0], strict=True))


def _filled(entry: Finding, value: Callable[[str], Any]) -> Iterator[str]:
    """Yield the parts of a text with its numbers filled in."""
    for words, name, form, _ in Formatter().parse(entry.text):
        typed = _NUMBER.search(words)
        if typed:
            raise entry.refused("a number stands in a finding's words", expected="{name}", found=typed[0])
        yield words
        if name is not None:
            yield _printed(entry, name, form or "", value(name))


def _printed(entry: Finding, name: str, form: str, number: Any) -> str:
    if number is None:
        raise entry.refused(
            "nothing fills a finding's placeholder",
            expected="RULE.estimate, .level, .low, .high or a criterion; a column; an endpoint or statistic",
            found=f"{{{name}}}",
        )
    try:
        exactly = _DECIMALS.fullmatch(form) if isinstance(number, Fraction) else None
        if exactly:
            return fixed(number, int(exactly[2]), signed=bool(exactly[1]))
        return format(float(number) if isinstance(number, Fraction) else number, form)
    except ValueError as error:
        raise entry.refused(
            "a number does not fit its placeholder", expected=f"{{{name}:{form}}}", found=error
        ) from None


def _value(case: Case, decisions: Mapping[str, Decision], asked: Mapping[str, Any], name: str) -> Any:
    """Return the number that a placeholder names; None where there is none."""
    if name in asked:
        return asked[name]
    rule, _, part = name.partition(".")
    value: Any = None
    if rule in decisions:
        value = _part(decisions[rule], part)
    elif name in case.book.statistics or name in case.book.endpoints:
        value = case.engine.value(name)
    value = mean_of(value) if isinstance(value, Series) else value
    return None if isinstance(value, Missing | bool) else value


def _part(decision: Decision, part: str) -> Value | None:
    if part == "estimate":
        return decision.estimate.mean if decision.estimate else None
    if part in ENDS:
        end: Fraction | None = getattr(decision.interval, part, None)
        return end
    return next((criterion.value for criterion in decision.criteria if criterion.id == part), None)


def card_documents(case: Case, cards: Path) -> dict[str, bytes]:
    """Return the documents of a study's repository, by name, as their source and the registers give them."""
    study, manifest = case.study, case.study.manifest
    if not study.has(DECISIONS.name):
        raise UsageError(
            "the card is built with the registers, which hold no decisions",
            found=study.name,
            remedy=f"toolkit registers build {study.name}, or import it again",
        )
    stored = {row["rule"]: row for row in study.rows(DECISIONS.name)}
    return repository_documents(
        read_text(cards / f"{study.name}.md"),
        {
            name: {
                file: read_bytes(path, LARGEST_ROWS)
                for file, path in zip(manifest.tables[name].files, study.paths(name), strict=True)
            }
            for name in TABLES
            if study.has(name)
        },
        registration=manifest.registration,
        rows={
            "runs": list[Row](study.rows(RUNS.name)),
            "decisions": [{**stored[made.rule], "title": made.title} for made in case.binding],
        },
        words=manifest.words,
        standing=str(case.standing),
        findings=card_text(read_findings(cards, [case]), study.name),
    )


def check_card(case: Case, documents: Mapping[str, bytes]) -> None:
    """Check that a study's documents are those given."""
    entries = case.study.manifest.files
    differing = [n for n, made in documents.items() if n not in entries or entries[n].sha256 != _sha256(made)]
    if differing:
        raise VerificationError(
            "the study's card is not what its source and the registers give",
            found=", ".join(differing),
            where=case.study.folder,
            remedy=f"toolkit registers card {case.study.name}",
        )


def write_card(case: Case, documents: Mapping[str, bytes]) -> manifests.Manifest:
    """Write a study's documents, and the manifest that names them; rows and their hashes stay."""
    folder, manifest = case.study.folder, case.study.manifest
    entries = {name: manifests.FileEntry(_sha256(made), len(made)) for name, made in documents.items()}
    made = replace(manifest, files=dict(sorted((manifest.files | entries).items())))
    write_all(folder, documents)
    manifests.write_manifest(folder, made)
    return made


def _sha256(content: bytes) -> str:
    return sha256(content).hexdigest()
