"""A server as an engine, and the questions to it."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.unit.lab.policies.language_model.fake_server import MODEL, FakeServer, Reply, by_reference, said
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.policies.language_model import endpoint as module
from toolkit.lab.policies.language_model.conversation import Conversation, Play, converse, opening
from toolkit.lab.policies.language_model.endpoint import Endpoint, Server, server_url, side_by_side
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "get_order"}}]
TASK = load_task("validation:0")


def endpoint(server: FakeServer, **changes: Any) -> Endpoint:
    return Endpoint(Server(server.url), MODEL, TOOLS, **changes)


def conversation(seed: int = 0) -> Conversation:
    return Conversation(opening(TASK.prompt), seed)


def played(say: Any, count: int = 1) -> tuple[list[Episode], FakeServer]:
    """Play episodes with a server that says something."""
    plays = [Play(TASK, REGIMES["clean"], 0, seed) for seed in range(count)]
    with FakeServer(say).running() as server:
        return converse(endpoint(server), plays, traced=True), server


def turn(say: Any) -> Any:
    with FakeServer(say).running() as server:
        return endpoint(server).turns([conversation()])[0]


def test_the_reference_agent_over_the_wire_plays_its_own_episodes() -> None:
    tasks = [load_task(f"validation:{number}") for number in range(6)]
    plays = [Play(t, REGIMES["faults_p025"], evaluation_seed(t.task_id, 0), 0) for t in tasks]
    with FakeServer(by_reference).running() as server:
        held = converse(endpoint(server), plays, traced=True)
    assert [episode.trace for episode in held] == [
        play(p.task, p.regime, p.schedule_seed, reference, traced=True).trace for p in plays
    ]


def test_a_question_has_what_a_user_adds_and_lacks_what_is_taken_out() -> None:
    added = {"request_options": {"top_k": -1, "seed": None}, "chat_options": {"enable_thinking": False}}
    with FakeServer(lambda _: said()).running() as server:
        endpoint(server, temperature=0.5, max_tokens=77, **added).turns([conversation()])
    assert {name: value for name, value in server.asked[0].items() if name != "messages"} == {
        "model": MODEL,
        "tools": TOOLS,
        "tool_choice": "auto",
        "temperature": 0.5,
        "top_p": 1.0,
        "max_tokens": 77,
        "top_k": -1,
        "chat_template_kwargs": {"enable_thinking": False},
    }


@pytest.mark.parametrize(
    ("name", "arguments", "refused", "sent"),
    [
        ("get_order", "{not json", "invalid_arguments", {"arguments": "{not json"}),
        ("get_order", '{"order_id": NaN}', "invalid_arguments", {"arguments": '{"order_id": NaN}'}),
        ("get_order", '{"order_id": 1e999}', "invalid_arguments", {"arguments": '{"order_id": 1e999}'}),
        ("get_order", "[" * 5000, "invalid_arguments", {"arguments": "[" * 5000}),
        (None, "{}", "unknown_tool", {}),
        ("no_such_tool", "{}", "unknown_tool", {}),
        (7, "{}", "unknown_tool", {}),
    ],
    ids=range(7),
)
def test_a_call_that_cannot_be_made_is_charged_and_goes_back_as_an_object(
    name: Any, arguments: str, refused: str, sent: dict[str, Any]
) -> None:
    turns = iter([said((name, arguments)), said()])
    episodes, server = played(lambda _: next(turns))
    assert episodes[0].calls == 1
    call, answer = server.asked[1]["messages"][-2:]
    assert refused in answer["content"]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == sent


@pytest.mark.parametrize(
    ("arguments", "read"), [("", {}), (None, {}), ({}, {}), ({"seconds": 2}, {"seconds": 2})]
)
def test_arguments_may_be_left_out_or_arrive_decoded(arguments: Any, read: dict[str, Any]) -> None:
    assert turn(lambda _: said(("wait", arguments))).calls == (("wait", read),)


def test_every_turn_has_a_seed_of_its_own_that_all_servers_take() -> None:
    _, server = played(lambda q: said(("wait", '{"seconds": 1}')) if len(q["messages"]) < 8 else said(), 3)
    seeds = [question["seed"] for question in server.asked]
    assert len(set(seeds)) == len(seeds) == 12
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert played(lambda _: said())[1].asked[0]["seed"] in seeds


def test_what_is_said_besides_calls_ends_the_episode() -> None:
    episodes, _ = played(lambda _: said(text="I cannot do that."))
    assert (episodes[0].ended, episodes[0].calls) == ("stopped", 0)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    turns = [turn(lambda _, end=end: said(text=parts, end=end)) for end in ("length", "stop")]  # type: ignore[arg-type]
    assert [(one.text, one.cut) for one in turns] == [("ab", True), ("ab", False)]


@pytest.mark.parametrize("text", ['<tool_call>{"name": "get_order"}</tool_call>', "<function=get_order>"])
def test_calls_that_come_back_as_text_are_the_servers_failing(text: str) -> None:
    with pytest.raises(UsageError, match="does not read them") as raised:
        turn(lambda _: said(text=text))
    assert "--tool-call-parser" in (raised.value.remedy or "")


def test_a_malformed_call_of_a_model_whose_calls_are_read_is_its_own() -> None:
    def say(question: Mapping[str, Any]) -> Reply:
        fresh = len(question["messages"]) == 2
        return said(("wait", '{"seconds": 1}')) if fresh else said(text="<tool_call>{")

    assert played(say)[0][0].ended == "stopped"


@pytest.mark.parametrize("body", [{}, {"choices": [{}]}, [], {"choices": [{"message": 1}]}], ids=json.dumps)
def test_an_answer_without_a_turn_is_refused(body: Any) -> None:
    with pytest.raises(DamagedError, match="no turn"):
        turn(lambda _: Reply(body))


TOO_LONG = Reply({"error": {"message": "This model's maximum context length is 2048 tokens."}}, 400)


def test_a_context_too_small_for_the_task_is_told() -> None:
    with pytest.raises(IncompleteError, match="context is too small"):
        turn(lambda _: TOO_LONG)


def test_a_turn_may_have_all_that_is_left_of_the_context() -> None:
    def say(question: Mapping[str, Any]) -> Reply:
        return TOO_LONG if "max_tokens" in question else said(("wait", '{"seconds": 1}'))

    assert turn(say).calls == (("wait", {"seconds": 1}),)


def test_a_conversation_that_fills_the_context_ends_there() -> None:
    def say(question: Mapping[str, Any]) -> Reply:
        return TOO_LONG if len(question["messages"]) > 2 else said(("wait", '{"seconds": 1}'))

    episodes, _ = played(say)
    assert (episodes[0].ended, episodes[0].calls) == ("stopped", 1)


def test_no_more_questions_at_once_than_asked_for() -> None:
    def say(_: Mapping[str, Any]) -> Reply:
        time.sleep(0.02)
        return said()

    with FakeServer(say).running() as server:
        endpoint(server, concurrency=3).turns([conversation(seed) for seed in range(9)])
    assert server.most_at_once == 3


def test_a_server_that_lists_other_models_is_told_of_at_once() -> None:
    listing = FakeServer(by_reference, Reply({"data": [{"id": "other"}]}))
    with listing.running() as server, pytest.raises(UsageError, match="no model 'made-up'") as raised:
        endpoint(server).check()
    assert raised.value.expected == "other"


@pytest.mark.parametrize("models", [Reply({}, 404), Reply({}, 500), Reply({"object": "list"})])
def test_a_server_that_lists_no_models_is_taken_at_its_word(models: Reply) -> None:
    with FakeServer(by_reference, models).running() as server:
        assert endpoint(server).check() is None


# --------------------------------------------------------------------------------------- side by side


def test_answers_come_in_the_order_of_the_items() -> None:
    def later_first(item: int) -> int:
        time.sleep(0.01 * (3 - item))
        return item * 10

    assert side_by_side(later_first, range(4), 4) == [0, 10, 20, 30]


KEY = "sk-not-to-be-seen"
CHAT = "chat/completions"
NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
OVERLONG = "This model's maximum context length is 2048 tokens. However, you requested 2304 tokens."


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)


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
    monkeypatch.setattr(module, "PAUSE_S", 1.0)
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
    assert pauses == [7.0, module.LONGEST_PAUSE_S]


@pytest.mark.parametrize(
    ("status", "body", "kind", "problem", "remedy"),
    [
        (401, {"error": {"message": "no"}}, IncompleteError, "another API key", "--api-key-env"),
        (404, {"error": {"message": "There is no such model."}}, UsageError, "no such model", "models"),
        (400, {"object": "error", "message": NO_TOOLS}, UsageError, "calls no tools", "--tool-call-parser"),
        (500, {"error": {"message": "tools param requires --jinja flag"}}, UsageError, "no tools", "--jinja"),
        (400, {"error": {"message": "m does not support tools"}}, UsageError, "no tools", "vllm serve"),
        (400, {"error": {"message": OVERLONG}}, IncompleteError, "context is too small", "--max-model-len"),
        (422, {"message": "bad"}, UsageError, "refuses the question", ""),
        (302, b"<html>", UsageError, "sends elsewhere", "moved"),
    ],
)
def test_a_refusal_says_what_it_means_and_what_to_do(status, body, kind, problem, remedy) -> None:
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


def test_nobody_there_is_told_in_a_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(IncompleteError, match="does not answer") as raised:
        Server(f"http://127.0.0.1:{port}/v1", attempts=2).ask(CHAT, {})
    assert "refused (asked 2 times)" in (raised.value.found or "")
    assert "same command again" in (raised.value.remedy or "")


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
        with pytest.raises(IncompleteError, match="in time") as raised:
            Server(url, timeout_s=0.3).ask(CHAT, {})
        assert raised.value.expected == "a whole answer within 0.3 s"
        ended.set()
        thread.join()


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_ANSWER", 100)
    error = refused(Reply(b" " * 101))
    assert "no end" in error.problem
    assert (error.exit_code, error.expected) == (4, "100 bytes at most")


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(lambda _: said(), key=KEY).running() as server:
        yield server


def test_the_key_of_the_named_variable_is_sent(guarded: FakeServer) -> None:
    Server(guarded.url, "MY_KEY").ask(CHAT, {})
    assert guarded.keys == [f"Bearer {KEY}"]


def test_a_key_that_the_server_repeats_is_not_repeated_here(guarded, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-another-one")
    with pytest.raises(IncompleteError) as raised:
        Server(guarded.url, "MY_KEY").ask(CHAT, {})
    assert "sk-another-one" not in str(raised.value)
    assert "(the key)" in (raised.value.found or "")


@pytest.mark.parametrize("key", ["", "  ", "two\nlines", "naïve"])
def test_a_variable_without_a_key_is_told_of_without_its_value(guarded, monkeypatch, key) -> None:
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
    [
        *("", "localhost:8000", "ftp://host/v1", "file:///etc/passwd", "http://", "http://h:x/v1"),
        *("http://h?k=1", f"https://me:{KEY}@host/v1"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(UsageError, match="address of a server") as raised:
        server_url(text)
    assert KEY not in str(raised.value)
