"""Noise in front of the tools of an OpenEnv environment.

environment = Paired(FilesEnvironment(), declaration, groups)
environment.reset(step=1, task="notes", slot=0)

Whoever resets it says which rollout begins; the reward that ends an episode is what the grader reports. Tools
are reached by `step` alone: of the target's MCP session nothing is served, which would lead past the noise.
"""

import json
from typing import Any

from fastmcp.client.client import CallToolResult
from mcp.types import TextContent
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation, ListToolsAction, Tool
from openenv.core.utils import run_async_safely

from toolkit.canonical import canonical
from toolkit.noise.declaration import WAIT, Declaration
from toolkit.noise.session import StartedCall
from toolkit.noise.trainers.groups import Groups

_SECONDS = {"type": "object", "properties": {"seconds": {"type": "integer"}}, "required": ["seconds"]}
_WAIT = Tool(name=WAIT, description="Wait, after a rate limit.", input_schema=_SECONDS)


class Paired(Environment):  # type: ignore[misc]
    """An `MCPEnvironment` with noise in front of its tools; those of one server share their groups."""

    def __init__(self, target: Any, declaration: Declaration, groups: Groups) -> None:
        super().__init__()
        self._target, self._declaration, self._groups = target, declaration, groups
        self.close = target.close

    @property
    def state(self) -> Any:
        """The target's state."""
        return self._target.state

    def reset(self, *, step: int, task: str, slot: int, repeat: int = 0, **row: Any) -> Any:
        """Begin a rollout of a group; see `toolkit.noise.trainers.groups`."""
        self._rollout = self._groups.rollout(step, task, slot, repeat)
        self._session = self._rollout.session(self._declaration)
        return self._target.reset(**row)

    def step(self, action: Any, timeout_s: float | None = None, **rest: Any) -> Any:
        """Take a step."""
        return run_async_safely(self.step_async(action, timeout_s, **rest))

    async def step_async(self, action: Any, timeout_s: float | None = None, **rest: Any) -> Any:
        """Take a step; a call of a tool meets noise."""
        is_call = isinstance(action, CallToolAction)
        begun = self._session.begin(action.tool_name, action.arguments) if is_call else None
        if is_call and not isinstance(begun, StartedCall):
            return CallToolObservation(tool_name=action.tool_name, result=_result(begun))
        seen = await self._target.step_async(action, timeout_s=timeout_s, **rest)
        if isinstance(action, ListToolsAction):
            seen.tools.append(_WAIT)
        if isinstance(begun, StartedCall):
            whole = None if seen.error else _whole(seen.result)
            shown = self._session.failed(begun) if seen.error else self._session.end(begun, whole)
            seen = seen if shown is whole else seen.model_copy(update={"result": _result(shown)})
        if seen.done:
            seen.reward = self._rollout.observed(float(seen.reward or 0))
        return seen


def _whole(result: Any) -> Any:
    """Return what a tool answered: its value, or its text where it has no declared type."""
    if result.structured_content is not None:
        return result.data
    text = "".join(block.text for block in result.content if block.type == "text")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _result(shown: Any) -> Any:
    text = shown if isinstance(shown, str) else canonical(shown)
    structured = shown if isinstance(shown, dict) else {"result": shown}
    is_error = isinstance(shown, dict) and shown.keys() == {"error"}
    content = [TextContent(type="text", text=text)]
    return CallToolResult(content, structured, meta=None, data=shown, is_error=is_error)
