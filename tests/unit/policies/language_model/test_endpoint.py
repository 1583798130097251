"""A model behind an OpenAI-compatible server: what goes over the wire, and what comes of its answers."""

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.policies.language_model.fake_server import MODEL, FakeServer, Reply, by_reference, said
from toolkit.episodes.agents import reference
from toolkit.episodes.episode import Episode, play
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.noise.regimes import REGIMES
from toolkit.policies.language_model.conversation import Conversation, Play, converse, opening
from toolkit.policies.language_model.endpoint import Endpoint
from toolkit.policies.language_model.exchange import Server
from toolkit.seeds import evaluation_seed
from toolkit.tasks.pools import load_task

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


def test_a_question_names_model_tools_and_sampling() -> None:
    with FakeServer(lambda _: said()).running() as server:
        endpoint(server, temperature=0.5, max_tokens=77).turns([conversation()])
    asked = {name: value for name, value in server.asked[0].items() if name not in {"messages", "seed"}}
    assert asked == {
        "model": MODEL,
        "tools": TOOLS,
        "tool_choice": "auto",
        "temperature": 0.5,
        "top_p": 1.0,
        "max_tokens": 77,
    }


def test_variables_of_the_chat_template_are_sent_where_there_are_any() -> None:
    with FakeServer(lambda _: said()).running() as server:
        endpoint(server, chat_options={"enable_thinking": False}).turns([conversation()])
    assert server.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_user_may_add_fields_to_a_question_and_take_some_out() -> None:
    with FakeServer(lambda _: said()).running() as server:
        endpoint(server, request_options={"top_k": -1, "seed": None}).turns([conversation()])
    assert server.asked[0]["top_k"] == -1
    assert "seed" not in server.asked[0]


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


def test_the_same_conversation_has_the_same_seeds() -> None:
    first, again = (played(lambda _: said())[1].asked[0]["seed"] for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    "arguments", ["{not json", '{"order_id": NaN}', "[" * 5000, '{"order_id": 1e999}'], ids=range(4)
)
def test_arguments_that_cannot_be_read_are_a_charged_call(arguments: str) -> None:
    turns = iter([said(("get_order", arguments)), said()])
    episodes, server = played(lambda _: next(turns))
    assert episodes[0].calls == 1
    assert "invalid_arguments" in server.asked[1]["messages"][-1]["content"]


def test_what_json_has_no_word_for_goes_back_as_text() -> None:
    turns = iter([said(("get_order", '{"order_id": NaN}')), said()])
    _, server = played(lambda _: next(turns))
    sent = server.asked[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"arguments": '{"order_id": NaN}'}


def test_what_was_no_object_goes_back_as_one() -> None:
    turns = iter([said(("get_order", "{not json")), said()])
    _, server = played(lambda _: next(turns))
    sent = server.asked[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"arguments": "{not json"}


@pytest.mark.parametrize("name", [None, "no_such_tool", 7])
def test_an_unknown_tool_is_a_charged_call(name: Any) -> None:
    turns = iter([said((name, "{}")), said()])
    episodes, server = played(lambda _: next(turns))
    assert episodes[0].calls == 1
    assert "unknown_tool" in server.asked[1]["messages"][-1]["content"]


@pytest.mark.parametrize("arguments", ["", None, {}])
def test_a_call_without_arguments_has_none(arguments: Any) -> None:
    assert turn(lambda _: said(("finish", arguments))).calls == (("finish", {}),)


def test_arguments_that_arrive_decoded_are_taken() -> None:
    assert turn(lambda _: said(("wait", {"seconds": 2}))).calls == (("wait", {"seconds": 2}),)


def test_text_alone_ends_the_episode() -> None:
    episodes, _ = played(lambda _: said(text="I cannot do that."))
    assert (episodes[0].ended, episodes[0].calls) == ("stopped", 0)


def test_a_turn_that_ran_out_of_tokens_is_marked() -> None:
    assert turn(lambda _: said(text="I th", end="length")).cut
    assert not turn(lambda _: said(text="no")).cut


def test_text_in_parts_is_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert turn(lambda _: said(text=parts)).text == "ab"  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        [],
        {"choices": [{"message": 1}]},
    ],
    ids=json.dumps,
)
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


def test_answers_are_told_apart_whatever_order_they_come_in() -> None:
    def say(question: Mapping[str, Any]) -> Reply:
        number = int(question["messages"][1]["content"])
        time.sleep(0.02 * (3 - number))
        return said(text=str(number))

    talks = [
        Conversation([{"role": "system", "content": ""}, {"role": "user", "content": str(n)}], n)
        for n in range(4)
    ]
    with FakeServer(say).running() as server:
        assert [t.text for t in endpoint(server).turns(talks)] == ["0", "1", "2", "3"]


def test_a_server_that_lists_other_models_is_told_of_at_once() -> None:
    listing = FakeServer(by_reference, Reply({"data": [{"id": "other"}]}))
    with listing.running() as server, pytest.raises(UsageError, match="no model 'made-up'") as raised:
        endpoint(server).check()
    assert raised.value.expected == "other"


@pytest.mark.parametrize("models", [Reply({}, 404), Reply({}, 500), Reply({"object": "list"})])
def test_a_server_that_lists_no_models_is_taken_at_its_word(models: Reply) -> None:
    with FakeServer(by_reference, models).running() as server:
        assert endpoint(server).check() is None
