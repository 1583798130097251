"""A server on loopback that speaks `/v1/chat/completions`, and says what a test has it say."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolkit.lab.episodes.agents import reference
from toolkit.lab.policies.language_model.opening import next_turn

MODEL = "made-up"


@dataclass
class Reply:
    """What the server answers with: JSON, or bytes as they are; nothing closes the connection."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Say = Callable[[Mapping[str, Any]], Reply | None]


@dataclass
class FakeServer:
    """A server in a thread."""

    say: Say
    models: Reply = field(default_factory=lambda: Reply({"object": "list", "data": [{"id": MODEL}]}))
    key: str | None = None
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator["FakeServer"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, question: dict[str, Any]) -> Reply | None:
        with self._lock:
            self.asked.append(question)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self.say(question)
        finally:
            with self._lock:
                self._at_once -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(owner.models if self.path == "/v1/models" else Reply({}, 404))

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                key = self.headers.get("Authorization")
                owner.keys.append(key)
                if owner.key is not None and key != f"Bearer {owner.key}":
                    message = f"Incorrect API key provided: {(key or '').removeprefix('Bearer ')}"
                    self._reply(Reply({"error": {"message": message}}, 401))
                elif self.path != "/v1/chat/completions":
                    self._reply(Reply({"detail": "Not Found"}, 404))
                else:
                    self._reply(owner.answer(question))

            def _reply(self, reply: Reply | None) -> None:
                if reply is None:
                    self.close_connection = True
                    return
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler


def said(*calls: tuple[Any, Any], text: str | None = None, end: str = "tool_calls") -> Reply:
    """Return a turn as servers send it: the arguments of calls as the text that was sampled."""
    listed = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {})}
    return Reply({"choices": [{"index": 0, "message": message, "finish_reason": end}]})


def by_reference(question: Mapping[str, Any]) -> Reply:
    """Say what the reference agent says."""
    turn = next_turn(reference, question["messages"])
    return said(*((name, json.dumps(arguments)) for name, arguments in turn.calls))
