"""A client of the official package, directly or through the proxy."""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.conftest import CHECKOUT

SERVER = str(CHECKOUT / "tests/unit/noise/pairing/notes_server.py")
NOTES = (sys.executable, "-I", "-S", SERVER)  # without packages, it starts at once
OFFICIAL = (sys.executable, "-W", "error", SERVER, "official")
TOOLKIT = (sys.executable, "-W", "error", "-m", "toolkit")
Call = tuple[str, dict[str, Any]]
Json = dict[str, Any]


def proxy(*options: object, regime: str = "faults_p025", schedule: int = 7) -> tuple[str, ...]:
    """Return the command of a proxy, without the server's."""
    return (
        *TOOLKIT,
        "noise",
        "mcp",
        "--regime",
        regime,
        "--schedule",
        str(schedule),
        *map(str, options),
        "--",
    )


def answers(command: Iterable[str], calls: Iterable[Call], mode: Any = "auto") -> list[Json]:
    """Return what a client is answered, each as it reads it."""

    async def ask() -> list[Json]:
        program, *arguments = command
        server = StdioServerParameters(
            command=program, args=arguments, cwd=CHECKOUT, env={"PYTHONPATH": str(CHECKOUT)}
        )
        # The library would take the stderr of the moment it was first imported, which tests may have changed.
        transport = stdio_client(server, errlog=sys.__stderr__ or sys.stderr)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            await client.list_tools()
            return [await one(client, *call) for call in calls]

    async def one(client: Client, name: str, arguments: Json) -> Json:
        try:
            answer = await client.call_tool(name, arguments)
        except MCPError as error:
            return {"error": error.error.model_dump()}
        return answer.model_dump(mode="json", by_alias=True)

    return asyncio.run(ask())


def lines(path: Path) -> list[Json]:
    """Return the lines of a record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
