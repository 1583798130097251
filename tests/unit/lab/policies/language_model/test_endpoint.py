"""A model behind an OpenAI-compatible server: what goes over the wire, and what comes of its answers."""

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.lab.policies.language_model.fake_server import MODEL, FakeServer, Reply, by_reference, said
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.policies.language_model.conversation import Conversation, Play, converse, opening
from toolkit.lab.policies.language_model.endpoint import Endpoint, side_by_side
from toolkit.lab.policies.language_model.exchange import Server
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


def test_arguments_go_back_as_text_and_answers_by_the_call_that_they_answer() -> None:
    turns = iter([said(("get_order", '{"order_id": "O-1"}')), said()])
    _, server = played(lambda _: next(turns))
    call, answer = server.asked[1]["messages"][-2:]
    assert call["tool_calls"][0]["function"] == {"name": "get_order", "arguments": '{"order_id": "O-1"}'}
    assert answer["tool_call_id"] == call["tool_calls"][0]["id"]
    assert json.loads(answer["content"])["error"]["code"] == "not_found"


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


def test_after_a_failure_nothing_more_is_begun() -> None:
    begun: list[int] = []
    told = threading.Event()

    def fail(item: int) -> None:
        begun.append(item)
        if item > 0:
            told.wait(10)  # taken before the failure was told: it may be the last
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        side_by_side(fail, range(50), 1)
    told.set()
    time.sleep(0.1)
    assert len(begun) <= 2


def test_a_failure_waits_for_nobody() -> None:
    free = threading.Event()

    def fail_or_wait(item: int) -> None:
        if item == 0:
            raise ValueError(item)
        free.wait(10)

    start = time.monotonic()
    with pytest.raises(ValueError, match="0"):
        side_by_side(fail_or_wait, range(3), 3)
    assert time.monotonic() - start < 5
    free.set()
