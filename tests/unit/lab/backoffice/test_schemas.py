"""The tools' schemas: valid, true to what the tools take and answer, and complete."""

import json
import re
from typing import Any

import jsonschema
import pytest

from toolkit.lab.backoffice.parameters import CODES, Parameter, Refusal, read_arguments
from toolkit.lab.backoffice.schemas import (
    answer_schema,
    error_schema,
    json_schema,
    json_schemas,
    openapi_document,
)
from toolkit.lab.backoffice.tools import TOOLS, Tool
from toolkit.lab.episodes.agents import careless, reference
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

ALL = pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
TASKS = [load_task(f"validation:{index}") for index in range(40)]
Validator = jsonschema.Draft202012Validator


def accepts(schema: dict[str, Any], value: object) -> bool:
    return bool(Validator(schema).is_valid(value))


PARAMETERS = pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        pytest.param(tool, parameter, id=f"{tool.name}-{parameter.name}")
        for tool in TOOLS.values()
        for parameter in tool.parameters
    ],
)


@ALL
def test_an_unknown_argument_is_not_asked_for(tool: Tool) -> None:
    arguments = {parameter.name: smallest(parameter) for parameter in tool.parameters}
    assert accepts(json_schema(tool), arguments)
    assert not accepts(json_schema(tool), {**arguments, "extra": 1})


@PARAMETERS
def test_a_schema_and_its_tool_agree_on_every_limit_and_on_what_may_be_left_out(tool, parameter) -> None:
    whole = {p.name: smallest(p) for p in tool.parameters}
    lacking = {name: value for name, value in whole.items() if name != parameter.name}
    for arguments in (lacking, *({**whole, parameter.name: value} for value in around_limits(parameter))):
        assert accepts(json_schema(tool), arguments) == taken(tool, arguments), arguments


@PARAMETERS
def test_a_default_is_the_value_of_what_is_left_out(tool: Tool, parameter: Parameter) -> None:
    schema = json_schema(tool)["properties"][parameter.name]
    assert schema.get("default") == parameter.default
    assert parameter.required or accepts(schema, schema["default"])


@pytest.mark.parametrize("regime", ["clean", "faults_p025", "held_out_types"])
@pytest.mark.parametrize("agent", [reference, careless])
def test_every_answer_has_the_shape_that_is_described(regime: str, agent: Any) -> None:
    error = Validator(error_schema())
    answers = {name: Validator(answer_schema(tool)) for name, tool in TOOLS.items()}
    for task in TASKS:
        seed = evaluation_seed(task.task_id, 0)
        for call in play(task, REGIMES[regime], seed, agent, traced=True).trace or ():
            (error if "error" in call.answer else answers[call.tool]).validate(call.answer)


@pytest.mark.parametrize("field", ["order", "revision"])
def test_an_answer_of_another_shape_is_not_described(field: str) -> None:
    order = next(name for name in TASKS[0].base.records if name.startswith("O-"))
    answer = Desk(TASKS[0], REGIMES["clean"], 0).call("get_order", {"order_id": order})
    assert accepts(answer_schema(TOOLS["get_order"]), answer)
    del answer[field]
    assert not accepts(answer_schema(TOOLS["get_order"]), answer)


def test_every_error_code_is_described() -> None:
    code = error_schema()["properties"]["error"]["properties"]["code"]
    assert code["enum"] == list(CODES)
    assert all(meaning in code["description"] for meaning in CODES.values())


def test_openapi_has_a_path_for_each_of_the_thirteen_tools_and_what_version_3_1_requires() -> None:
    document = openapi_document("9.9")
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(document["info"])
    assert list(document["paths"]) == [f"/{name}" for name in TOOLS]
    assert len(TOOLS) == 13
    for name, path in zip(TOOLS, document["paths"].values(), strict=True):
        assert list(path) == ["post"]
        operation = path["post"]
        assert operation["operationId"] == name
        assert set(operation["requestBody"]["content"]) == {"application/json"}
        assert set(operation["responses"]) == {"200", "default"}
        assert all(response["description"] for response in operation["responses"].values())
    schemas = document["components"]["schemas"]
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)))
    assert references == {f"#/components/schemas/{name}" for name in schemas}
    for schema in (*schemas.values(), *json_schemas().values()):
        Validator.check_schema(schema)


def smallest(parameter: Parameter) -> str | int:
    if parameter.type == "integer":
        return parameter.minimum
    return parameter.choices[0] if parameter.choices else "x"


def around_limits(parameter: Parameter) -> list[Any]:
    """Return values on both sides of each limit; none that the tool would read as something else."""
    if parameter.type == "integer":
        low, high = parameter.minimum, parameter.maximum
        return [low - 1, low, high, high + 1, "three", [], True]
    if parameter.choices:
        return [*parameter.choices, "none of them", [], True]
    return ["", "x", "x" * parameter.max_length, "x" * (parameter.max_length + 1), [], True]


def taken(tool: Tool, arguments: dict[str, Any]) -> bool:
    try:
        read_arguments(tool.parameters, arguments)
    except Refusal:
        return False
    return True
