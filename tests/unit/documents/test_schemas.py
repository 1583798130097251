"""The schemas of what commands print: made of the types, and sharp."""

import json
from copy import deepcopy
from typing import Any

import pytest

from tests import printed
from tests.conftest import Toolkit, run
from toolkit.documents.outputs import DIALECT, ERROR, OUTPUTS, json_schema


def test_a_schema_is_one_of_the_dialect_that_it_names() -> None:
    for name in OUTPUTS:
        assert printed.validator(name).META_SCHEMA["$id"] == DIALECT


def objects(name: str) -> list[Any]:
    """Return the objects of a document: those defined by name, and the whole."""
    made = json_schema(name)
    return [made, *made.get("$defs", {}).values()]


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_key_and_every_object_says_what_it_is(name: str) -> None:
    unsaid = [
        key
        for each in objects(name)
        for key, value in each.get("properties", {}).items()
        if "description" not in value and "$ref" not in json.dumps(value)
    ]
    assert unsaid == []
    assert all(each["description"] for each in objects(name) if "properties" in each)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_object_with_keys_is_closed(name: str) -> None:
    assert all(each["additionalProperties"] is False for each in objects(name) if "properties" in each)


@pytest.fixture(scope="module")
def decided() -> Any:
    return run("decide", "H2a", "--study", "published", "--json").json()


@pytest.mark.parametrize(
    ("defect", "says"),
    [
        (lambda d: d[0].pop("verdict"), r"at \$\[0\]: 'verdict' is a required property"),
        (lambda d: d[0].update(new=1), r"at \$\[0\]: .*'new' was unexpected"),
        (lambda d: d[0]["criteria"][0].update(holds="yes"), r"criteria\[0\].holds: 'yes' is not valid"),
        (lambda d: d[0].update(evidence="strong"), r"evidence: 'strong' is not one of"),
    ],
    ids=["a key removed", "an unknown key", "a wrong type", "an unknown word"],
)
def test_a_document_that_says_something_else_is_refused(decided: Any, defect: Any, says: str) -> None:
    document = deepcopy(decided)
    printed.check("decide", document)
    defect(document)
    with pytest.raises(AssertionError, match=says):
        printed.check("decide", document)


def test_every_document_of_a_test_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, document: Any) -> None:
        raise AssertionError(f"{name} was examined")

    monkeypatch.setattr(printed, "check", refuse)
    for arguments, name in (
        (("theory", "spurious", "--flip-rate", "0.1", "--json"), "theory spurious"),
        (("decide", "H99", "--json"), ERROR),
    ):
        with pytest.raises(AssertionError, match=f"{name} was examined"):
            run(*arguments)


def test_the_command_prints_the_schema_of_an_output(toolkit: Toolkit) -> None:
    assert "verify-prereg" in toolkit("schema", "--json").json()
    shown = toolkit("schema", "decide")
    assert json.loads(shown.out) == toolkit("schema", "decide", "--json").json()
    assert json.loads(shown.out)["title"] == "toolkit decide --json"
    toolkit("schema", "nothing").refused(2, "nothing", "verify-prereg")
