"""Decisions as in-toto Statements: a verdict about register files, which whoever wants can sign.

Source: github.com/in-toto/attestation, specification v1 (Statement, ResourceDescriptor).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.errors import DamagedError, UsageError
from toolkit.files import file_sha256, read_text
from toolkit.prereg.evidence import places
from toolkit.prereg.record import FROZEN
from toolkit.prereg.registration import Registration
from toolkit.structs import as_builtins

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
# The project has no address of its own that a URI could begin with: its package's name stands in.
PREDICATE_TYPE = "urn:paired-rollouts-toolkit:decision:v1"
TOKEN_TYPE = "application/timestamp-reply"  # noqa: S105 - RFC 3161, section 3.1

MOST_SHOWN = 300

Descriptor = dict[str, Any]


def statements(case: Case, rules: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield one Statement a rule, by file name, about register files that are each hashed now."""
    decided = case.decide_all(rules)
    subjects = _subjects(case)
    for decision in decided:
        statement = {
            "_type": STATEMENT_TYPE,
            "subject": subjects,
            "predicateType": PREDICATE_TYPE,
            "predicate": _predicate(case, decision),
        }
        text = json.dumps(statement, indent=1, ensure_ascii=False, allow_nan=False)
        yield f"{decision.rule}.statement.json", f"{text}\n".encode()


def _subjects(case: Case) -> list[Descriptor]:
    study, subjects = case.study, []
    for table in study.tables:
        study.paths(table.name)  # compares each file with the manifest
        subjects += [_descriptor(name, sha256) for name, sha256 in study.files(table.name).items()]
    return subjects


def _predicate(case: Case, decision: Decision) -> dict[str, Any]:
    registration = case.registration
    where = f"prereg/{registration.name}"
    return {
        "decision": as_builtins(decision),
        "study": {"name": case.study.name, "logicalSha256": case.study.manifest.logical_sha256},
        "registration": _descriptor(f"{where}/{FROZEN}", registration.sha256),
        "amendments": [
            _descriptor(f"{where}/{amendment.file}", amendment.sha256)
            for amendment in registration.amendments
        ],
        "tokens": [
            {
                **_descriptor(f"{where}/{name}", file_sha256(registration.folder / name)),
                "mediaType": TOKEN_TYPE,
            }
            for name in token_names(registration)
        ],
    }


def token_names(registration: Registration) -> list[str]:
    """Return which tokens over a registration and its additions are here, by their place in it."""
    names = [authority.token_place for authority in registration.record.authorities]
    for entry in registration.entries:
        if entry.id:
            names += [places(entry.id, authority)[0] for authority in registration.trust_in(entry)]
    return [name for name in names if (registration.folder / name).is_file()]


def _descriptor(name: str, sha256: str) -> Descriptor:
    return {"name": name, "digest": {"sha256": sha256}}


def read_statement(path: Path) -> dict[str, Any]:
    """Read a Statement that `statements` wrote."""
    try:
        statement: dict[str, Any] = json.loads(read_text(path))
        predicate = statement["predicate"]
        is_ours = (statement["_type"], statement["predicateType"]) == (STATEMENT_TYPE, PREDICATE_TYPE)
        named = (predicate["study"]["name"], predicate["decision"]["rule"])
        lists = (statement["subject"], predicate["amendments"], predicate["tokens"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError("the file is no statement of a decision", found=repr(error), where=path) from None
    if not is_ours:
        raise UsageError(
            "of exports only in-toto Statements of decisions are verified",
            expected=PREDICATE_TYPE,
            where=path,
        )
    if not all(isinstance(name, str) for name in named) or not all(isinstance(each, list) for each in lists):
        raise DamagedError("the statement names no study, rule or files", where=path)
    return statement


def differences(statement: Mapping[str, Any], case: Case) -> Iterator[tuple[str, str]]:
    """Yield each part of a Statement, and how it differs from what a study gives now; or nothing."""
    stated = statement["predicate"]
    ((_, content),) = statements(case, [stated["decision"]["rule"]])
    made = json.loads(content)
    parts: tuple[tuple[str, Any, Any], ...] = (
        ("register files", made["subject"], statement["subject"]),
        ("registration", _parts(made["predicate"]), _parts(stated)),
        ("tokens", made["predicate"]["tokens"], stated["tokens"]),
        ("verdict and numbers", made["predicate"]["decision"], stated["decision"]),
    )
    for part, ours, theirs in parts:
        yield part, "" if ours == theirs else f"stated {_first(theirs, ours)}, here {_first(ours, theirs)}"


def _parts(predicate: Mapping[str, Any]) -> dict[str, Any]:
    return {part: predicate.get(part) for part in ("study", "registration", "amendments")}


def _first(one: Any, other: Any) -> str:
    """Return the first item of a list or object that another does not have, as JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        one = {key: value for key, value in one.items() if other.get(key, ...) != value}
    elif isinstance(one, list) and isinstance(other, list):
        one = [item for item in one if item not in other]
    return json.dumps(one, ensure_ascii=False)[:MOST_SHOWN]
