"""Records: every fate is drawn anew; whatever was changed in one is found, and what is cut off is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import DamagedError, ToolkitError, VerificationError
from toolkit.noise.declaration import Declaration, declare, parse_declaration
from toolkit.noise.mcp.record import (
    EndLine,
    Recorder,
    changed,
    entry,
    finish,
    noisy_session,
    read_record,
    result_of,
    verify,
)
from toolkit.noise.regimes import REGIMES, Mixture, Regime
from toolkit.noise.session import StartedCall
from toolkit.noise.tools import Fault, Tool

DECLARATION = """
name = "notes"
tools.show = { kind = "read", resource = "name" }
tools.names = { kind = "list", shows = "names" }
tools.put = { kind = "write", resource = "name" }
"""
SCHEDULE = 3  # one that has every type
Json = dict[str, Any]


def declared() -> Declaration:
    return parse_declaration(DECLARATION, "x")


def answered(name: str, number: int) -> Json:
    """Return the answer of a server whose every write shows in the next read."""
    said = {"names": ["a", "b", "c", str(number)]} if name == "names" else {"name": name, "text": str(number)}
    return {"result": {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said}}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record under every kind of fault."""
    path = tmp_path / "calls.jsonl"
    session = noisy_session(declared(), REGIMES["faults_p025"], SCHEDULE)
    recorder = Recorder(path, session, {"command": "x"}, proposed=False)
    for number in range(120):
        name, sent = [
            ("show", {"name": "abc"[number % 3]}),
            ("names", {}),
            ("put", {"name": str(number)}),
            ("wait", {"seconds": 5}),
        ][number % 4]
        begun = session.begin(name, sent)
        whole = answered(name, number) if isinstance(begun, StartedCall) else None
        shown = {"result": result_of(begun)} if whole is None else finish(session, begun, whole)  # type: ignore[arg-type]
        recorder.write(entry(session, shown, whole))
    recorder.close("the client left")
    return path


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_record_is_verified(record: Path) -> None:
    read = read_record(record)
    session = verify(read)
    assert {each.fault for each in session.exposures} == {
        "transient",
        "rate_limit",
        "outage",
        "stale_read",
        "truncation",
    }
    assert (len(session.calls), read.end, read.is_cut) == (
        120,
        EndLine("the client left", 120, len(session.exposures)),
        False,
    )


def first(calls: list[Json], **said: Any) -> Json:
    return next(line for line in calls if all(line.get(name) == value for name, value in said.items()))


def without(line: Json, name: str) -> None:
    del line[name]


TAMPERED: dict[str, Callable[[list[Json]], object]] = {
    "a fault is hidden": lambda c: first(c, fault="truncation").update(fault=None),
    "a fault is made up": lambda c: first(c, fault=None, tool="show").update(fault="transient"),
    "a draw is another": lambda c: first(c, tool="show")["draw"].update(gate=0.5),
    "a repeat is another": lambda c: first(c, tool="show").update(key=["b", 7]),
    "a call is left out": lambda c: c.pop(1),
    "a call is twice": lambda c: c.insert(1, c[1]),
    "two calls change places": lambda c: c.insert(2, c.pop(1)),
    "an error says something else": lambda c: first(c, fault="transient")["answer"]["result"].update(
        content=[]
    ),
    "a cut list is whole": lambda c: first(c, fault="truncation").update(
        answer=first(c, fault="truncation")["whole"]
    ),
    "what the server said is another": lambda c: first(c, fault="truncation").update(
        whole=answered("show", 0)
    ),
    "what the server said is left out": lambda c: without(first(c, fault="truncation"), "whole"),
    "an effect is denied": lambda c: first(c, changed=True).update(changed=False),
    "a limit is denied": lambda c: first(c, blocked_by="outage").update(blocked_by=None),
    "something is added": lambda c: c[1].update(note="x"),
    "the schedule is another": lambda c: c[0].update(schedule=6),
    "the regime is another": lambda c: c[0].update(regime="clean"),
    "the end counts other calls": lambda c: c[-1].update(calls=7),
    "the declaration is another": lambda c: c[0]["declaration"]["tools"]["put"].update(kind="read"),
    "the declaration has another name": lambda c: c[0]["declaration"].update(name="x"),
    "there is no such regime": lambda c: c[0].update(regime="x"),
    "the format is unknown": lambda c: c[0].update(format=2),
    "a wait is no number": lambda c: first(c, tool="wait")["arguments"].update(seconds="x"),
    "arguments are no object": lambda c: c[1].update(arguments=[]),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=list(TAMPERED))
def test_what_was_changed_is_found(record: Path, change: Callable[[list[Json]], object]) -> None:
    changed = lines(record)
    change(changed)
    record.write_text("".join(json.dumps(line) + "\n" for line in changed))
    with pytest.raises(ToolkitError) as found:
        verify(read_record(record))
    assert isinstance(found.value, VerificationError | DamagedError)


def test_the_first_line_that_differs_is_named(record: Path) -> None:
    changed = lines(record)
    for number in (9, 40):
        changed[number]["call"] = 1000
    record.write_text("".join(json.dumps(line) + "\n" for line in changed))
    with pytest.raises(VerificationError, match="another call") as found:
        verify(read_record(record))
    assert (found.value.where, found.value.found) == (f"{record}, line 10", "1000")


@pytest.mark.parametrize("lost", [1, 10, 60, 5000])
def test_what_a_kill_leaves_is_verified_up_to_there(record: Path, lost: int) -> None:
    whole = record.read_bytes()
    record.write_bytes(whole[:-lost])
    read = read_record(record)
    assert read.end is None
    assert read.is_cut
    assert len(verify(read).calls) == whole[:-lost].count(b"\n") - 1


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "no first line"), (b"{", "no first line"), (b"[]\n", "line 1"), (b"\xff\n{}\n", "line 1")],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(DamagedError) as found:
        read_record(path)
    assert says in str(found.value)


# Results of calls under noise: text and structure say the same; what nothing changes is the same object.


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}


def first_part(value: Any) -> Any:
    """Keep the first part of whatever can be cut."""
    if isinstance(value, dict):
        return {name: first_part(part) for name, part in value.items()}
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
    answer = changed(result if structure is None else {**result, "structuredContent": structure}, first_part)
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
    assert changed(result, first_part) is result


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
    assert isinstance(call, StartedCall)
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
        assert isinstance(call, StartedCall)
        return finish(session, call, response)["result"]["content"]

    assert ask("show", text("old"), IMAGE) == [text("old"), IMAGE]
    ask("put", text("done"))
    assert ask("show", text("new")) == [text("old"), IMAGE]
