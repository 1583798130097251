"""A harness of verifiers that copies the file it is asked to, without a model."""

import json
from typing import Any

import verifiers.v1 as vf
from mcp import Client

__all__ = ["ScriptedHarness"]


class ScriptedHarness(vf.Harness[vf.HarnessConfig]):
    """Shows a file, and writes what it was shown."""

    SUPPORTS_MCP = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(self, *rollout: Any) -> Any:
        """Call the tools over MCP, as any harness does."""
        *_, urls, data = rollout
        [url] = urls.values()
        async with Client(url) as client:
            shown = await client.call_tool("show", {"name": data.id})
            done = await client.call_tool("put", {"name": "copy", "text": shown.content[0].text})
            waited = await client.call_tool("wait", {"seconds": 1})
        assert not any(answer.is_error for answer in (shown, done, waited))
        assert json.loads(waited.content[0].text) == {"waited": 1}
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
