"""`toolkit backoffice`: the tools in three forms, and a server that says why it cannot serve."""

import io
import json
import os
import sys
from importlib.util import find_spec

import pytest

import toolkit
from tests.conftest import Toolkit
from toolkit.lab.backoffice.schemas import json_schemas, openai_tools, openapi_document
from toolkit.lab.backoffice.tools import TOOLS

served = pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not installed")
SERVE = ("backoffice", "mcp", "--task", "validation:0")


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (("--json",), json_schemas()),
        (("--format", "json-schema"), json_schemas()),
        (("--format", "openai", "--json"), openai_tools()),
        (("--format", "openapi"), openapi_document(toolkit.__version__)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_schema_prints_a_document(toolkit: Toolkit, arguments: tuple[str, ...], document: object) -> None:
    assert toolkit("backoffice", "schema", *arguments).json() == document


def test_schema_shows_people_every_tool_and_argument(toolkit: Toolkit) -> None:
    out = toolkit("backoffice", "schema").out
    for tool in TOOLS.values():
        for part in (tool.name, tool.about, *(f"{parameter.name}: " for parameter in tool.parameters)):
            assert part in out


def test_a_missing_package_is_named_with_its_remedy(toolkit, monkeypatch, tmp_path) -> None:
    for module in ("mcp", "mcp.server", "mcp.server.lowlevel"):
        monkeypatch.setitem(sys.modules, module, None)
    result = toolkit(*SERVE, "--record", tmp_path / "episode.json", "--json").refused(3)
    assert "pip install 'paired-rollouts-toolkit[mcp]'" in result.json()["error"]["remedy"]
    assert not (tmp_path / "episode.json").exists()


@served
@pytest.mark.parametrize("stdin", [None, io.StringIO("")], ids=["closed", "empty"])
def test_serving_nobody_ends_by_itself(toolkit, monkeypatch, tmp_path, stdin) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    result = toolkit(*SERVE, "--regime", "challenge", "--record", tmp_path / "episode.json")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert json.loads((tmp_path / "episode.json").read_text())["regime"] == "challenge"


@pytest.mark.parametrize(
    ("record", "code"),
    [("", 2), ("-", 2), ("missing/episode.json", 3), ("folder", 2), ("pipe", 3), ("pipe/episode.json", 3)],
)
def test_a_record_is_checked_before_anything_is_served(toolkit, tmp_path, monkeypatch, record, code) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    toolkit(*SERVE, "--record", record).refused(code)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@served
def test_a_link_to_a_record_is_followed(toolkit, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    (tmp_path / "real.json").write_text("")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert toolkit(*SERVE, "--record", tmp_path / "link.json").code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["ended"] == "stopped"
