"""Results of calls under noise: text and structure say the same; what nothing changes is the same object."""

import json
from typing import Any

import pytest

from toolkit.noise.declaration import declare
from toolkit.noise.mcp.record import changed, finish, noisy_session, result_of
from toolkit.noise.regimes import Mixture, Regime
from toolkit.noise.session import Begun
from toolkit.noise.tools import Fault, Tool


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}


def first(value: Any) -> Any:
    """Keep the first part of whatever can be cut."""
    if isinstance(value, dict):
        return {name: first(part) for name, part in value.items()}
    if isinstance(value, list):
        return value[:1]
    return "".join(value.splitlines(keepends=True)[:1]) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("content", "structure", "shown", "cut"),
    [
        ([text("a\nb\n")], None, ["a\n"], None),
        ([text("[1, 2]")], None, ["[1]"], None),
        ([text('{"rows": [1, 2]}'), IMAGE], None, ['{"rows": [1]}'], None),
        ([text("one"), text("two"), IMAGE], None, ["one"], None),
        ([text('{"rows":[1,2]}')], {"rows": [1, 2]}, ['{"rows": [1]}'], {"rows": [1]}),
        ([text("a\nb")], {"content": "a\nb"}, ["a\n"], {"content": "a\n"}),
        ([text("[1, 2]")], {"result": [1, 2]}, ["[1]"], {"result": [1]}),
        ([text("Two rows: 1 and 2"), IMAGE], {"rows": [1, 2]}, ['{"rows": [1]}'], {"rows": [1]}),
        ([text("1"), text("2")], {"result": [1, 2]}, ['{"result": [1]}'], {"result": [1]}),
        ([], {"rows": [1, 2]}, ['{"rows": [1]}'], {"rows": [1]}),
    ],
)
def test_a_change_shows_in_text_and_structure(content, structure, shown, cut) -> None:
    result = {"content": content, "_meta": {"kept": True}}
    answer = changed(result if structure is None else {**result, "structuredContent": structure}, first)
    assert [block["text"] for block in answer["content"] if block["type"] == "text"] == shown
    assert answer.get("structuredContent") == cut
    assert [block for block in answer["content"] if block is IMAGE] == [b for b in content if b is IMAGE]
    assert answer["_meta"] == {"kept": True}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text("one")]},
        {"content": [IMAGE]},
        {"content": []},
        {"content": [text("12")]},
        {"content": [text("anything\nelse")], "structuredContent": {"rows": [1]}},
    ],
)
def test_what_nothing_changes_is_the_same_object(result: dict[str, Any]) -> None:
    assert changed(result, first) is result


def begun(fault: Fault, kind: Any) -> Any:
    session = noisy_session(
        declare("x", [Tool("t", kind)]), Regime("always", "", 1.0, Mixture({fault: 1})), 0
    )
    return session, session.begin("t", {})


@pytest.mark.parametrize(
    "response",
    [
        {"error": {"code": -1, "message": "no"}},
        {"result": {"content": [text("a\nb\nc")], "isError": True}},
        {"result": {"resultType": "input_required"}},
        {"result": None},
    ],
)
def test_a_refusal_of_the_servers_own_stands_as_it_is(response: dict[str, Any]) -> None:
    session, call = begun("truncation", "list")
    assert isinstance(call, Begun)
    assert finish(session, call, response) is response
    assert [(each.fault, each.changed) for each in session.exposures] == [("truncation", False)]


def test_a_timeout_after_commit_is_an_error_in_text_and_structure() -> None:
    session, call = begun("timeout_after_commit", "write")
    result = finish(session, call, {"result": {"content": [text("done")]}})["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "timeout"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result_of({"waited": 3})["isError"] is False


def test_a_stale_read_is_the_whole_earlier_result() -> None:
    stale = Regime("always", "", 1.0, Mixture({"stale_read": 1}))
    tools = [Tool("show", "read", stale="recorded"), Tool("put", "write")]
    session = noisy_session(declare("x", tools), stale, 0)

    def ask(name: str, *said: Any) -> Any:
        response = {"result": {"content": list(said)}}
        call = session.begin(name, {})
        assert isinstance(call, Begun)
        return finish(session, call, response)["result"]["content"]

    assert ask("show", text("old"), IMAGE) == [text("old"), IMAGE]
    ask("put", text("done"))
    assert ask("show", text("new")) == [text("old"), IMAGE]
