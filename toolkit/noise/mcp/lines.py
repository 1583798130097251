"""JSON-RPC on stdin and stdout, a message a line: what a server by hand and a proxy both need.

Lines are read here because the library's own reader leaves a line that it cannot read unanswered.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from toolkit.errors import IncompleteError

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp_types.jsonrpc import JSONRPCMessage

LONGEST_NUMBER = 300
DEEPEST = 500
LONGEST_LINE = 64 * 2**20
"""Bytes of a line that is read: of a longer one nothing is kept, so that no peer can fill the memory."""

Serve = Callable[[TextIO, threading.Event], Coroutine[Any, Any, None]]
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOO_LONG = b"too long\n"


def check_installed(needs: str) -> None:
    """Refuse to go on without a module of the package `mcp`."""
    try:
        importlib.import_module(needs)
    except ImportError as error:
        raise IncompleteError(
            "the Model Context Protocol needs the package mcp",
            found=error,
            remedy="pip install 'paired-rollouts-toolkit[mcp]'",
        ) from None


def run_on_stdio(serve: Serve) -> None:
    """Run what serves on stdin and stdout; a request to terminate lets it end in order."""
    out = sys.stdout
    stopped = threading.Event()
    with _answered((signal.SIGTERM,), _interrupt):
        try:
            # What anything else prints while stdout belongs to the protocol goes to stderr.
            with contextlib.redirect_stdout(sys.stderr):
                asyncio.run(serve(out, stopped))
        except BaseExceptionGroup as failed:
            # The library may fail in ways of its own while it is cancelled.
            if not stopped.is_set():
                # Of stdout: its reader has left, or its disk is full.
                raise failed.exceptions[0] from None
    if stopped.is_set():
        raise KeyboardInterrupt


def pump(stream: Callable[[], BinaryIO], take: Callable[[bytes], object]) -> None:
    """Hand on the lines of a stream, and an empty one at its end, from a daemon thread."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        # The loop has closed where serving was interrupted.
        with contextlib.suppress(RuntimeError):
            with contextlib.suppress(OSError, ValueError), stream() as opened:
                while line := opened.readline(LONGEST_LINE):
                    is_long = len(line) == LONGEST_LINE
                    while is_long and line and not line.endswith(b"\n"):
                        line = opened.readline(LONGEST_LINE)
                    loop.call_soon_threadsafe(take, _TOO_LONG if is_long else line)
            loop.call_soon_threadsafe(take, b"")

    threading.Thread(target=read, daemon=True).start()


def stdin() -> BinaryIO:
    """Return stdin under a descriptor of its own; nothing to read where there is none."""
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except (AttributeError, OSError, ValueError):
        return io.BytesIO()


def parse(line: bytes) -> dict[str, Any]:
    """Return a line's message; numbers without a finite value, or of too many digits, are kept as written."""
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
        raise ValueError("too deep")
    message = json.loads(line, parse_int=_whole, parse_float=_decimal, parse_constant=str)
    if type(message) is not dict:
        raise ValueError("a message is a JSON object")
    return message


def checked(line: bytes, read: Callable[[bytes], dict[str, Any]] = parse) -> JSONRPCMessage | dict[str, Any]:
    """Return the message of a client's line, or the answer to a line that holds none."""
    # The package that holds the messages alone is imported in a third of the time.
    from mcp_types import INVALID_REQUEST, PARSE_ERROR
    from mcp_types.jsonrpc import JSONRPCNotification, jsonrpc_message_adapter

    try:
        message = read(line)
    except (ValueError, RecursionError):
        return refusal(None, PARSE_ERROR, "the line is no message in JSON")
    with contextlib.suppress(ValueError):
        found = jsonrpc_message_adapter.validate_python(message, by_name=False)
        # With an identifier that none can have, the library takes a request for a notification.
        if "id" not in message or not isinstance(found, JSONRPCNotification):
            return found
    return refusal(message.get("id"), INVALID_REQUEST, "the message is not JSON-RPC 2.0")


def refusal(identifier: object, code: int, message: str) -> dict[str, Any]:
    """Return the JSON-RPC error that answers a request."""
    known = identifier if type(identifier) in {int, str} else None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}}


def line_of(message: dict[str, Any]) -> bytes:
    """Return a message as a line; in ASCII, which every encoding holds."""
    return json.dumps(message).encode() + b"\n"


def write(out: TextIO, message: dict[str, Any] | bytes) -> None:
    """Write a message, or a line as it was read."""
    line = message if isinstance(message, bytes) else line_of(message)
    ended = line if line.endswith(b"\n") else line + b"\n"
    if hasattr(out, "buffer"):
        out.buffer.write(ended)
    else:
        out.write(ended.decode(errors="surrogatepass"))
    out.flush()


@contextlib.contextmanager
def cancelled_by_signals(scope: CancelScope, stopped: threading.Event) -> Iterator[None]:
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
    """Take a request to terminate as an interrupt, which lets records be written."""
    # Not by way of SIGINT: a shell that started this in the background has it ignored.
    raise KeyboardInterrupt


def _depth(line: bytes) -> int:
    brackets = _STRINGS.sub(b"", line).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_NUMBER else text


def _decimal(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
