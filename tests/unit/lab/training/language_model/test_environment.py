"""The environment as TRL takes it: its tools, what it charges, what it reads."""

import json
from typing import Any

import pytest

from toolkit.lab.backoffice.schemas import openai_tools
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.language_model.environment import BackOffice, Dispatch
from toolkit.noise.regimes import REGIMES

ADDRESS_TASK = next(
    number for number in range(200) if "address" in load_task(f"train:{number}").prompt.lower()
)


@pytest.fixture
def environment() -> BackOffice:
    made = BackOffice()
    made.reset(task=3, regime="clean", schedule_seed=11)
    return made


def charged(environment: BackOffice) -> int:
    return environment._desk.calls  # type: ignore[union-attr]


def code(answer: str) -> str:
    return json.loads(answer)["error"]["code"]


def test_its_public_methods_are_the_tools_and_what_trl_reserves() -> None:
    public = {name for name in dir(BackOffice) if not name.startswith("_")}
    assert public == {*TOOLS, "reset", "get_reward"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_transformers_reads_its_tools_as_everybody_else_is_shown_them() -> None:
    """But for ranges and choices, which a signature does not say."""
    utilities = pytest.importorskip("transformers.utils")
    for schema in openai_tools():
        expected = schema["function"]
        found = utilities.get_json_schema(getattr(BackOffice(), expected["name"]))["function"]
        assert (found["name"], found["description"]) == (expected["name"], expected["description"])
        properties = found["parameters"]["properties"]
        assert {name: p["type"] for name, p in properties.items()} == {
            name: p["type"] for name, p in expected["parameters"]["properties"].items()
        }
        assert found["parameters"].get("required", []) == expected["parameters"].get("required", [])


def test_a_tool_is_called_by_its_method_and_a_number_that_comes_as_text_is_read(
    environment: BackOffice,
) -> None:
    assert json.loads(environment.wait(seconds=2)) == {"waited": 2}  # type: ignore[attr-defined]
    assert json.loads(environment._call("wait", {"seconds": "3"})) == {"waited": 3}
    assert charged(environment) == 2


def test_a_postal_code_that_comes_as_a_number_is_read_as_text() -> None:
    """JSON makes a number of it, whatever the tool's type says."""
    task = load_task(f"train:{ADDRESS_TASK}")
    environment = BackOffice()
    environment.reset(task=ADDRESS_TASK, regime="clean", schedule_seed=1)
    orders = []

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == "update_shipping_address":
            arguments = {**arguments, "postal_code": 94107}
            orders.append(arguments["order_id"])
        return json.loads(environment._call(tool, arguments))

    AGENTS["reference"](task.prompt, lambda tool, arguments: tool == "finish" or call(tool, arguments))
    assert '"94107"' in environment._call("get_order", {"order_id": orders[0]})


@pytest.mark.parametrize(
    ("tool", "arguments", "refused"),
    [
        ("no_such_tool", {}, "unknown_tool"),
        (None, {}, "unknown_tool"),
        (["wait"], {}, "unknown_tool"),
        ("wait", {"minutes": 1}, "invalid_arguments"),
        ("wait", {"seconds": 1, "minutes": 1}, "invalid_arguments"),
        ("wait", {}, "invalid_arguments"),
        ("wait", {"seconds": "soon"}, "invalid_arguments"),
        ("wait", {"arguments": "3"}, "invalid_arguments"),
    ],
)
def test_what_cannot_be_done_is_refused_and_charged(
    environment: BackOffice, tool: Any, arguments: dict[str, Any], refused: str
) -> None:
    assert code(environment._call(tool, arguments)) == refused
    assert charged(environment) == 1


@pytest.mark.parametrize("name", ["wait", "no_such_tool", "reset", "get_reward", "_call", "__init__"])
def test_every_name_is_looked_up_as_a_call_at_the_desk(environment: BackOffice, name: str) -> None:
    tools = Dispatch(environment)
    assert name in tools
    answer = json.loads(tools[name](seconds=1))
    assert answer == {"waited": 1} if name == "wait" else answer["error"]["code"] == "unknown_tool"
    assert charged(environment) == 1


def test_after_the_end_nothing_is_done(environment: BackOffice) -> None:
    assert json.loads(environment._call("finish", {})) == {"finished": True}
    assert code(environment._call("wait", {"seconds": 1})) == "episode_over"
    assert charged(environment) == 0


@pytest.mark.parametrize("seed", range(6))
def test_the_reward_is_the_grader_s(seed: int) -> None:
    environment = BackOffice()
    environment.reset(task=7, regime="flips_q010", schedule_seed=seed)
    task = load_task("train:7")
    expected = play(task, REGIMES["flips_q010"], seed, AGENTS["reference"])
    AGENTS["reference"](task.prompt, lambda *call: json.loads(environment._call(*call)))
    assert environment.get_reward() == expected.observed_reward
    assert environment._graded().true_success == expected.true_success


def test_an_environment_that_is_reset_starts_anew(environment: BackOffice) -> None:
    environment._call("finish", {})
    assert environment.get_reward() == 0
    environment.reset(task=3, regime="clean", schedule_seed=12, group_index=4, rollout_slot=5)
    assert json.loads(environment._call("wait", {"seconds": 1})) == {"waited": 1}
    assert environment.place == (4, 5)
    with pytest.raises(RuntimeError, match="reset"):
        BackOffice().get_reward()
