"""`toolkit noise`: declarations are proposed, records replayed, and what is wrong is said in one message."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit
from toolkit.noise.declaration import read_declaration

served = pytest.mark.skipif(
    find_spec("mcp") is None and not os.environ.get("CI"), reason="the package mcp is not installed"
)
PATHS = {
    "/notes/{note}": {"get": {"operationId": "note"}, "put": {"operationId": "put_note"}},
    "/all": {"post": {}},
}
DOCUMENT = {"openapi": "3.0.0", "info": {"title": "notes"}, "paths": PATHS}
HOSTILE = (sys.executable, "-I", "-S", str(CHECKOUT / "tests/unit/noise/pairing/hostile_server.py"))


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_an_interface_becomes_a_declaration(toolkit: Toolkit, tmp_path: Path, suffix: str) -> None:
    source, tools = tmp_path / f"interface.{suffix}", tmp_path / "tools.toml"
    text = json.dumps(DOCUMENT)
    if suffix == "yaml":
        import yaml

        text = yaml.safe_dump(DOCUMENT)
    source.write_text(text)
    written = toolkit("noise", "propose", "--openapi", source).out
    assert written.count("# unsure: ") == 2
    tools.write_text(written)
    document = toolkit("noise", "propose", "--openapi", source, "--json").json()
    assert document["declaration"] == read_declaration(tools).document()
    assert list(document["unsure"]) == ["post_all"]


@served
def test_a_server_becomes_a_declaration(toolkit: Toolkit, tmp_path: Path) -> None:
    tools = tmp_path / "tools.toml"
    from tests.unit.noise.pairing.proxied import OFFICIAL

    tools.write_text(toolkit("noise", "propose", "--", *OFFICIAL).out)
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
        (("propose", "--timeout", "0.1", "--", "sleep", "9"), 3, "no answer in 0.1 s"),
        (("propose", "--", "false"), 3, "the server ended (exit status 1)"),
        (("propose", "--", *HOSTILE, "pages"), 2, "there is no tool to declare"),
        (("mcp", "--regime", "clean", "--schedule", "0", "--", "x"), 2, "have to be confirmed"),
        (("mcp", "--regime", "x", "--schedule", "0", "--proposed", "--", "x"), 2, "--regime"),
        (("mcp", "--regime", "clean", "--schedule", "-1", "--proposed", "--", "x"), 2, "no whole number"),
        (
            ("mcp", "--regime", "clean", "--schedule", "0", "--tools", "/no/such/file", "--", "x"),
            3,
            "cannot be read",
        ),
        (("replay", "/no/such/file"), 3, "cannot be read"),
    ],
    ids=range(12),
)
def test_what_cannot_be_done_is_said(toolkit, arguments, code, says) -> None:
    toolkit("noise", *arguments).refused(code, says)


@pytest.mark.parametrize("text", ["{", "- 1", "a: [", "openapi: 4"])
def test_what_is_no_interface_is_refused(toolkit: Toolkit, tmp_path: Path, text: str) -> None:
    path = tmp_path / "interface.yaml"
    path.write_text(text)
    toolkit("noise", "propose", "--openapi", path).refused(4)


@served
def test_a_record_is_replayed_on_a_fresh_server_call_by_call(toolkit: Toolkit, tmp_path: Path) -> None:
    from tests.unit.noise.pairing.notes_server import DECLARATION
    from tests.unit.noise.pairing.proxied import NOTES, answers, proxy

    tools, record = tmp_path / "tools.toml", tmp_path / "calls.jsonl"
    tools.write_text(DECLARATION)
    calls = [
        ("put", {"name": "a", "text": "new"}),
        ("show", {"name": "a"}),
        ("names", {}),
        ("wait", {"seconds": 9}),
    ]
    answers((*proxy("--tools", tools, "--record", record), *NOTES), calls * 3)
    assert toolkit("noise", "replay", record, "--", *NOTES).out.endswith(
        "0 of 12 calls are answered otherwise\n"
    )
    # A server that knows of no note is another.
    other = toolkit("noise", "replay", record, "--json", "--", *HOSTILE, "fine")
    differences = other.json()["differences"]
    assert other.code == 1
    assert {each["tool"] for each in differences} == {"put", "show", "names"}
    assert all(each["found"]["result"]["content"][0]["text"] == "fine" for each in differences)
    shown = toolkit("noise", "replay", record, "--", *HOSTILE, "fine")
    assert (shown.code, "call 0, put: answered otherwise" in shown.out) == (1, True)


@served
def test_a_changed_record_ends_with_the_line_that_differs(toolkit: Toolkit, tmp_path: Path) -> None:
    from tests.unit.noise.pairing.notes_server import DECLARATION
    from tests.unit.noise.pairing.proxied import NOTES, answers, proxy

    tools, record = tmp_path / "tools.toml", tmp_path / "calls.jsonl"
    tools.write_text(DECLARATION)
    answers((*proxy("--tools", tools, "--record", record), *NOTES), [("show", {"name": "a"})])
    record.write_text(record.read_text().replace('"key": ["a", 0]', '"key": ["a", 1]'))
    toolkit("noise", "replay", record).refused(1, "another key", f"{record}, line 2")
