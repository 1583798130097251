"""Other people's servers behind the proxy: transparent without noise; the same fates for the same calls."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import run
from tests.unit.noise.pairing.proxied import Call, answers, lines, proxy
from tests.unit.stack import require_mcp_servers
from toolkit.noise.declaration import read_declaration

require_mcp_servers()

FILESYSTEM = Path(sys.prefix, "node_modules", ".bin", "mcp-server-filesystem")


@dataclass(frozen=True)
class World:
    """A server, calls that leave it as it was, and some proposals: tool → kind, resource, repeatable."""

    command: tuple[str, ...]
    calls: list[Call]
    proposed: dict[str, tuple[str, str | None, bool]]


def git(folder: Path) -> World:
    def made(*arguments: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    made("init", "--initial-branch", "main")
    for number in range(4):
        (folder / "notes").write_text("line\n" * number, encoding="utf-8")
        made("add", ".")
        made("commit", "--message", f"Change {number}")
    (folder / "notes").write_text("another\n", encoding="utf-8")
    asked: list[Call] = [
        ("git_status", {}),
        ("git_log", {"max_count": 3}),
        ("git_diff_unstaged", {}),
        ("git_show", {"revision": "HEAD"}),
        ("git_add", {"files": ["notes"]}),
        ("git_diff_staged", {}),
        ("git_reset", {}),
    ]
    calls = [(name, {"repo_path": str(folder), **sent}) for name, sent in asked]
    proposed: dict[str, tuple[str, str | None, bool]] = {
        "git_log": ("read", "repo_path", False),
        "git_add": ("write", "repo_path", True),
        "git_commit": ("write", "repo_path", False),
    }
    return World((sys.executable, "-m", "mcp_server_git"), calls, proposed)


def clock(_: Path) -> World:
    zones = ("Etc/UTC", "Asia/Tokyo", "Europe/Paris", "Asia/Kolkata")
    calls = [
        ("convert_time", {"source_timezone": zone, "time": "12:30", "target_timezone": "Asia/Seoul"})
        for zone in (*zones, "No/Where")
    ]
    return World((sys.executable, "-m", "mcp_server_time"), calls, {"convert_time": ("read", None, False)})


def filesystem(folder: Path) -> World:
    if not FILESYSTEM.exists():
        text = "NO SERVER IN JAVASCRIPT WAS TESTED: npm is missing; install Node.js and run: make test-all"
        if os.environ.get("CI"):
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    for name in "abc":
        (folder / name).write_text(f"{name}\ntwo\nthree\n", encoding="utf-8")
    paths = [str(folder / name) for name in "abc"]
    calls: list[Call] = [
        *(("read_text_file", {"path": path}) for path in paths),
        ("list_directory", {"path": str(folder)}),
        ("write_file", {"path": paths[0], "content": "a\ntwo\nthree\n"}),
        ("read_text_file", {"path": paths[0]}),
        ("search_files", {"path": str(folder), "pattern": "*"}),
        ("read_text_file", {"path": str(folder / "nothing")}),
    ]
    proposed: dict[str, tuple[str, str | None, bool]] = {
        "read_text_file": ("read", "path", False),
        "write_file": ("write", "path", True),
        "edit_file": ("write", "path", False),
    }
    return World((str(FILESYSTEM), str(folder)), calls, proposed)


@pytest.fixture(params=[git, clock, filesystem], ids=["git", "time", "filesystem"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    folder = tmp_path / "world"
    folder.mkdir()
    build: Callable[[Path], World] = request.param
    return build(folder)


@pytest.fixture
def tools(world: World, tmp_path: Path) -> Path:
    """What the server says of its tools; searches and directories are lists of lines, as a person sees."""
    path = tmp_path / "tools.toml"
    said = run("noise", "propose", "--", *world.command).out
    for name in ("list_directory", "search_files"):
        said = said.replace(f'[tools.{name}]\nkind = "read"', f'[tools.{name}]\nkind = "list"')
    path.write_text(said, encoding="utf-8")
    return path


def test_what_is_proposed_is_what_the_server_says(world: World, tools: Path) -> None:
    declared = read_declaration(tools).tools
    found = {
        name: (declared[name].kind, declared[name].resource, declared[name].repeatable)
        for name in world.proposed
    }
    assert found == world.proposed


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_without_noise_answers_are_the_servers(world: World, tools: Path, mode: str) -> None:
    direct = answers(world.command, world.calls, mode)
    assert answers((*proxy("--tools", tools, regime="clean"), *world.command), world.calls, mode) == direct
    assert any(not answer["isError"] for answer in direct)


def test_two_clients_in_different_orders_meet_the_same_fates(world, tools, tmp_path) -> None:
    seen = []
    for order in (1, -1):
        record = tmp_path / f"calls{order}.jsonl"
        calls = [each for call in world.calls[::order] * 4 for each in (call, ("wait", {"seconds": 9}))]
        # Outages, after which nothing is drawn, would hide how many there were.
        noise = proxy("--tools", tools, "--record", record, regime="faults_p025_outage_free", schedule=4)
        answers((*noise, *world.command), calls)
        met = [line for line in lines(record) if line.get("key")]
        seen.append({(call["tool"], *call["key"]): (call["draw"], call["fault"]) for call in met})
        assert run("noise", "replay", record, "--json").json()["end"] == "the client left"
    assert seen[0] == seen[1]
    assert {fault for _, fault in seen[0].values()} > {None}


def test_calls_that_are_made_again_are_answered_the_same(world: World, tools: Path, tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    calls = [each for call in world.calls * 4 for each in (call, ("wait", {"seconds": 9}))]
    answers((*proxy("--tools", tools, "--record", record, schedule=5), *world.command), calls)
    # Noise may have kept the last call from its server: it leaves the world as it was, once it is made.
    answers(world.command, world.calls[-1:])
    again = run("noise", "replay", record, "--json", "--", *world.command)
    assert (again.code, again.json()["differences"]) == (0, []), again.err
    assert again.json()["faults"] > 0
