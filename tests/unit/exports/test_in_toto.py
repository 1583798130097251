"""Statements are in-toto's, about the register files, and carry the decision that is printed."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Toolkit
from tests.unit.stack import require_readers
from toolkit import cases
from toolkit.errors import DamagedError, UsageError
from toolkit.exports.formats import Export
from toolkit.places import Home
from toolkit.registers.study import Study, open_study


@pytest.fixture(scope="module")
def statements() -> dict[str, Any]:
    study = open_study(CHECKOUT / "registers" / "embedded")
    return {
        name: json.loads(raw) for name, raw in cases.export(study, Export("in-toto", rules=("H2a", "H1b")))
    }


def test_in_toto_takes_each_for_a_statement(statements: dict[str, Any]) -> None:
    """By the project's own messages and their checks."""
    require_readers()
    from google.protobuf import json_format
    from in_toto_attestation.v1 import resource_descriptor_pb2, statement_pb2
    from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
    from in_toto_attestation.v1.statement import Statement

    assert set(statements) == {"H2a.statement.json", "H1b.statement.json"}
    for statement in statements.values():
        read = json_format.ParseDict(statement, statement_pb2.Statement())
        Statement.copy_from_pb(read).validate()
        assert json_format.MessageToDict(read)["subject"] == statement["subject"]
        said = statement["predicate"]
        for part in (said["registration"], *said["amendments"], *said["tokens"]):
            descriptor = json_format.ParseDict(part, resource_descriptor_pb2.ResourceDescriptor())
            ResourceDescriptor.copy_from_pb(descriptor).validate()


def test_the_subjects_are_the_register_files(statements: dict[str, Any]) -> None:
    folder = CHECKOUT / "registers" / "embedded"
    there = {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.parquet")
    }
    for statement in statements.values():
        assert {s["name"]: s["digest"]["sha256"] for s in statement["subject"]} == there
        assert len(statement["subject"]) == len(there)


def test_the_predicate_is_the_printed_decision(statements: dict[str, Any], toolkit: Toolkit) -> None:
    (printed,) = toolkit("decide", "H2a", "--study", "embedded", "--json").json()
    statement = statements["H2a.statement.json"]
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:paired-rollouts-toolkit:decision:v1"
    assert statement["predicate"]["decision"] == printed


def test_what_it_names_of_the_registration_is_what_lies_there(statements: dict[str, Any]) -> None:
    said = statements["H2a.statement.json"]["predicate"]
    named = [said["registration"], *said["amendments"], *said["tokens"]]
    for part in named:
        assert part["digest"]["sha256"] == sha256((CHECKOUT / part["name"]).read_bytes()).hexdigest(), part
    tokens = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "prereg/embedded").rglob("*.tsr")}
    assert {part["name"] for part in said["tokens"]} == tokens
    assert said["registration"]["digest"]["sha256"] == said["decision"]["registration"]["sha256"]
    assert [part["name"] for part in said["amendments"]] == ["prereg/embedded/amendments/A1.toml"]


def test_tokens_that_are_not_here_are_not_named(published: Study) -> None:
    ((name, raw),) = cases.export(published, Export("in-toto", rules=("H2a",)))
    said = json.loads(raw)["predicate"]
    evidence = CHECKOUT / "prereg/paired-rollouts/evidence"
    here = {f"prereg/paired-rollouts/evidence/{path.name}" for path in evidence.glob("*.tsr")}
    assert name == "H2a.statement.json"
    assert {part["name"] for part in said["tokens"]} == here
    assert said["decision"]["registration"]["standing"] == ("public" if here else "incomplete")


def test_every_rule_is_stated_where_none_is_named(published: Study, home: Home) -> None:
    rules = {decision.rule for decision in cases.decide_all("published", home)}
    assert {Path(name).name.split(".")[0] for name, _ in cases.export(published, Export("in-toto"))} == rules
    with pytest.raises(UsageError):
        dict(cases.export(published, Export("in-toto", rules=("H99",))))


def test_a_changed_register_file_is_not_attested(alone: Home) -> None:
    file = alone.registers / "published/probe/train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(DamagedError, match="not the file"):
        dict(cases.export(cases.open_study("published", alone), Export("in-toto", rules=("gate2",)), alone))
