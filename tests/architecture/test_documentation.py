"""The documentation against the command line: every command that is written down runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from tests.conftest import CHECKOUT, Result
from tests.golden import measure_agents, measure_coverage
from tests.hub.conftest import PUBLISHED, meet, put
from tests.hub.server import FixtureHub
from toolkit.cli.main import cli
from toolkit.prereg import authority
from toolkit.registers.query import ask
from toolkit.registers.study import open_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.places import Home

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "cards/embedded.md",
    "cards/published.md",
    "cards/task-pools.md",
    "cards/tiny-lm.md",
    "examples/beyond-one-machine/README.md",
    "toolkit/estimators/README.md",
    "toolkit/prereg/README.md",
    "toolkit/prereg/token/README.md",
)
EXPECTED_CODES = {
    "toolkit verify-prereg": 3,
    "toolkit verify-prereg paired-rollouts": 3,
    "toolkit decide --all --fail-on-miss": 1,
    "toolkit freeze my-study": 3,  # there is no network in a test
    "toolkit amend my-study A1.toml": 3,  # a draft has no amendments
    "toolkit registers import my-study episodes.csv": 3,  # nobody has said how to read it
}
SILENT = ("toolkit backoffice mcp",)  # its stdout belongs to the client, and a test has none
# They play a whole matrix, train on a GPU, write where one stands, or wait for an interrupt; their own tests
# play small ones. Here it is checked that they would be understood.
SLOW = (
    "toolkit study run embedded",
    "toolkit study run tiny-lm",
    "toolkit probe run embedded",
    "toolkit registers pull some-group/their-study --into",
    "toolkit new-study",
    "toolkit site serve",
    "toolkit evaluate --model small",
    "toolkit evaluate --model Qwen",  # of a model whose weights, or whose server, a test does not have
    # The whole site is built and checked without options; what these do is tried on a small one.
    "toolkit site build --",
    "toolkit site check --",
    "toolkit reproduce --",
    "toolkit train --recipe qwen3.5-2b --study",
    "toolkit train --study",
    "toolkit warm-start",
)
THEIRS = "some-group/their-study"
WRITES = ("toolkit reproduce", "toolkit registers build published", "toolkit site build")


def located(text: str) -> str:
    """Return a text in which the studies of the cards, on the Hub, are those of the checkout."""
    return re.sub(r"(hf://datasets/)?\bOWNER/([\w-]+)(@v1\.0\.0)?", rf"{CHECKOUT}/registers/\2", text)


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(cli))


def documented() -> list[str]:
    """Return every complete `toolkit …` command in the documents."""
    found = {}
    for name in DOCUMENTS:
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        for command in re.findall(r"`(toolkit [^`]+)`", text) + re.findall(
            r"^(toolkit .+)$", text, re.MULTILINE
        ):
            line = " ".join(command.split())
            if "…" not in line and "|" not in line and not _is_only_named(line):
                found[line] = None
    return list(found)


def _understood(line: str) -> None:
    """Check that a command's arguments can be read, without running it."""
    words = shlex.split(line)[1:]
    path = next(tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in COMMANDS)
    COMMANDS[path].make_context(" ".join(path), words[len(path) :])


def _is_only_named(line: str) -> bool:
    """Whether a command stands in a sentence by its name alone, and could not run without its argument."""
    command = COMMANDS.get(tuple(line.split()[1:]))
    return command is not None and any(isinstance(p, click.Argument) and p.nargs == 1 for p in command.params)


@pytest.fixture
def drafted(copy: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in which somebody has written a registration, on a machine without a network."""
    source = copy.registrations / "paired-rollouts"
    draft = copy.registrations / "my-study"
    draft.mkdir()
    rules = (source / "rules.toml").read_text(encoding="utf-8")
    (draft / "rules.toml").write_text(rules.replace('name = "paired-rollouts"', 'name = "my-study"'))
    (draft / "protocol.md").write_bytes((source / "protocol.md").read_bytes())
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(authority, "PAUSE_S", 0)


@pytest.fixture
def on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub that has the study of the examples."""
    with FixtureHub() as hub:
        meet(hub, tmp_path, monkeypatch)
        put(hub, PUBLISHED, THEIRS, tag="v1.0.0")
        yield


@pytest.mark.usefixtures("drafted", "on_the_hub")
@pytest.mark.parametrize("line", documented())
def test_a_documented_command_runs(toolkit: Callable[..., Result], line: str) -> None:
    if line.startswith(SLOW):
        _understood(line)
        return
    result = toolkit(*shlex.split(located(line))[1:])
    assert result.code == EXPECTED_CODES.get(line, 0), result.err
    assert result.out or result.code or line.startswith(SILENT)


def test_there_are_documented_commands() -> None:
    lines = documented()
    assert len(lines) >= 12
    assert set(EXPECTED_CODES) <= set(lines)


@pytest.mark.usefixtures("drafted", "on_the_hub")
@pytest.mark.parametrize(("path", "command"), COMMANDS.items(), ids=[" ".join(path) for path in COMMANDS])
def test_every_command_has_help_with_examples_that_run(
    toolkit: Callable[..., Result], path: tuple[str, ...], command: click.Command
) -> None:
    text = (command.help or "").replace("\b", "")
    examples = [line.strip() for line in text.splitlines() if line.strip().startswith("toolkit ")]
    assert examples, f"{' '.join(path)} has no example"
    for example in examples:
        if example.startswith(SLOW):
            _understood(example)
            continue
        line = re.sub(r" > \S+$", "", example)
        result = toolkit(*shlex.split(line)[1:])
        assert result.code in (0, EXPECTED_CODES.get(line.removesuffix(" --json"), 3)), (example, result.err)
        assert "Traceback" not in result.err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=[" ".join(path) for path in COMMANDS])
