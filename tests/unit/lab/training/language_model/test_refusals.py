"""Models that cannot be trained, engines that die, memory that does not suffice: a line that says so."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.unit.lab.training.language_model.small_model import specified
from tests.unit.lab.training.language_model.trained import opened, trained
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.policies.language_model.conversation import as_text
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.language_model.groups import BackOffice, Dispatch
from toolkit.noise.regimes import REGIMES


@pytest.fixture
def folder(model: str, tmp_path: Path) -> Path:
    """Return a copy of the model, to be damaged."""
    return Path(shutil.copytree(model, tmp_path / "model"))


def opened_in(folder: Path, *settings: str) -> Any:
    return opened(str(folder), folder.parent / "run", specified(str(folder), settings), [])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("message.tool_calls", "[]", "leaves out tool calls"),
        ("'tool'", "'nobody'", ""),
        ("'tool' %}", "'tool' %}{{ raise_exception('tools are not supported') }}", "tools are not supported"),
        # Once an answer follows: what was sampled is not what is trained on.
        (
            "{{ '<assistant>' + (",
            "{{ ('' if loop.last else '-') + '<assistant>' + (",
            "writes a turn in another way",
        ),
    ],
    ids=["no calls", "no answers", "no tools", "turns rewritten"],
)
def test_a_template_that_no_tools_can_be_called_with_is_refused(folder, old, new, reason) -> None:
    path = folder / "chat_template.jinja"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UsageError, match="cannot be used for tool calling") as raised:
        opened_in(folder)
    assert reason in str(raised.value.found)
    assert raised.value.remedy


def test_a_recipe_s_context_that_a_prompt_fills_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="context is too small") as raised:
        opened_in(folder, "sampling.context=40", "sampling.max_completion_tokens=10")
    assert raised.value.found == "40 tokens"


def test_a_model_s_context_that_a_prompt_fills_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"max_position_embeddings": 50}))
    with pytest.raises(UsageError, match="context is too small") as raised:
        opened_in(folder)
    assert raised.value.found == "50 tokens"


def test_a_rollout_has_no_more_tokens_than_the_recipe_s_context(model, tmp_path, capsys) -> None:
    """Nor has an evaluation; and nothing is printed on stdout, where what a command was asked for stands."""
    run = trained(
        model, tmp_path, ["step.steps=1", "sampling.context=200", "sampling.max_completion_tokens=150"]
    )
    (step,) = run.steps
    lengths = [len(step.prompt(at)) + len(step.completion(at)[0]) for at in range(16)]
    assert max(lengths) <= 200
    assert run.session.engine().context == 200
    assert capsys.readouterr().out == ""


def test_too_little_memory_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import Qwen3_5ForCausalLM

    full = Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB."))
    session = opened_in(folder)
    monkeypatch.setattr(session.trainer.model.get_base_model(), "forward", full)
    with pytest.raises(IncompleteError, match="not enough memory for the conversations"):
        session.train(None)
    monkeypatch.setattr(Qwen3_5ForCausalLM, "from_pretrained", full)
    with pytest.raises(IncompleteError, match="not enough memory to train") as raised:
        opened_in(folder)
    assert raised.value.remedy


@pytest.mark.parametrize("arguments", [[1, 2], "3", 3, True])
def test_arguments_that_are_no_object_reach_the_desk_as_they_are(arguments: Any) -> None:
    """TRL calls `tool(**arguments)`, which would cost nothing for these."""
    from toolkit.lab.training.language_model.trainer import reader

    function = {"name": "wait", "arguments": arguments}
    message = reader(lambda: {"tool_calls": [{"type": "function", "function": function}]})()
    (call,) = message["tool_calls"]
    environment = BackOffice()
    environment.reset(task=3, regime="clean", schedule_seed=1)
    answer = Dispatch(environment)["wait"](**call["function"]["arguments"])
    desk = Desk(load_task("train:3"), REGIMES["clean"], 1)
    assert answer == as_text(desk.call("wait", arguments))
    assert environment._desk.calls == desk.calls == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("message", [None, {}, {"tool_calls": None}, {"tool_calls": ["x"]}, {"content": "x"}])
def test_a_message_without_calls_is_left_as_it_is(message: Any) -> None:
    from toolkit.lab.training.language_model.trainer import reader

    assert reader(lambda: message)() == message


def test_a_call_whose_arguments_are_left_out_has_none() -> None:
    from toolkit.lab.policies.language_model.chat import Chat

    for function in ({"name": "finish"}, {"name": "finish", "arguments": None}):
        message = {"tool_calls": [{"type": "function", "function": function}]}
        tokenizer = SimpleNamespace(parse_response=lambda *_, message=message, **__: message)
        assert Chat(tokenizer).turn([1], [2], cut=False).calls == (("finish", {}),)
