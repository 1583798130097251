"""A server of the Model Context Protocol, started as a subprocess: lines to it, and answers by identifier.

Everything that happens is put into one queue of events, which its user works through.
"""

import asyncio
import contextlib
import io
import json
import logging
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import toolkit
from toolkit.errors import DamagedError, IncompleteError
from toolkit.noise.mcp.lines import LONGEST_LINE, line_of, parse, pump, refusal

Message = dict[str, Any]
Answered = Callable[[bytes, Message], None]
"""Takes an answer, as the line that was read and as its message."""

GRACE_S = 2.0
"""How long a server whose input has ended may take to leave."""
MOST_PAGES = 1000
BUFFER = 1 << 16
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
TIMED_OUT, INTERNAL, UNKNOWN_METHOD = -32001, -32603, -32601
GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "toolkit", "version": toolkit.__version__},
}


class Server:
    """A running server; `heard` takes its requests and notifications, which are else answered by an error."""

    def __init__(self, command: Sequence[str], timeout: float, heard: Answered | None = None) -> None:
        self.name = Path(command[0]).name
        self.events: asyncio.Queue[Callable[[], object]] = asyncio.Queue()
        self.has_ended = False
        self._timeout = timeout
        self._heard = heard or self._decline
        self.waiting: dict[str, tuple[Any, Answered, asyncio.TimerHandle]] = {}
        self._forgotten: set[str] = set()
        self._complained: set[str] = set()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            # In a group of its own: what it starts is ended with it, and an interrupt is ours to answer.
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise IncompleteError(
                "the server cannot be started", found=getattr(error, "strerror", error), where=command[0]
            ) from None
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        output = io.BufferedReader(self._process.stdout, BUFFER)  # type: ignore[type-var]
        pump(lambda: output, lambda line: self.events.put_nowait(partial(self._read, line)))
        threading.Thread(target=self._write, daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line."""
        self._outbox.put(line if line.endswith(b"\n") else line + b"\n")

    def ask(self, line: bytes, identifier: Any, answered: Answered) -> None:
        """Send a request; an error that says why is the answer where the server gives none."""
        timer = asyncio.get_running_loop().call_later(
            self._timeout, self.events.put_nowait, partial(self._late, identifier)
        )
        self.waiting[_key(identifier)] = identifier, answered, timer
        self._forgotten.discard(_key(identifier))
        self.send(line)

    async def request(self, method: str, params: Message) -> Message:
        """Return what the server answers to a request, working through what happens meanwhile."""
        answers: list[Message] = []
        sent = {"jsonrpc": "2.0", "id": f"toolkit:{method}", "method": method, "params": params}
        self.ask(line_of(sent), sent["id"], lambda _, message: answers.append(message))
        while not answers and not self.has_ended:
            (await self.events.get())()
        lost = self.has_ended or answers[0].get("error", {}).get("code") == TIMED_OUT
        if lost:
            found = answers[0]["error"]["message"] if answers else self.ending()
            raise IncompleteError(f"the server does not answer {method}", found=found, where=self.name)
        return answers[0]

    async def greet(self) -> Message:
        """Open a session and return what the server says of itself."""
        answer = await self.request("initialize", GREETING)
        if type(answer.get("result")) is not dict:
            raise DamagedError("the server refuses to be initialized", where=self.name)
        self.send(line_of({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return info_of(answer)

    async def tools(self) -> list[Message]:
        """Return the tools that the server lists."""
        found: list[Message] = []
        params: Message = {}
        for _ in range(MOST_PAGES):
            listed, cursor = page_of(await self.request("tools/list", params))
            found += listed
            if cursor is None:
                break
            params = {"cursor": cursor}
        return found

    def is_asked(self, identifier: Any) -> bool:
        """Say whether a request with this identifier waits for its answer."""
        return _key(identifier) in self.waiting

    def forget(self, identifier: Any) -> None:
        """Expect no answer any more; one that comes is dropped."""
        _, _, timer = self.waiting.pop(_key(identifier), (None, None, None))
        if timer is not None:
            timer.cancel()
            self._forgotten.add(_key(identifier))

    def fail_all(self, why: str) -> None:
        """Answer every request that waits by an error."""
        for identifier in [waiting[0] for waiting in self.waiting.values()]:
            self._fail(identifier, INTERNAL, why)

    def ending(self) -> str:
        """Say how the server ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(GRACE_S)
            return f"the server ended (exit status {status})"
        return "the server closed its output"

    def close(self) -> None:
        """End the server's input once everything is sent."""
        self._outbox.put(None)

    def stop(self) -> None:
        """End the server, and what it has started."""
        self.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)

    def _write(self) -> None:
        stream = self._process.stdin
        # A server that has left is noticed where its output ends.
        with contextlib.suppress(OSError):
            while stream is not None and (line := self._outbox.get()) is not None:
                left = memoryview(line)
                while left:
                    left = left[stream.write(left) :]
        if stream is not None:
            stream.close()

    def _read(self, line: bytes) -> None:
        if not line:
            self.has_ended = True
            if self.waiting:
                self.fail_all(self.ending())
            return
        if not line.strip():
            return
        try:
            message = parse(line)
        except (ValueError, RecursionError):
            size = LONGEST_LINE >> 20
            self._complain(f"wrote a line that is no message in JSON, or is longer than {size} MiB", line)
            return
        if "method" in message:
            self._heard(line, message)
        elif "id" not in message or not message.keys() & {"result", "error"}:
            self._complain("wrote a line that is not JSON-RPC 2.0", line)
        elif (key := _key(message["id"])) in self.waiting:
            _, answered, timer = self.waiting.pop(key)
            timer.cancel()
            answered(line, message)
        elif key not in self._forgotten:
            self._complain("answered what was not asked", line)

    def _late(self, identifier: Any) -> None:
        if self.is_asked(identifier):
            cancelled = {"requestId": identifier, "reason": "no answer in time"}
            self.send(line_of({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}))
            also = "".join(f"; it {complaint}" for complaint in sorted(self._complained))
            self._fail(identifier, TIMED_OUT, f"the server gave no answer in {self._timeout:g} s{also}")

    def _fail(self, identifier: Any, code: int, why: str) -> None:
        _, answered, _ = self.waiting[_key(identifier)]
        self.forget(identifier)
        message = refusal(identifier, code, why)
        answered(line_of(message), message)

    def _decline(self, _: bytes, message: Message) -> None:
        if "id" in message:
            self.send(line_of(refusal(message["id"], UNKNOWN_METHOD, "this client offers nothing")))

    def _complain(self, complaint: str, line: bytes) -> None:
        if complaint not in self._complained:
            self._complained.add(complaint)
            start = line[:80].decode(errors="replace").strip()
            logging.getLogger(__name__).warning(
                "the server %s; such lines are dropped, the first begins: %s", complaint, start
            )


def page_of(message: Message) -> tuple[list[Message], Any]:
    """Return the tools on a page of a list, and the cursor of the next one; None after the last."""
    result = message.get("result")
    listed = result.get("tools") if type(result) is dict else None
    tools = listed if type(listed) is list else []
    named = [tool for tool in tools if type(tool) is dict and type(tool.get("name")) is str]
    return named, result.get("nextCursor") if type(result) is dict else None


def info_of(message: Message) -> Message:
    """Return what a server says of itself in an answer; nothing where it does not."""
    result = message.get("result")
    said = result if type(result) is dict else {}
    meta = said.get("_meta")
    info = said.get("serverInfo") or (meta if type(meta) is dict else {}).get(SERVER_INFO)
    return info if type(info) is dict else {}


def _key(identifier: Any) -> str:
    # In JSON 1 and "1" are two identifiers, and so they are here.
    return json.dumps(identifier)