def test_every_command_takes_json(command: click.Command) -> None:
    assert "--json" in [option for parameter in command.params for option in parameter.opts]


def test_the_readme_names_every_command() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for path in COMMANDS:
        if path != ("site", "build"):
            assert f"toolkit {' '.join(path)}" in readme or f"make {path[-1]}" in readme, path


def test_the_readme_names_the_digest_of_the_registration(case: Case) -> None:
    assert case.registration.sha256 in (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_files_that_exist() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"^\| `([\w./-]+)` \|", readme, re.MULTILINE):
        assert (CHECKOUT / name).exists(), name


def test_the_readme_table_shows_what_reproduce_prints(toolkit: Callable[..., Result]) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    printed = [_cells(line) for line in toolkit("decide", "--all").out.splitlines()]
    shown = [_cells(line) for line in readme.splitlines() if line.count("│") == 5]
    assert len(shown) == 5
    for cells in shown:
        assert cells in [line[: len(cells)] for line in printed]


def test_the_readme_shows_what_an_episode_prints(toolkit: Callable[..., Result]) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (command, shown) = re.findall(
        r"^\$ (toolkit episode [^\n]+)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE
    )[0]
    printed = toolkit(*shlex.split(command)[1:]).out
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()


def test_the_readme_shows_the_agents_as_measured(readme_table: str) -> None:
    assert readme_table in (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_the_estimators_readme_shows_the_coverage_as_measured() -> None:
    text = (CHECKOUT / "toolkit/estimators/README.md").read_text(encoding="utf-8")
    assert measure_coverage.table(measure_coverage.stored()) in text


@pytest.fixture
def readme_table() -> str:
    measured = json.loads((CHECKOUT / "tests/golden/agents.json").read_text(encoding="utf-8"))
    return measure_agents.table(measured)


def snippets() -> list[tuple[str, str]]:
    """Return every Python block of the documents with the document's name."""
    blocks = []
    for name in DOCUMENTS:
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        blocks += [
            (name, block) for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        ]
    return blocks


@pytest.mark.parametrize("code", [code for _, code in snippets()], ids=[name for name, _ in snippets()])
def test_a_documented_snippet_runs(tmp_path: Path, code: str) -> None:
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", located(code)],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def queries() -> list[tuple[str, str]]:
    """Return every SQL block of the cards with its study's name."""
    return [
        (name, block)
        for name in ("published", "embedded", "task-pools", "tiny-lm")
        for block in re.findall(
            r"^```sql\n(.*?)^```",
            (CHECKOUT / "cards" / f"{name}.md").read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
    ]


@pytest.mark.parametrize(("name", "query"), queries(), ids=[name for name, _ in queries()])
def test_a_query_of_a_card_has_an_answer(name: str, query: str) -> None:
    """A query of files runs in DuckDB as it is, any other on the views of `toolkit sql`."""
    import duckdb

    if "hf://" in query:
        assert duckdb.sql(located(query)).fetchall()
    else:
        assert ask(open_study(CHECKOUT / "registers" / name), query).rows


def test_every_card_loads_in_four_ways() -> None:
    for name in ("published", "embedded", "task-pools", "tiny-lm"):
        text = (CHECKOUT / "cards" / f"{name}.md").read_text(encoding="utf-8")
        assert f'load_dataset("OWNER/{name}"' in text
        assert f'_parquet("hf://datasets/OWNER/{name}@v1.0.0/' in text
        assert f"FROM 'hf://datasets/OWNER/{name}@v1.0.0/" in text
        assert f"--study OWNER/{name}@v1.0.0" in text


def test_an_address_on_the_hub_is_found_in_the_checkout() -> None:
    there = f"{CHECKOUT}/registers/task-pools"
    assert located("'hf://datasets/OWNER/task-pools@v1.0.0/x/*.parquet'") == f"'{there}/x/*.parquet'"
    assert located('("OWNER/task-pools", --study OWNER/task-pools@v1.0.0)') == f'("{there}", --study {there})'


def test_the_changelog_names_the_version() -> None:
    import toolkit

    assert f"## {toolkit.__version__}" in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version = "{toolkit.__version__}"' in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]
