"""Noise in front of a server of the Model Context Protocol: by key, recorded; without noise, transparent."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, run
from tests.unit.noise.pairing.notes_server import DECLARATION
from tests.unit.stack import require_mcp
from toolkit.noise.declaration import read_declaration
from toolkit.structs import as_builtins

require_mcp()

from tests.unit.noise.pairing.proxied import (  # noqa: E402
    NOTES,
    OFFICIAL,
    TOOLKIT,
    Call,
    Json,
    answers,
    lines,
    proxy,
)

HOSTILE = (sys.executable, "-I", "-S", str(Path(__file__).with_name("hostile_server.py")))
SHOWN = [("show", {"name": name}) for name in "abcdefgh"]
PUT = [("put", {"name": name, "text": "new\nand\nlonger"}) for name in "abcdefgh"]
CALLS = [*SHOWN, ("names", {}), *PUT, *SHOWN, ("names", {}), ("show", {"name": "z"}), ("lose", {"name": "a"})]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
GREETING: list[Json] = [
    {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
READ = {"name": "read", "arguments": {}}


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    path = tmp_path / "tools.toml"
    path.write_text(DECLARATION, encoding="utf-8")
    return path


def endless(*_: object) -> None:
    raise AssertionError("the proxy does not end")


def spoken(command: tuple[str, ...], *messages: Json | str | bytes) -> tuple[int, list[str], str]:
    """Return status, lines and stderr of what is sent messages and then the end of its input.

    The proxy serves in this process, on files; a server has one of its own.
    """
    texts = [m if isinstance(m, str | bytes) else json.dumps(m) for m in (*GREETING, *messages)]
    sent = b"".join((t if isinstance(t, bytes) else t.encode()) + b"\n" for t in texts)
    if command[: len(TOOLKIT)] == TOOLKIT:
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
            file.write(sent)
            file.seek(0)
            patch.setattr(sys, "stdin", file)
            before = signal.signal(signal.SIGALRM, endless)
            signal.alarm(60)
            try:
                served = run(*command[len(TOOLKIT) :])
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)
        code, out, err = served.code, served.out, served.err
    else:
        done = subprocess.run(command, input=sent, capture_output=True, timeout=120, check=True)
        code, out, err = done.returncode, done.stdout.decode(), done.stderr.decode()
    return code, out.splitlines(), err


def dialogue(command: tuple[str, ...], *messages: Json | str | bytes) -> tuple[int, list[Json], str]:
    """Return status, answers to what follows the greeting, and stderr."""
    code, out, err = spoken(command, *messages)
    return code, [answer for answer in map(json.loads, out) if answer["id"] != "hello"], err


@contextmanager
def running(command: tuple[str, ...], *messages: Json, answered: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a proxy in a process of its own, send it messages, and wait for so many answers."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=CHECKOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in (*GREETING, *messages)).encode())
        process.stdin.flush()
        for _ in range(answered):
            process.stdout.readline()
        yield process


def call(number: Any = 1, params: Any = READ) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def made(calls: Iterable[Call]) -> list[Json]:
    return [call(n, {"name": name, "arguments": sent}) for n, (name, sent) in enumerate(calls, 1)]


def hostile(how: str, *options: object, regime: str = "clean") -> tuple[str, ...]:
    return (*proxy("--proposed", *options, regime=regime), *HOSTILE, how)


def fates(record: Path) -> dict[tuple[Any, ...], Json]:
    """Return the draws and faults of a record by event key."""
    calls = [line for line in lines(record) if line.get("key")]
    return {(c["tool"], *c["key"]): {"draw": c["draw"], "fault": c["fault"]} for c in calls}


@pytest.mark.slow
def test_without_noise_answers_are_the_servers(declared: Path) -> None:
    """Between a client and a server of the official package."""
    through = answers((*proxy("--tools", declared, regime="clean"), *OFFICIAL), CALLS)
    assert through == answers(OFFICIAL, CALLS)


def test_without_noise_every_line_but_the_list_of_tools_is_the_servers_to_the_byte(declared: Path) -> None:
    others = [{"jsonrpc": "2.0", "id": "x", "method": "ping"}, {"jsonrpc": "2.0", "id": 99, "method": "no"}]
    asked = (*made(CALLS), *others)
    _, through, _ = spoken((*proxy("--tools", declared, regime="clean"), *NOTES), *asked)
    # Calls wait for one another, and nothing else for them.
    assert sorted(through) == sorted(spoken(NOTES, *asked)[1])


def test_two_clients_that_ask_the_same_in_another_order_meet_the_same_fates(tmp_path, declared) -> None:
    # Rate limits and outages keep later calls from being drawn: what was drawn, though, was drawn alike.
    seen = []
    for name, calls in (("one", CALLS), ("two", CALLS[::-1])):
        record = tmp_path / name
        waiting = [each for one in calls for each in (one, ("wait", {"seconds": 9}))]
        dialogue((*proxy("--tools", declared, "--record", record, schedule=3), *NOTES), *made(waiting))
        seen.append(fates(record))
    one, two = seen
    assert one.keys() & two.keys() == one.keys() | two.keys()
    assert one == two
    assert {fate["fault"] for fate in one.values()} >= {None, "transient"}


def test_a_draw_is_the_one_that_anybody_can_compute(tmp_path: Path, declared: Path) -> None:
    record = tmp_path / "calls.jsonl"
    dialogue((*proxy("--tools", declared, "--record", record), *NOTES), *made([*SHOWN, *SHOWN]))
    for (tool, resource, repeat), fate in fates(record).items():
        drawn = run("draw", 7, tool, resource, repeat, "--json").json()
        assert fate["draw"] == {name: drawn[name] for name in ("gate", "type", "magnitude")}
        assert (fate["fault"] is None) or drawn["gate"] < 0.25


def test_a_fault_is_an_answer_that_says_the_same_in_text_and_structure(tmp_path, declared) -> None:
    record = tmp_path / "calls.jsonl"
    calls = [each for one in CALLS * 3 for each in (one, ("wait", {"seconds": 9}))]
    for regime in ("faults_p025", "held_out_types"):
        dialogue((*proxy("--tools", declared, "--record", record, regime=regime), *NOTES), *made(calls))
        struck = [line for line in lines(record) if line.get("changed")]
        assert len({line["fault"] for line in struck}) >= 2
        for line in struck:
            result = line["answer"]["result"]
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            is_error = line["fault"] in {"transient", "rate_limit", "outage", "timeout_after_commit"}
            assert result.get("isError", False) == is_error
            assert ("error" in result["structuredContent"]) == is_error
        assert run("noise", "replay", record, "--json").json()["faults"] >= len(struck)


def test_a_list_of_tools_gains_one_that_waits_and_under_faults_promises_no_form(declared: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    _, (direct,), _ = dialogue(NOTES, asked)
    _, (clean,), _ = dialogue((*proxy("--tools", declared, regime="clean"), *NOTES), asked)
    *own, wait = clean["result"]["tools"]
    assert (own, wait["name"]) == (direct["result"]["tools"], "wait")
    _, (noisy,), _ = dialogue((*proxy("--tools", declared), *NOTES), asked)
    kept = [{k: v for k, v in tool.items() if k != "outputSchema"} for tool in direct["result"]["tools"]]
    assert noisy["result"]["tools"] == [*kept, wait]


def test_a_server_that_waits_itself_is_refused(declared: Path) -> None:
    code, (answer,), err = dialogue((*proxy("--tools", declared), *NOTES, "wait"), call())
    assert (code, answer["id"]) == (2, 1)
    assert "a tool named wait of its own" in answer["error"]["message"]
    assert "a tool named wait of its own" in err
    assert "Traceback" not in err
    run("noise", "propose", "--", *NOTES, "wait").refused(2, "a tool named wait of its own")


def test_a_declared_tool_that_the_server_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tools.toml"
    path.write_text(DECLARATION.replace("tools.show", "tools.shaw"))
    code, (answer,), err = dialogue((*proxy("--tools", path), *NOTES), call())
    assert (code, "shaw missing" in err, "shaw missing" in answer["error"]["message"]) == (2, True, True)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("is silent", "no answer in 0.5 s"),
        ("garbage", "no answer in 0.5 s; it wrote a line that is no message"),
        ("another id", "no answer in 0.5 s; it answered what was not asked"),
        ("batch", "no answer in 0.5 s; it wrote a line that is no message"),
        ("deep", "no answer in 0.5 s; it wrote a line that is no message"),
        ("neither", "no answer in 0.5 s; it wrote a line that is not JSON-RPC 2.0"),
        pytest.param("endless", "no answer in 1 s", marks=pytest.mark.slow),
        pytest.param(
            "mebibytes:65",
            "no answer in 4 s; it wrote a line that is no message in JSON, or is longer than 64 MiB",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_bad_answer_is_an_error_to_the_client_and_serving_goes_on(how: str, says: str) -> None:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait"}}
    seconds = says.split()[3]
    code, (error, answer), err = dialogue(hostile(how, "--timeout", seconds), call(), ping)
    assert (error["id"], error["error"]["code"], says in error["error"]["message"]) == (1, -32001, True)
    assert answer["result"]["structuredContent"] == {"waited": 1}
    assert code == 0
    assert "Traceback (most recent call last):\n" not in err
    assert sum(line.startswith("the server ") for line in err.splitlines()) == ("; it" in says)


def test_a_server_that_dies_amid_a_call_is_an_error_to_the_client_and_to_the_user(tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    code, got, err = dialogue(hostile("dies", "--record", record), call(1), call(2))
    assert [(each["id"], each["error"]["code"]) for each in got] == [(1, -32603), (2, -32603)]
    assert all("the server ended (exit status 9)" in each["error"]["message"] for each in got)
    assert (code, err.count("error: the server ended (exit status 9)"), "Traceback" in err) == (3, 1, False)
    assert lines(record)[-1]["end"] == "the server ended (exit status 9)"
    assert run("noise", "replay", record, "--json").json()["calls"] == 1


@pytest.mark.parametrize(
    "how", ["chatty", "twice", "no result", "pages", pytest.param("stays", marks=pytest.mark.slow)]
)
def test_what_does_no_harm_passes(how: str) -> None:
    code, (answer,), err = dialogue(hostile(how), call())
    assert code == (2 if how == "pages" else 0), err
    assert ("result" in answer) == (how != "pages")
    assert "Traceback" not in err


def test_an_answer_of_mebibytes_passes_and_is_recorded(tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    code, (answer,), err = dialogue(hostile("mebibytes:9", "--record", record), call())
    assert (code, err) == (0, "")
    assert answer["result"]["content"][0]["text"] == "x" * (9 << 20)
    assert run("noise", "replay", record, "--json").json()["calls"] == 1


@pytest.mark.parametrize(
    ("line", "identifier", "code"),
    [
        ("garbage", None, -32700),
        (b"\xff\xfe", None, -32700),
        ("[1]", None, -32700),
        ('{"a":' * 100_000, None, -32700),
        (b"x" * ((64 << 20) + 5), None, -32700),
        ('{"jsonrpc":"2.0","id":5}', 5, -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"read"}}', None, -32600),
        (
            '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","arguments":{"seconds":-1}}}',
            5,
            -32602,
        ),
        (
            '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","arguments":{"seconds":true}}}',
            5,
            -32602,
        ),
    ],
    ids=range(9),
)
def test_a_clients_bad_line_is_answered_and_serving_goes_on(line: Any, identifier: Any, code: int) -> None:
    status, got, err = dialogue(hostile("fine"), line, call())
    assert [(each["id"], each.get("error", {}).get("code")) for each in got] == [
        (identifier, code),
        (1, None),
    ]
    assert (status, err) == (0, "")


def test_brackets_within_texts_do_not_count() -> None:
    sent = call(1, {"name": "read", "arguments": {"text": '["\\{' * 5000, "list": [[1]] * 1000}})
    assert "result" in dialogue(hostile("fine"), sent)[1][0]


def test_an_identifier_that_waits_cannot_be_used_twice() -> None:
    _, got, _ = dialogue(hostile("is silent", "--timeout", "0.5"), call(1), call(1), call("1"))
    assert [(each["id"], each["error"]["code"]) for each in got] == [(1, -32600), (1, -32001), ("1", -32001)]


def test_a_cancelled_call_is_no_longer_waited_for(tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    cancel = [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}} for n in (1, 2)
    ]
    wait = call(3, {"name": "wait"})
    code, (answer,), err = dialogue(hostile("is silent", "--record", record), call(1), call(2), *cancel, wait)
    assert (code, err, answer["id"]) == (0, "", 3)
    assert [line["tool"] for line in lines(record)[1:-1]] in (["read", "wait"], ["wait"])
    assert run("noise", "replay", record).code == 0


def test_a_call_that_was_made_and_cancelled_is_no_longer_waited_for() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    wait = {"name": "wait"}
    command = hostile("is silent", "--timeout", "20")
    rest = b"".join(json.dumps(each).encode() + b"\n" for each in (call(1), cancel, call(2, wait)))
    with running(command, call(0, wait), answered=2) as process:  # from here on a call is made at once
        answers = process.communicate(rest, timeout=15)[0].splitlines()
    assert [json.loads(line)["id"] for line in answers] == [2]


def test_half_a_character_is_the_servers_to_refuse(declared: Path) -> None:
    sent = json.dumps(call(1, {"name": "show", "arguments": {"name": "\ud800"}}))
    code, got, err = dialogue((*proxy("--tools", declared, "--timeout", "2"), *NOTES), sent)
    assert (code, [each["id"] for each in got], "Traceback" in err) == (0, [1], False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_proxy_that_is_stopped_leaves_a_record_that_can_be_replayed(tmp_path, declared, number) -> None:
    record = tmp_path / "calls.jsonl"
    heeding = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = (sys.executable, "-c", heeding, *proxy("--tools", declared, "--record", record), *NOTES)
    with running(command, *made(CALLS), answered=1 + len(CALLS)) as process:
        process.send_signal(number)
        assert process.wait(30) == (-9 if number == signal.SIGKILL else 130)
    replayed = run("noise", "replay", record, "--json").json()
    is_killed = number == signal.SIGKILL
    assert (replayed["calls"], replayed["end"]) == (len(CALLS), None if is_killed else "stopped")
    # A kill may strike amid a line, too.
    record.write_bytes(record.read_bytes()[:-25])
    again = run("noise", "replay", record)
    assert (again.code, again.err.count("the proxy was killed, half a line is dropped")) == (0, 1)


PATHS = {
    "/notes/{note}": {"get": {"operationId": "note"}, "put": {"operationId": "put_note"}},
    "/all": {"post": {}},
}
CLEAN = ("--regime", "clean", "--schedule", "0")
DOCUMENT = {"openapi": "3.0.0", "info": {"title": "notes"}, "paths": PATHS}


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_an_interface_becomes_a_declaration(tmp_path: Path, suffix: str) -> None:
    source, tools = tmp_path / f"interface.{suffix}", tmp_path / "tools.toml"
    text = json.dumps(DOCUMENT)
    if suffix == "yaml":
        import yaml

        text = yaml.safe_dump(DOCUMENT)
    source.write_text(text)
    written = run("noise", "propose", "--openapi", source).out
    assert written.count("# unsure: ") == 2
    tools.write_text(written)
    document = run("noise", "propose", "--openapi", source, "--json").json()
    assert document["declaration"] == as_builtins(read_declaration(tools).document())
    assert list(document["unsure"]) == ["post_all"]


def test_a_server_becomes_a_declaration(tmp_path: Path) -> None:
    tools = tmp_path / "tools.toml"
    tools.write_text(run("noise", "propose", "--", *NOTES).out)
    kinds = {name: (tool.kind, tool.resource) for name, tool in read_declaration(tools).tools.items()}
    assert kinds == {
        "show": ("read", "name"),
        "names": ("list", None),
        "list_lines": ("read", "name"),
        "put": ("write", "name"),
        "lose": ("write", "name"),
        "wait": ("control", None),
    }


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("propose",), 2, "name one source of tools"),
        (("propose", "--openapi", "x.json", "--", "y"), 2, "name one source of tools"),
        (("propose", "--openapi", "/no/such/file"), 3, "cannot be read"),
        (("propose", "--", "/no/such/program"), 3, "the server cannot be started"),
        (("propose", "--timeout", "0.1", "--", "sleep", "1"), 3, "no answer in 0.1 s"),
        (("propose", "--", "false"), 3, "the server ended (exit status 1)"),
        (("propose", "--", *HOSTILE, "pages"), 2, "there is no tool to declare"),
        (("mcp", *CLEAN, "--", "x"), 2, "have to be confirmed"),
        (("mcp", *CLEAN, "--proposed", "--", "/no/such/program"), 3, "the server cannot be started"),
        (("mcp", "--regime", "x", "--schedule", "0", "--proposed", "--", "x"), 2, "--regime"),
        (("mcp", "--regime", "clean", "--schedule", "-1", "--proposed", "--", "x"), 2, "no whole number"),
        (("mcp", *CLEAN, "--tools", "/no/such/file", "--", "x"), 3, "cannot be read"),
        (("replay", "/no/such/file"), 3, "cannot be read"),
    ],
    ids=range(13),
)
def test_what_cannot_be_done_is_said(arguments, code, says) -> None:
    run("noise", *arguments).refused(code, says)


@pytest.mark.parametrize("text", ["{", "- 1", "a: [", "openapi: 4"])
def test_what_is_no_interface_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "interface.yaml"
    path.write_text(text)
    run("noise", "propose", "--openapi", path).refused(4)


def test_a_record_is_replayed_on_a_fresh_server_call_by_call(declared: Path, tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    calls = [
        ("put", {"name": "a", "text": "new"}),
        ("show", {"name": "a"}),
        ("names", {}),
        ("wait", {"seconds": 9}),
    ]
    dialogue((*proxy("--tools", declared, "--record", record), *NOTES), *made(calls * 3))
    assert run("noise", "replay", record, "--", *NOTES).out.endswith("0 of 12 calls are answered otherwise\n")
    # A server that knows of no note is another.
    other = run("noise", "replay", record, "--json", "--", *HOSTILE, "fine")
    differences = other.json()["differences"]
    assert other.code == 1
    assert {each["tool"] for each in differences} == {"put", "show", "names"}
    assert all(each["found"]["result"]["content"][0]["text"] == "fine" for each in differences)
    shown = run("noise", "replay", record, "--", *HOSTILE, "fine")
    assert (shown.code, "call 0, put: answered otherwise" in shown.out) == (1, True)
