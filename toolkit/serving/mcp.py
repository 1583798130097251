"""An episode for an agent that speaks the Model Context Protocol: JSON-RPC messages, a line each.

A call reaches the desk as it was sent, whatever it holds: what a tool takes, what a bad call costs and how it
is answered is for the desk to say. So the library sees every call wrapped in one that it has no reason to
refuse, and lines are read here: the library's own reader leaves a line that it cannot read unanswered.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import toolkit
from toolkit.backoffice.schemas import json_schema
from toolkit.backoffice.tools import TOOLS
from toolkit.episodes.desk import Desk
from toolkit.errors import IncompleteError
from toolkit.files import write_text

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage
    from mcp.types.jsonrpc import JSONRPCMessage

PROMPT = "task"
LONGEST_NUMBER = 300
MOST_BRACKETS = 500


def serve(desk: Desk, record: Path | None = None) -> None:
    """Serve an episode on stdin and stdout until the client leaves.

    Args:
        desk: the episode; it keeps its calls if they are to stand in the record.
        record: where to write the graded episode, however serving ends.

    Raises:
        IncompleteError: the package `mcp` is not installed, or the record cannot be written.
    """
    _check_installed()
    out = sys.stdout
    stopped = threading.Event()
    with _answered((signal.SIGTERM,), _interrupt):
        try:
            # What anything else prints while stdout belongs to the protocol goes to stderr.
            with contextlib.redirect_stdout(sys.stderr):
                asyncio.run(_serve(desk, out, stopped))
        except BaseExceptionGroup as failed:
            # The library may fail in ways of its own while it is cancelled.
            if not stopped.is_set():
                # Of stdout: its reader has left, or its disk is full.
                raise failed.exceptions[0] from None
        finally:
            if record is not None:
                _write_record(desk, record)
    if stopped.is_set():
        raise KeyboardInterrupt


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
    """Return a line's message; the name and the arguments of a call are wrapped as arguments.

    Numbers that have no finite value, or too many digits, are kept as they were written.

    Raises:
        ValueError: the line is no JSON object, or nests so deeply that it might not be written again.
    """
    if line.count(b"[") + line.count(b"{") > MOST_BRACKETS:
        raise ValueError("too many brackets")
    message = json.loads(line, parse_int=_whole, parse_float=_decimal, parse_constant=str)
    if type(message) is not dict:
        raise ValueError("a message is a JSON object")
    if message.get("method") != "tools/call":
        return message
    params = message.get("params")
    known = params if type(params) is dict else {}
    arguments = known.get("arguments")
    wrapped = {"name": known.get("name"), "arguments": {} if arguments is None else arguments}
    kept = {"_meta": known["_meta"]} if "_meta" in known else {}
    return message | {"params": kept | {"name": "call", "arguments": wrapped}}


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_NUMBER else text


def _decimal(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


async def _serve(desk: Desk, out: TextIO, stopped: threading.Event) -> None:
    import anyio
    from mcp.shared.message import SessionMessage

    lines: asyncio.Queue[bytes] = asyncio.Queue()
    threading.Thread(target=_pump, args=(asyncio.get_running_loop(), lines), daemon=True).start()
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    answered = asyncio.Semaphore(0)
    server = build_server(desk)
    with anyio.CancelScope() as scope, _cancelled_by_signals(scope, stopped):
        async with anyio.create_task_group() as group:
            group.start_soon(_receive, lines, incoming, answered, out)
            group.start_soon(_send, outgoing, answered, out)
            await server.run(received, sent, server.create_initialization_options())


def _pump(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes]) -> None:
    """Hand on the lines of stdin, and an empty one at its end, from a thread that nobody has to wait for."""
    # The loop has closed where serving was interrupted.
    with contextlib.suppress(RuntimeError):
        with contextlib.suppress(OSError), _stdin() as stream:
            for line in stream:
                loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")


def _stdin() -> BinaryIO:
    """Return stdin under a descriptor of its own; nothing to read where there is none."""
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except (AttributeError, OSError, ValueError):
        return io.BytesIO()


async def _receive(
    lines: asyncio.Queue[bytes],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    answered: asyncio.Semaphore,
    out: TextIO,
) -> None:
    """Pass on one request at a time: calls keep their order, and the last is answered though stdin ends."""
    from mcp.shared.message import SessionMessage
    from mcp.types.jsonrpc import JSONRPCRequest

    async with incoming:
        while line := await lines.get():
            if not line.strip():
                continue
            message = _checked(line)
            if isinstance(message, dict):
                _write(out, message)
                continue
            await incoming.send(SessionMessage(message))
            if isinstance(message, JSONRPCRequest):
                await answered.acquire()


def _checked(line: bytes) -> JSONRPCMessage | dict[str, Any]:
    """Return the message of a line, or the answer to a line that holds none."""
    from mcp.types import INVALID_REQUEST, PARSE_ERROR
    from mcp.types.jsonrpc import JSONRPCNotification, jsonrpc_message_adapter

    try:
        message = read_message(line)
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, "the line is no message in JSON")
    with contextlib.suppress(ValueError):
        checked = jsonrpc_message_adapter.validate_python(message, by_name=False)
        # With an identifier that none can have, the library takes a request for a notification.
        if "id" not in message or not isinstance(checked, JSONRPCNotification):
            return checked
    return _refusal(message.get("id"), INVALID_REQUEST, "the message is not JSON-RPC 2.0")


async def _send(
    outgoing: MemoryObjectReceiveStream[SessionMessage], answered: asyncio.Semaphore, out: TextIO
) -> None:
    from mcp.types.jsonrpc import JSONRPCError, JSONRPCResponse

    async with outgoing:
        async for sent in outgoing:
            _write(out, sent.message.model_dump(mode="json", by_alias=True, exclude_unset=True))
            if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
                answered.release()


def _refusal(identifier: object, code: int, message: str) -> dict[str, Any]:
    known = identifier if type(identifier) in {int, str} else None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}}


def _write(out: TextIO, document: dict[str, Any]) -> None:
    # In ASCII: whatever encoding stdout has, it holds it.
    out.write(json.dumps(document) + "\n")
    out.flush()


def _write_record(desk: Desk, record: Path) -> None:
    from toolkit.episodes.document import episode_document
    from toolkit.episodes.episode import close

    write_text(record, json.dumps(episode_document(close(desk)), indent=2) + "\n")


@contextlib.contextmanager
def _answered(numbers: Iterable[signal.Signals], answer: Callable[[int, Any], object]) -> Iterator[None]:
    """Answer signals in the main thread, the only one that may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, answer) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    """Take a request to terminate as an interrupt, which lets the record be written."""
    # Not by way of SIGINT: a shell that started this in the background has it ignored.
    raise KeyboardInterrupt


@contextlib.contextmanager
def _cancelled_by_signals(scope: CancelScope, stopped: threading.Event) -> Iterator[None]:
    """Let signals cancel what runs in a scope, at a point where it waits, and say so in `stopped`.

    An exception out of a handler would strike anywhere: amid a call, or in the library.
    """
    loop = asyncio.get_running_loop()

    def stop(*_: object) -> None:
        stopped.set()
        loop.call_soon_threadsafe(scope.cancel)

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with _answered((signal.SIGTERM,) if ignored else (signal.SIGTERM, signal.SIGINT), stop):
        yield


def _check_installed() -> None:
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        raise IncompleteError(
            "the Model Context Protocol needs the package mcp",
            found=error,
            remedy="pip install 'paired-rollouts-toolkit[mcp]'",
        ) from None
