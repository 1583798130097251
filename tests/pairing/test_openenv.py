"""Environments of OpenEnv whose tools meet noise: what a caller is shown, and what is recorded."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.stack import require_openenv
from toolkit.noise.declaration import declare
from toolkit.noise.regimes import REGIMES, Mixture, Regime
from toolkit.noise.tools import Fault, Tool
from toolkit.noise.trainers.groups import Groups, read, verify

require_openenv()

from fastmcp import FastMCP  # noqa: E402 - only where it is there
from openenv.core.env_server.mcp_environment import MCPEnvironment  # noqa: E402
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction  # noqa: E402
from openenv.core.env_server.types import Action, Observation, State  # noqa: E402

from toolkit.noise.trainers.openenv import Paired  # noqa: E402

DECLARED = declare(
    "numbers", [Tool("numbers", "list", stale="recorded"), Tool("put", "write"), Tool("words", "list")]
)


class Numbers(MCPEnvironment):
    """Three numbers."""

    def __init__(self) -> None:
        self.put = 0
        server = FastMCP("numbers")
        server.tool(lambda: [1, 2, 3], name="numbers")
        server.tool(self._put, name="put")
        server.tool(self._words, name="words")
        super().__init__(server)

    @property
    def state(self) -> State:
        return State(step_count=self.put)

    def reset(self, **_: Any) -> Observation:
        return Observation()

    def _words(self) -> list[str]:
        return ["a", "b", "c"]

    def _put(self, number: int) -> str:
        if number < 0:
            raise ValueError("below zero")
        self.put += number
        return "done"

    def _step_impl(self, *_: Any, **__: Any) -> Observation:
        return Observation(done=True, reward=1.0)


def noisy(fault: Fault | None, monkeypatch: pytest.MonkeyPatch, regime: str = "clean") -> Paired:
    """Return an environment in which every call meets a fault."""
    if fault:
        monkeypatch.setitem(REGIMES, regime, Regime(regime, "", 1.0, Mixture({fault: 1})))
    environment = Paired(Numbers(), DECLARED, Groups("independent", regime, 0, 1))
    environment.reset(step=1, task="a", slot=0)
    return environment


def call(environment: Paired, tool: str, **arguments: Any) -> Any:
    return environment.step(CallToolAction(tool_name=tool, arguments=arguments))


def test_without_a_fault_everything_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    environment, plain = noisy(None, monkeypatch), Numbers()
    for tool, arguments in (
        ("numbers", {}),
        ("words", {}),
        ("put", {"number": 2}),
        ("put", {"number": -1}),
        ("none", {}),
    ):
        assert call(environment, tool, **arguments) == plain.step(
            CallToolAction(tool_name=tool, arguments=arguments)
        )
    assert environment.state.step_count == 2
    listed = environment.step(ListToolsAction())
    assert [tool.name for tool in listed.tools] == ["numbers", "put", "words", "wait"]
    assert call(environment, "wait", seconds=3).result.data == {"waited": 3}


def test_a_fault_is_shown_as_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = call(noisy("transient", monkeypatch), "put", number=2).result
    assert failed.is_error
    assert failed.data["error"]["code"] == "temporarily_unavailable"
    for tool, items in (("numbers", [1, 2, 3]), ("words", ["a", "b", "c"])):  # without and with a type
        cut = call(noisy("truncation", monkeypatch), tool).result
        assert cut.data == items[: len(cut.data)] == cut.structured_content["result"]
        assert len(cut.data) < 3
        assert json.loads(cut.content[0].text) == cut.data
    late = noisy("timeout_after_commit", monkeypatch)
    assert call(late, "put", number=2).result.data["error"]["code"] == "timeout"
    assert late.state.step_count == 2


def test_what_the_tool_refuses_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = call(noisy("timeout_after_commit", monkeypatch), "put", number=-1)
    assert "below zero" in refused.error.message


def test_it_is_stepped_within_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = noisy(None, monkeypatch)
    action = CallToolAction(tool_name="numbers", arguments={})
    assert asyncio.run(environment.step_async(action)).result.content[0].text == "[1,2,3]"


def test_the_last_reward_is_the_graders(tmp_path: Path) -> None:
    environment = Paired(
        Numbers(), DECLARED, Groups("independent", "flips_q010", 0, 40, tmp_path / "groups.jsonl")
    )
    rewards = []
    for slot in range(40):
        environment.reset(step=1, task="c", slot=slot)
        rewards.append(environment.step(Action()).reward)
    [group] = read(tmp_path / "groups.jsonl")
    assert (group.true_outcomes, group.observed_rewards) == ([1.0] * 40, rewards)
    assert 0 < rewards.count(0.0) < 20


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_the_example_plays_its_groups(design: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = CHECKOUT / "examples" / "pairing"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(examples))
    monkeypatch.setattr(sys, "argv", ["with_openenv.py", design])
    runpy.run_path(str(examples / "with_openenv.py"))
    found = verify(tmp_path / "groups.jsonl")
    assert (found.groups, found.rollouts, found.steps) == (4, 16, 2)
    groups = read(tmp_path / "groups.jsonl")
    assert all(group.exposed in (0, 4) for group in groups) == (design == "paired")
