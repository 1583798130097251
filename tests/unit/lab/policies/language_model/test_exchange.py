"""Requests to a server: what is asked again, what is refused and how, and where the key is not."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.lab.policies.language_model.fake_server import FakeServer, Reply, said
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.lab.policies.language_model import exchange
from toolkit.lab.policies.language_model.exchange import Server, server_url

KEY = "sk-not-to-be-seen"
CHAT = "chat/completions"
NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
TOO_LONG = "This model's maximum context length is 2048 tokens. However, you requested 2304 tokens."


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "PAUSE_S", 0.0)


def ask(*replies: Reply | None, **changes: Any) -> Any:
    """Ask a server that replies one after the other, and repeats the last."""
    left = iter(replies[:-1])
    with FakeServer(lambda _: next(left, replies[-1])).running() as server:
        try:
            return Server(server.url, **changes).ask(CHAT, {})
        finally:
            ask.times = len(server.asked)  # type: ignore[attr-defined]


def refused(*replies: Reply | None, **changes: Any) -> ToolkitError:
    with pytest.raises(ToolkitError) as raised:
        ask(*replies, **changes)
    return raised.value


@pytest.mark.parametrize(
    "passing", [Reply({}, 429), Reply({}, 500), Reply({}, 503), None], ids=["429", "500", "503", "closed"]
)
def test_what_may_pass_is_asked_again(passing: Reply | None) -> None:
    assert ask(passing, passing, Reply({"a": 1})) == {"a": 1}


def test_asking_again_ends_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(exchange, "PAUSE_S", 1.0)
    monkeypatch.setattr(time, "sleep", pauses.append)
    error = refused(Reply({"error": "overloaded"}, 503), attempts=4)
    assert isinstance(error, IncompleteError)
    assert error.found == "HTTP 503: overloaded (asked 4 times)"
    assert ask.times == 4  # type: ignore[attr-defined]
    assert pauses == [1.0, 2.0, 4.0]


def test_a_server_that_says_when_is_asked_then(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    ask(Reply({}, 429, {"Retry-After": "7"}), Reply({}, 429, {"Retry-After": "86400"}), Reply({}))
    assert pauses == [7.0, exchange.LONGEST_PAUSE_S]


@pytest.mark.parametrize(
    ("status", "body", "kind", "problem", "remedy"),
    [
        (401, {"error": {"message": "no"}}, IncompleteError, "another API key", "--api-key-env"),
        (404, {"error": {"message": "There is no such model."}}, UsageError, "no such model", "models"),
        (400, {"object": "error", "message": NO_TOOLS}, UsageError, "calls no tools", "--tool-call-parser"),
        (500, {"error": {"message": "tools param requires --jinja flag"}}, UsageError, "no tools", "--jinja"),
        (400, {"error": {"message": "m does not support tools"}}, UsageError, "no tools", "vllm serve"),
        (400, {"error": {"message": TOO_LONG}}, IncompleteError, "context is too small", "--max-model-len"),
        (422, {"message": "bad"}, UsageError, "refuses the question", ""),
        (302, b"<html>", UsageError, "sends elsewhere", "moved"),
    ],
)
def test_a_refusal_says_what_it_means_and_what_to_do(
    status: int, body: Any, kind: type[ToolkitError], problem: str, remedy: str
) -> None:
    error = refused(Reply(body, status, {"Location": "http://127.0.0.1:1/"}))
    assert isinstance(error, kind)
    assert problem in error.problem
    assert remedy in (error.remedy or "")
    assert ask.times == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_refused(body: bytes) -> None:
    error = refused(Reply(body))
    assert isinstance(error, DamagedError)
    assert "not JSON" in error.problem


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LARGEST_ANSWER", 100)
    assert "no end" in refused(Reply(b" " * 101)).problem


def test_nobody_there_is_told_in_a_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(IncompleteError, match="does not answer") as raised:
        Server(f"http://127.0.0.1:{port}/v1", attempts=2).ask(CHAT, {})
    assert "refused (asked 2 times)" in (raised.value.found or "")
    assert "same command again" in (raised.value.remedy or "")


def test_a_silent_server_is_left_after_the_time_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(IncompleteError, match="in time") as raised:
            Server(url, timeout_s=0.1).ask(CHAT, {})
    assert raised.value.expected == "a whole answer within 0.1 s"


@pytest.mark.parametrize("header", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"])
def test_a_server_that_drips_is_left_after_the_time_limit(header: bytes) -> None:
    ended = threading.Event()

    def drip(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            connection.sendall(header)
            while not ended.wait(0.02):
                connection.sendall(b"H")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=drip, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        with pytest.raises(IncompleteError, match="in time"):
            Server(url, timeout_s=0.3).ask(CHAT, {})
        ended.set()
        thread.join()


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LARGEST_ANSWER", 100)
    error = refused(Reply(b" " * 101))
    assert (error.exit_code, error.expected) == (4, "100 bytes at most")


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(lambda _: said(), key=KEY).running() as server:
        yield server


def test_the_key_of_the_named_variable_is_sent(guarded: FakeServer) -> None:
    Server(guarded.url, "MY_KEY").ask(CHAT, {})
    assert guarded.keys == [f"Bearer {KEY}"]


def test_a_key_that_the_server_repeats_is_not_repeated_here(
    guarded: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-another-one")
    with pytest.raises(IncompleteError) as raised:
        Server(guarded.url, "MY_KEY").ask(CHAT, {})
    assert "sk-another-one" not in str(raised.value)
    assert "(the key)" in (raised.value.found or "")


@pytest.mark.parametrize("key", ["", "  ", "two\nlines", "naïve"])
def test_a_variable_without_a_key_is_told_of_without_its_value(
    guarded: FakeServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(UsageError, match="MY_KEY holds no API key") as raised:
        Server(guarded.url, "MY_KEY").ask(CHAT, {})
    assert not key.strip() or key not in str(raised.value)


def test_no_key_is_sent_after_a_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(lambda _: said()).running() as there:
        moved = Reply(b"", 307, {"Location": f"{there.url}/{CHAT}"})
        with FakeServer(lambda _: moved).running() as here, pytest.raises(UsageError):
            Server(here.url, "MY_KEY").ask(CHAT, {})
    assert there.keys == []


@pytest.mark.parametrize(
    ("said_as", "asked_as"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("https://host/deep/v3", "https://host/deep/v3"),
    ],
)
def test_an_address_is_taken_as_users_write_it(said_as: str, asked_as: str) -> None:
    assert server_url(said_as) == asked_as


@pytest.mark.parametrize(
    "text",
    ["", "localhost:8000", "ftp://host/v1", "file:///etc/passwd", "http://", "http://h:x/v1", "http://h?k=1"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="address of a server"):
        server_url(text)


def test_an_address_with_a_password_is_refused_without_it() -> None:
    with pytest.raises(UsageError) as raised:
        server_url(f"https://me:{KEY}@host/v1")
    assert KEY not in str(raised.value)
