"""An episode for an agent that speaks the Model Context Protocol: JSON-RPC messages, a line each."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import toolkit
from toolkit.files import write_text
from toolkit.lab.backoffice.schemas import json_schema
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.desk import Desk
from toolkit.noise.mcp.lines import (
    cancelled_by_signals,
    check_installed,
    checked,
    parse,
    pump,
    run_on_stdio,
    stdin,
    write,
)

if TYPE_CHECKING:
    import threading

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

PROMPT = "task"


def serve(desk: Desk, record: Path | None = None) -> None:
    """Serve an episode on stdin and stdout until the client leaves."""
    check_installed("mcp.server.lowlevel")
    try:
        run_on_stdio(lambda out, stopped: _serve(desk, out, stopped))
    finally:
        if record is not None:
            from toolkit.lab.episodes.document import episode_document
            from toolkit.lab.episodes.episode import close

            write_text(record, json.dumps(episode_document(close(desk)), indent=2) + "\n")


def build_server(desk: Desk) -> Server[Any]:
    """Return a server whose calls go to a desk; each is wrapped as `read_message` does."""
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        tools = [
            types.Tool(name=tool.name, description=tool.about, input_schema=json_schema(tool))
            for tool in TOOLS.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        sent = params.arguments or {}
        answer = desk.call(sent["name"], sent["arguments"])
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer, is_error="error" in answer)

    async def list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=PROMPT, description="What is to be done.")])

    async def get_prompt(_context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"there is one prompt: {PROMPT}")
        request = types.TextContent(type="text", text=desk.task.prompt)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=request)])

    return Server(
        "backoffice",
        version=toolkit.__version__,
        instructions=f"{desk.task.prompt}\n\nAt most {desk.task.budget} calls; finish is free.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def read_message(line: bytes) -> dict[str, Any]:
    """Return a line's message; the name and the arguments of a call are wrapped as arguments."""
    message = parse(line)
    if message.get("method") != "tools/call":
        return message
    params = message.get("params")
    known = params if type(params) is dict else {}
    arguments = known.get("arguments")
    wrapped = {"name": known.get("name"), "arguments": {} if arguments is None else arguments}
    kept = {"_meta": known["_meta"]} if "_meta" in known else {}
    return message | {"params": kept | {"name": "call", "arguments": wrapped}}


async def _serve(desk: Desk, out: TextIO, stopped: threading.Event) -> None:
    import anyio
    from mcp.shared.message import SessionMessage

    lines: asyncio.Queue[bytes] = asyncio.Queue()
    pump(stdin, lines.put_nowait)
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    answered = asyncio.Semaphore(0)
    server = build_server(desk)
    with anyio.CancelScope() as scope, cancelled_by_signals(scope, stopped):
        async with anyio.create_task_group() as group:
            group.start_soon(_receive, lines, incoming, answered, out)
            group.start_soon(_send, outgoing, answered, out)
            await server.run(received, sent, server.create_initialization_options())


async def _receive(
    lines: asyncio.Queue[bytes],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    answered: asyncio.Semaphore,
    out: TextIO,
) -> None:
    """Pass on one request at a time: calls keep their order, and the last is answered though stdin ends."""
    from mcp.shared.message import SessionMessage
    from mcp_types.jsonrpc import JSONRPCRequest

    async with incoming:
        while line := await lines.get():
            if not line.strip():
                continue
            message = checked(line, read_message)
            if isinstance(message, dict):
                write(out, message)
                continue
            await incoming.send(SessionMessage(message))
            if isinstance(message, JSONRPCRequest):
                await answered.acquire()


async def _send(
    outgoing: MemoryObjectReceiveStream[SessionMessage], answered: asyncio.Semaphore, out: TextIO
) -> None:
    from mcp_types.jsonrpc import JSONRPCError, JSONRPCResponse

    async with outgoing:
        async for sent in outgoing:
            write(out, sent.message.model_dump(mode="json", by_alias=True, exclude_unset=True))
            if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
                answered.release()
