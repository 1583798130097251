"""Every command has a document, whose schema follows from its type; every one is met, here or elsewhere."""

import ast
import json
import shlex
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import click
import pytest

from tests import printed
from tests.conftest import CHECKOUT, Toolkit, run
from tests.guide import commands
from toolkit.cli.main import cli
from toolkit.cli.schemas import DIALECT, ERROR, OUTPUTS, json_schema

SMALL = """
decide H2a gate2 --study published
explain H2a --study published
explain --language
verify published --depth rows
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


def test_a_schema_is_one_of_the_dialect_that_it_names() -> None:
    for name in OUTPUTS:
        assert printed.validator(name).META_SCHEMA["$id"] == DIALECT


def objects(name: str) -> list[Any]:
    """Return the objects of a document: those defined by name, and the whole."""
    made = json_schema(name)
    return [made, *made.get("$defs", {}).values()]


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_key_and_every_object_says_what_it_is(name: str) -> None:
    unsaid = [
        key
        for each in objects(name)
        for key, value in each.get("properties", {}).items()
        if "description" not in value and "$ref" not in json.dumps(value)
    ]
    assert unsaid == []
    assert all(each["description"] for each in objects(name) if "properties" in each)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_object_with_keys_is_closed(name: str) -> None:
    assert all(each["additionalProperties"] is False for each in objects(name) if "properties" in each)


@pytest.fixture(scope="module")
def decided() -> Any:
    return run("decide", "H2a", "--study", "published", "--json").json()


@pytest.mark.parametrize(
    ("defect", "says"),
    [
        (lambda d: d[0].pop("verdict"), r"at \$\[0\]: 'verdict' is a required property"),
        (lambda d: d[0].update(new=1), r"at \$\[0\]: .*'new' was unexpected"),
        (lambda d: d[0]["criteria"][0].update(holds="yes"), r"criteria\[0\].holds: 'yes' is not valid"),
        (lambda d: d[0].update(evidence="strong"), r"evidence: 'strong' is not one of"),
    ],
    ids=["a key removed", "an unknown key", "a wrong type", "an unknown word"],
)
def test_a_document_that_says_something_else_is_refused(decided: Any, defect: Any, says: str) -> None:
    document = deepcopy(decided)
    printed.check("decide", document)
    defect(document)
    with pytest.raises(AssertionError, match=says):
        printed.check("decide", document)


def test_every_document_of_a_test_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, document: Any) -> None:
        raise AssertionError(f"{name} was examined")

    monkeypatch.setattr(printed, "check", refuse)
    for arguments, name in (
        (("theory", "spurious", "--flip-rate", "0.1", "--json"), "theory spurious"),
        (("decide", "H99", "--json"), ERROR),
    ):
        with pytest.raises(AssertionError, match=f"{name} was examined"):
            run(*arguments)


def test_the_command_prints_the_schema_of_an_output(toolkit: Toolkit) -> None:
    assert "verify-prereg" in toolkit("schema", "--json").json()
    shown = toolkit("schema", "decide")
    assert json.loads(shown.out) == toolkit("schema", "decide", "--json").json()
    assert json.loads(shown.out)["title"] == "toolkit decide --json"
    toolkit("schema", "nothing").refused(2, "nothing", "verify-prereg")
