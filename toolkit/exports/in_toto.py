"""Decisions as in-toto Statements: a verdict about register files, which whoever wants can sign.

Source: github.com/in-toto/attestation, specification v1 (Statement, ResourceDescriptor).
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.files import file_sha256
from toolkit.prereg.evidence import places
from toolkit.prereg.record import FROZEN
from toolkit.prereg.registration import Registration

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
# The project has no address of its own that a URI could begin with: its package's name stands in.
PREDICATE_TYPE = "urn:paired-rollouts-toolkit:decision:v1"
TOKEN_TYPE = "application/timestamp-reply"  # noqa: S105 - RFC 3161, section 3.1

Descriptor = dict[str, Any]


def statements(case: Case, rules: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield one Statement a rule, by file name.

    Its subjects are the study's register files, each hashed now; its predicate the decision as
    `toolkit decide --json` prints it, with the frozen files, the amendments and those tokens that are here.
    """
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
        "decision": decision.as_dict(),
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
