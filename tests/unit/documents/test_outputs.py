"""Every command has a document, and every document is met: by a small run here, or by its own tests."""

import ast
import shlex
from collections.abc import Iterator
from typing import Any

import click
import pytest

from tests import printed
from tests.conftest import CHECKOUT, run
from tests.guide import commands
from toolkit.cli.main import cli
from toolkit.documents.outputs import ERROR, OUTPUTS

SMALL = """
decide H2a gate2 --study published
explain H2a --study published
explain --language
verify published
verify paired-rollouts --depth registration
verify-prereg paired-rollouts
new-study mine --into project
freeze mine --template
amend --template
deviate --template
registers build published --check
registers diff published task-pools
registers list
registers schema
registers verify --study task-pools
export published --as in-toto --rule H2a
sql "SELECT * FROM runs"
sql "FROM runs" --parquet runs.parquet
pools show validation:0
episode play --regime challenge --agent careless
evaluate --model reference --sets clean --tasks 2 --schedules 1 --out kept
evaluate --model careless --sets clean --tasks 1 --schedules 1 --no-luck-share
draw 0 get_order O-10233 0
backoffice schema
backoffice schema --format openai
backoffice schema --format openapi
pairing inspect registers/tiny-lm
theory bandit --flip-rate 0.1
theory condition --successes 5
theory condition --successes 0 --silent
theory drift --flip-rate 0.1 --batch 2
theory equal-variance --ratio 0.63
theory luck --share 1
theory spurious --flip-rate 0.1
power H2a --study published --effect 0.03 --seeds 3 --simulations 10
train --recipe qwen3.5-2b --dry-run --gpus 8 --seconds-per-step 420
study status tiny-lm
probe advise --study embedded --run c2-paired-s100 --step 100 --tasks 8
probe drift --groups 40 --batch 1
probe report --study published
probe report --study embedded --trajectory base
schema
schema error
completion bash
"""
"""What takes a second or two."""

ELSEWHERE = {
    "adopt": "tests/unit/cli/test_adopt.py",
    "amend": "tests/unit/cli/test_freeze.py",
    "deviate": "tests/unit/cli/test_freeze.py",
    "episode replay": "tests/transcripts/episode.md",
    "freeze": "tests/unit/cli/test_freeze.py",
    "noise propose": "tests/unit/noise/pairing/test_proxy.py",
    "noise replay": "tests/unit/noise/pairing/test_proxy.py",
    "pairing verify": "tests/unit/noise/pairing/test_groups.py",
    "pools build": "tests/transcripts/slow-pools.md",
    "pools list": "tests/transcripts/pools.md",
    "pools verify": "tests/transcripts/pools.md",
    "probe run": "tests/unit/lab/commands/test_model_probe.py",
    "registers audit": "tests/transcripts/replay.md",
    "registers card": "tests/unit/verification/test_card.py",
    "registers import": "tests/unit/drafting/test_importing.py",
    "registers pull": "tests/hub/test_pull.py",
    "registers push": "tests/hub/test_pull.py",
    "rehearse": "tests/transcripts/rehearse.md",
    "reproduce": "tests/unit/cli/test_commands.py",
    "site build": "tests/unit/site/test_commands.py",
    "site check": "tests/unit/site/test_commands.py",
    "site serve": "tests/unit/site/test_commands.py",
    "study run": "tests/transcripts/study.md",
    "verify-token": "tests/transcripts/token.md",
    "world check": "tests/unit/lab/worlds/bfcl/test_world.py",
}
"""Commands that need more than the checkout, or longer, and the tests in which they print their document."""

SILENT = {"backoffice mcp", "noise mcp"}
"""Their stdout belongs to a protocol: the only document that they print is that of an error."""

LINES = SMALL.strip().splitlines()


def test_every_command_has_a_document_and_nothing_else_has() -> None:
    listed = {printed.document_name(" ".join(path)) for path, _ in commands(cli)}
    assert sorted(listed - set(OUTPUTS)) == []
    for name in set(OUTPUTS) - {ERROR}:  # under its former name, too
        found: click.Command | None = cli
        for word in name.split():
            assert isinstance(found, click.Group), name
            found = found.get_command(click.Context(found), word)
        assert found is not None, name


def test_every_document_is_met() -> None:
    here = {printed.command_of((*shlex.split(line), "--json")) for line in LINES}
    assert here | set(ELSEWHERE) | SILENT | {ERROR} == set(OUTPUTS)


def statements(path: str) -> Iterator[set[str]]:
    """Yield the words of every simple statement of a test file that asks for a document."""
    text = (CHECKOUT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        yield from (set(line.split()) for line in text.splitlines() if "--json" in line)
        return
    tree = ast.parse(text)
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")):
        words = {
            word
            for part in ast.walk(node)
            for text in [getattr(part, "value", None), getattr(part, "id", None)]
            if isinstance(text, str)
            for word in text.lower().split()
        }
        if "--json" in words:
            yield words


@pytest.mark.parametrize(("command", "path"), ELSEWHERE.items())
def test_a_test_that_is_named_asks_for_the_document(command: str, path: str) -> None:
    word = (
        "built" if command == "site build" else command.rsplit(maxsplit=1)[-1]
    )  # that file has it in a constant
    assert any(word in words for words in statements(path))


@pytest.mark.parametrize("line", LINES)
def test_a_document_is_what_its_schema_says(line, tmp_path, monkeypatch) -> None:
    met: list[str] = []

    def check(name: str, document: Any) -> None:
        met.append(name)
        examine(name, document)

    examine = printed.check
    monkeypatch.setattr(printed, "check", check)
    monkeypatch.chdir(tmp_path)
    words = [word.replace("registers/", f"{CHECKOUT}/registers/") for word in shlex.split(line)]
    result = run(*words, "--json")
    assert met == [printed.command_of((*words, "--json"))], result.err
