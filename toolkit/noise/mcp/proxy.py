"""A proxy in front of a server of the Model Context Protocol: calls of its tools meet noise.

What happens to a client's line, in this order, whose numbers the code repeats:

1. What is no message is answered by an error. Everything but a list and a call of tools is passed on as it
   was written, and so is what the server says.
2. A list of tools gains one that waits, for rate limits.
3. Calls are made one at a time, in the order in which they came: so their event keys are the client's doing
   alone. Before the first, the server is asked for its tools, which have to be those that were declared.
4. A call meets what the session says; its answer is recorded, and then given.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from toolkit.canonical import canonical
from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.noise.declaration import WAIT, Declaration
from toolkit.noise.mcp import lines
from toolkit.noise.mcp.proposal import check_wait, confirmed, from_server
from toolkit.noise.mcp.record import Recorder, entry, finish, noisy_session, result_of
from toolkit.noise.mcp.server import GRACE_S, INTERNAL, MOST_PAGES, Server, info_of, page_of
from toolkit.noise.regimes import Regime
from toolkit.noise.session import Session, StartedCall

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest

Json = dict[str, Any]
LONGEST_WAIT = 86_400
OWN_LIST = "toolkit:tools"
GREETINGS = ("initialize", "server/discover")
INVALID_REQUEST, INVALID_PARAMS = -32600, -32602
WAIT_TOOL = {
    "name": WAIT,
    "description": "Wait, after a rate limit. No real time passes.",
    "inputSchema": {
        "type": "object",
        "properties": {"seconds": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT, "default": 1}},
    },
}


class Noise(NamedTuple):
    """What a proxy puts in front of a server."""

    regime: Regime  # the noise
    schedule: int  # seed of the schedule ω
    declaration: Declaration | None  # what is known of the tools; None to take what their server says of them
    record: Path | None = None  # where to write what happened; None for nowhere
    timeout: float = 60.0  # seconds that an answer of the server may take


class _Request(NamedTuple):
    line: bytes
    message: JSONRPCRequest


def serve(noise: Noise, command: Sequence[str]) -> None:
    """Stand in front of a server, on stdin and stdout, until the client leaves."""

    async def stand(out: TextIO, stopped: threading.Event) -> None:
        import anyio

        proxy = Proxy(noise, command, out)
        why = "stopped"
        try:
            with anyio.CancelScope() as scope, lines.cancelled_by_signals(scope, stopped):
                await proxy.run()
                why = "the client left"
        except ToolkitError as error:
            why = error.problem
            raise
        finally:
            proxy.close(why)

    lines.check_installed("mcp_types.jsonrpc")
    lines.run_on_stdio(stand)


class Proxy:
    """One client, one server, one episode."""

    def __init__(self, noise: Noise, command: Sequence[str], out: TextIO) -> None:
        self._noise = noise
        self._out = out
        self._server = Server(command, noise.timeout, lambda line, _: lines.write(out, line))
        self._session: Session | None = None
        self._recorder: Recorder | None = None
        self._info: dict[str, Any] = {}
        self._calls: deque[_Request] = deque()
        self._made: tuple[_Request, StartedCall] | None = None
        self._listed: list[dict[str, Any]] = []
        self._pages = 0
        self._has_left = self._is_closing = self._is_over = False

    async def run(self) -> None:
        """Serve until the client has left and everything is answered."""
        events = self._server.events
        lines.pump(lines.stdin, lambda line: events.put_nowait(partial(self._heard, line)))
        try:
            while not self._is_over:
                (await events.get())()
                self._leave()
        except ToolkitError as error:
            self._is_over = True
            self._server.fail_all(error.problem)
            for call in self._calls:
                self._refuse(call.message.id, INTERNAL, error.problem)
            raise

    def close(self, why: str) -> None:
        """End the server and the record."""
        self._server.stop()
        if self._noise.record is None:
            return
        if self._session is None and self._noise.declaration is not None:
            self._begin(self._noise.declaration)
        if self._recorder is None:
            logging.getLogger(__name__).warning("no call was made: there is no record")
        else:
            self._recorder.close(why)

    def _leave(self) -> None:
        """End where there is nothing left to do."""
        if self._server.has_ended:
            if not self._is_closing:
                raise IncompleteError(self._server.ending(), where=self._server.name)
            self._is_over = True
        elif self._has_left and not (self._is_closing or self._calls or self._server.waiting):
            self._is_closing = True
            self._server.close()
            asyncio.get_running_loop().call_later(GRACE_S, self._server.events.put_nowait, self._end)

    def _end(self) -> None:
        self._is_over = True

    def _heard(self, line: bytes) -> None:
        from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest

        if not line:
            self._has_left = True
            return
        if not line.strip():
            return
        # 1.
        message = lines.checked(line)
        if isinstance(message, dict):
            lines.write(self._out, message)
        elif isinstance(message, JSONRPCRequest):
            self._forward(_Request(line, message))
        elif not isinstance(message, JSONRPCNotification) or self._noted(message):
            self._server.send(line)

    def _forward(self, asked: _Request) -> None:
        line, message = asked
        if self._server.is_asked(message.id) or any(call.message.id == message.id for call in self._calls):
            self._refuse(message.id, INVALID_REQUEST, "another request with this identifier waits")
        elif message.method == "tools/call" and _is_call(message.params):
            self._calls.append(asked)
            self._go_on()
        else:
            special = {"tools/list": self._tools_listed, **dict.fromkeys(GREETINGS, self._greeted)}
            self._server.ask(line, message.id, special.get(message.method, self._passed))

    def _passed(self, line: bytes, _: Json) -> None:
        lines.write(self._out, line)

    def _greeted(self, line: bytes, message: Json) -> None:
        self._info = info_of(message)
        lines.write(self._out, line)

    def _tools_listed(self, line: bytes, message: Json) -> None:
        # 2.
        tools, cursor = page_of(message)
        check_wait(tools)
        if "result" not in message:
            lines.write(self._out, line)
            return
        listed = [self._shown(tool) for tool in tools] + ([WAIT_TOOL] if cursor is None else [])
        lines.write(self._out, {**message, "result": {**message["result"], "tools": listed}})

    def _shown(self, tool: Json) -> Json:
        """Return a tool without the promise of its answers' form, which a fault breaks."""
        kept = not self._noise.regime.ceiling
        return tool if kept else {name: said for name, said in tool.items() if name != "outputSchema"}

    def _go_on(self) -> None:
        while self._calls and self._made is None and not self._server.has_ended:
            # 3.
            if self._session is None:
                if self._pages == 0:
                    self._ask_for_tools(None)
                return
            self._call(self._session, self._calls.popleft())

    def _ask_for_tools(self, cursor: Any) -> None:
        self._pages += 1
        meta = (self._calls[0].message.params or {}).get("_meta") or {}
        kept = {name: value for name, value in meta.items() if name != "progressToken"}
        params = ({"_meta": kept} if kept else {}) | ({} if cursor is None else {"cursor": cursor})
        sent = {"jsonrpc": "2.0", "id": OWN_LIST, "method": "tools/list", "params": params}
        self._server.ask(lines.line_of(sent), OWN_LIST, self._learnt)

    def _learnt(self, _: bytes, message: Json) -> None:
        if "error" in message:
            raise IncompleteError("the server does not list its tools", found=message["error"])
        tools, cursor = page_of(message)
        self._listed += tools
        self._info = self._info or info_of(message)
        if cursor is not None and self._pages < MOST_PAGES and self._calls:
            self._ask_for_tools(cursor)
            return
        self._pages = 0
        check_wait(self._listed)
        if self._noise.declaration is None:
            self._begin(confirmed(self._info.get("name") or self._server.name, from_server(self._listed)))
        else:
            _check_declared(self._noise.declaration, self._listed)
            self._begin(self._noise.declaration)
        self._go_on()

    def _begin(self, declaration: Declaration) -> None:
        noise = self._noise
        self._session = noisy_session(declaration, noise.regime, noise.schedule)
        if noise.record is not None:
            server = {"command": self._server.name, "info": self._info}
            proposed = noise.declaration is None
            self._recorder = Recorder(noise.record, self._session, server, proposed=proposed)

    def _call(self, session: Session, asked: _Request) -> None:
        # 4.
        line, message = asked
        name, arguments = _sent(message.params)
        seconds = arguments.get("seconds", 1)
        if name == WAIT and not (type(seconds) is int and 0 <= seconds <= LONGEST_WAIT):
            self._refuse(message.id, INVALID_PARAMS, f"seconds is a whole number from 0 to {LONGEST_WAIT}")
            return
        begun = session.begin(name, arguments)
        if isinstance(begun, StartedCall):
            self._made = asked, begun
            self._server.ask(line, message.id, self._answered)
        else:
            self._give(message.id, {"result": result_of(begun)}, None)

    def _answered(self, line: bytes, message: Json) -> None:
        if self._made is None or self._session is None:
            return
        (asked, begun), self._made = self._made, None
        whole: Json = {name: message[name] for name in ("result", "error") if name in message}
        shown = finish(self._session, begun, whole)
        self._give(asked.message.id, shown, whole, line)
        self._go_on()

    def _give(self, identifier: Any, shown: Json, whole: Json | None, line: bytes | None = None) -> None:
        if self._recorder is not None and self._session is not None:
            self._recorder.write(entry(self._session, shown, whole))
        if line is not None and shown is whole:
            lines.write(self._out, line)
        elif identifier is not None:
            lines.write(self._out, {"jsonrpc": "2.0", "id": identifier, **shown})

    def _noted(self, message: JSONRPCNotification) -> bool:
        """Say whether the server is to be told; forget a request that the client no longer waits for."""
        if message.method != "notifications/cancelled":
            return True
        identifier = (message.params or {}).get("requestId")
        for call in self._calls:
            if call.message.id == identifier:
                self._calls.remove(call)
                return False
        self._server.forget(identifier)
        if self._made is not None and self._made[0].message.id == identifier and self._session is not None:
            (_, begun), self._made = self._made, None
            cancelled = {"error": {"code": INTERNAL, "message": "the client cancelled the call"}}
            self._give(None, finish(self._session, begun, cancelled), None)
            self._server.events.put_nowait(self._go_on)
        return True

    def _refuse(self, identifier: Any, code: int, why: str) -> None:
        lines.write(self._out, lines.refusal(identifier, code, why))


def _is_call(params: Json | None) -> bool:
    """Say whether this is a call that could be made: what is not, the server may refuse in its own words."""
    name, arguments = _sent(params)
    try:
        canonical([name, arguments]).encode()
    except UnicodeEncodeError:  # half a character has no event key
        return False
    return type(name) is str and type(arguments) is dict


def _sent(params: Json | None) -> tuple[Any, Any]:
    sent = params or {}
    arguments = sent.get("arguments")
    return sent.get("name"), {} if arguments is None else arguments


def _check_declared(declaration: Declaration, tools: Sequence[Json]) -> None:
    names = {tool["name"] for tool in tools} | {WAIT}
    if missing := sorted(declaration.tools.keys() - names):
        raise UsageError(
            f"the server does not have every declared tool: {', '.join(missing)} missing",
            found=", ".join(sorted(names - {WAIT})) or "no tools",
            remedy="declare the tools that it has; toolkit noise propose writes them down",
        )
    if unknown := sorted(names - declaration.tools.keys()):
        said = "not declared, so without noise: %s"
        logging.getLogger(__name__).warning(said, ", ".join(unknown))
