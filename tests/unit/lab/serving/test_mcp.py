"""An episode over the Model Context Protocol: every call reaches the desk; a record is always written."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, run
from tests.unit.stack import require_mcp
from toolkit.lab.backoffice.schemas import json_schema
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.document import replay
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

require_mcp()

from mcp import Client, StdioServerParameters  # noqa: E402 - only where it is there
from mcp.client.stdio import stdio_client  # noqa: E402

TASK = load_task("validation:0")
SERVER = (sys.executable, "-W", "error", "-m", "toolkit", "backoffice", "mcp")

INFO = {"name": "test", "version": "1"}
HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def command(record: Path, regime: str = "clean") -> list[str]:
    return [*SERVER, "--task", TASK.task_id, "--regime", regime, "--schedule", "0", "--record", str(record)]


def desk(regime: str = "clean") -> Desk:
    return Desk(TASK, REGIMES[regime], evaluation_seed(TASK.task_id, 0))


def recorded(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def call(params: Any, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


PLANNED = [call({"name": planned.tool, "arguments": planned.arguments}) for planned in TASK.plan]


def waiting(seconds: str) -> str:
    """Return the line of a call whose argument is any text."""
    return json.dumps(call({"name": "wait", "arguments": {"seconds": "?"}})).replace('"?"', seconds)


def said(*lines: str | dict[str, Any]) -> bytes:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in (*HELLO, *lines)]
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")


def answers(record: Path, *lines: str | dict[str, Any], regime: str = "clean") -> list[dict[str, Any]]:
    """Return what a server that is sent lines, and then the end of its input, writes after its greeting."""
    sent = record.with_suffix(".sent")
    sent.write_bytes(said(*lines))
    with sent.open(encoding="utf-8") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stream)
        done = run(*command(record, regime)[SERVER.index("backoffice") :])
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()][1:]


def test_a_client_of_the_official_package_is_told_of_the_task_and_carries_it_out(tmp_path: Path) -> None:
    program, *arguments = command(tmp_path / "episode.json")
    server = StdioServerParameters(command=program, args=arguments, cwd=CHECKOUT)
    # The library would take the stderr of the moment it was first imported, which tests may have changed.
    transport = stdio_client(server, errlog=sys.__stderr__ or sys.stderr)

    async def play() -> None:
        async with Client(transport, read_timeout_seconds=30) as client:
            assert [(t.name, t.description, t.input_schema) for t in (await client.list_tools()).tools] == [
                (tool.name, tool.about, json_schema(tool)) for tool in TOOLS.values()
            ]
            (offered,) = (await client.list_prompts()).prompts
            (message,) = (await client.get_prompt(offered.name)).messages
            prompt: Any = message.content
            assert (offered.name, message.role, prompt.text) == ("task", "user", TASK.prompt)
            assert (client.instructions or "").startswith(TASK.prompt)
            assert f"At most {TASK.budget} calls" in (client.instructions or "")
            for planned in TASK.plan:
                assert not (await client.call_tool(planned.tool, planned.arguments)).is_error
            await client.call_tool("finish")

    asyncio.run(play())
    document = recorded(tmp_path / "episode.json")
    assert (document["true_success"], document["ended"]) == (True, "finished")
    assert document["calls_charged"] == len(TASK.plan)


@pytest.mark.parametrize("regime", ["clean", "faults_p025", "held_out_types", "challenge"])
def test_an_answer_is_the_desks_as_text_and_as_structure(tmp_path: Path, regime: str) -> None:
    local = desk(regime)
    for answer, made in zip(answers(tmp_path / "e.json", *PLANNED, regime=regime), TASK.plan, strict=True):
        expected = local.call(made.tool, made.arguments)
        assert json.loads(answer["result"]["content"][0]["text"]) == expected
        assert answer["result"]["structuredContent"] == expected
        assert answer["result"]["isError"] == ("error" in expected)


BAD: dict[str, Any] = {
    "an unknown tool": {"name": "nothing", "arguments": {}},
    "a tool that is no text": {"name": 7, "arguments": {}},
    "no tool": {"arguments": {"seconds": 1}},
    "a number as text": {"name": "wait", "arguments": {"seconds": "3"}},
    "text as a number": {"name": "search_customers", "arguments": {"query": 3}},
    "missing arguments": {"name": "wait"},
    "null for arguments": {"name": "wait", "arguments": None},
    "an unknown argument": {"name": "wait", "arguments": {"seconds": 1, "x": 1}},
    "a list for arguments": {"name": "wait", "arguments": [1]},
    "text for arguments": {"name": "wait", "arguments": "1"},
    "a list for everything": [1],
    "nothing at all": None,
    "half a character": {"name": "wait", "arguments": {"seconds": "\ud800"}},
    "a name that is half a character": {"name": "wait", "arguments": {"\ud800": 1}},
}


@pytest.mark.parametrize("params", BAD.values(), ids=list(BAD))
def test_what_is_called_reaches_the_desk_as_it_was_sent(tmp_path: Path, params: Any) -> None:
    (answer,) = answers(tmp_path / "episode.json", call(params))
    local, sent = desk(), params if isinstance(params, dict) else {}
    arguments = {} if sent.get("arguments") is None else sent["arguments"]
    assert answer["result"]["structuredContent"] == local.call(sent.get("name"), arguments)
    assert recorded(tmp_path / "episode.json")["calls_charged"] == local.calls == 1


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5000])
def test_a_number_that_has_no_value_is_charged_and_refused(tmp_path: Path, number: str) -> None:
    (answer,) = answers(tmp_path / "episode.json", waiting(number))
    assert answer["result"]["structuredContent"]["error"]["code"] == "invalid_arguments"
    document = recorded(tmp_path / "episode.json")
    assert document["calls_charged"] == 1
    assert document["calls"][0]["arguments"] == {"seconds": number}
    replay(document)


@pytest.mark.parametrize(
    ("line", "identifier", "code"),
    [
        ("garbage", None, -32700),
        ("\ud800", None, -32700),
        ("[1]", None, -32700),
        ('{"a":' * 100_000, None, -32700),
        ('{"jsonrpc":"2.0","id":5,"method":"ping","params":' + "[" * 600 + "]" * 600 + "}", None, -32700),
        ('{"jsonrpc":"2.0","id":5}', 5, -32600),
        ('{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}', "x", -32600),
        ('{"jsonrpc":"2.0","id":[],"method":"ping"}', None, -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"wait"}}', None, -32600),
        ('{"jsonrpc":"2.0","id":5,"method":"nothing"}', 5, -32601),
        ('{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"other"}}', 5, -32602),
    ],
    ids=range(11),
)
def test_a_line_that_is_no_request_is_answered_and_serving_goes_on(tmp_path, line, identifier, code) -> None:
    error, answer = answers(tmp_path / "episode.json", line, waiting("1"))
    assert (error["id"], error["error"]["code"]) == (identifier, code)
    assert answer["result"]["structuredContent"] == {"waited": 1}
    assert recorded(tmp_path / "episode.json")["calls_charged"] == 1


def test_a_record_can_be_played_again(tmp_path: Path) -> None:
    bad = [call(params, 100) for params in list(BAD.values())[:6]]
    answers(tmp_path / "episode.json", *bad, *PLANNED, regime="faults_p025")
    replay(recorded(tmp_path / "episode.json"))


def test_a_client_that_is_killed_amid_a_line_leaves_a_graded_record(tmp_path: Path) -> None:
    relay = (
        "import subprocess, sys, time; server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE);"
        "server.stdin.write(sys.stdin.buffer.read()); server.stdin.flush(); time.sleep(600)"
    )
    sent = said(*PLANNED) + b'{"jsonrpc":"2.0","id":1,'
    path = tmp_path / "episode.json"
    with subprocess.Popen(
        [sys.executable, "-c", relay, *command(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
    ) as client:
        client.stdin.write(sent)
        client.stdin.close()
        for _ in range(1 + len(TASK.plan)):
            client.stdout.readline()
        client.kill()
        client.stdout.read()  # until the server, which has the other end, has left
    document = recorded(path)
    assert (document["true_success"], document["ended"]) == (True, "stopped")


@pytest.mark.parametrize(
    ("interrupts", "number", "amid"),
    [
        (signal.default_int_handler, signal.SIGINT, False),
        # In the background of a script a shell has interrupts ignored.
        (signal.SIG_IGN, signal.SIGTERM, False),
        # An exception out of the handler would strike in the desk, and come out as the library's own.
        (signal.default_int_handler, signal.SIGTERM, True),
    ],
    ids=["interrupted", "in the background", "amid a call"],
)
def test_a_server_that_is_stopped_leaves_a_graded_record(tmp_path, monkeypatch, interrupts, number, amid):
    path, made = tmp_path / "episode.json", Desk.call

    def call_and_stop(*asked: Any) -> Any:
        if amid:
            os.kill(os.getpid(), number)
        else:
            threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
        return made(*asked)

    monkeypatch.setattr(Desk, "call", call_and_stop)
    reading, writing = os.pipe()  # the client stays
    os.write(writing, said(call({"name": "nothing"})))
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        with os.fdopen(reading) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            done = run(*command(path)[SERVER.index("backoffice") :])
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(writing)
    assert (done.code, done.err) == (130, "stopped\n")
    assert (recorded(path)["ended"], recorded(path)["calls_charged"]) == ("stopped", 1)


def test_a_client_that_reads_no_answers_leaves_a_graded_record(tmp_path: Path) -> None:
    path = tmp_path / "episode.json"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command(path), cwd=CHECKOUT, **pipes) as process:
        process.stdin.write(said())
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(json.dumps(call({"name": "nothing"})).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""
    assert recorded(path)["calls_charged"] == 1
