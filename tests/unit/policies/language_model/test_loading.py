"""A model in a folder: loaded with transformers, evaluated, told apart from others, refused in a line."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.unit.stack import require_stack

require_stack()

from small_model.untrained import make_model, make_tokenizer  # noqa: E402
from transformers.utils import logging  # noqa: E402

from toolkit.errors import IncompleteError, UsageError  # noqa: E402
from toolkit.policies.language_model.loading import load_chat, load_model  # noqa: E402
from toolkit.policies.language_model.opening import Opening, identify  # noqa: E402
from toolkit.tasks.pools import load_task  # noqa: E402

QUICK = (
    "--sets",
    "faults_p025",
    "--tasks",
    2,
    "--schedules",
    1,
    "--no-luck-share",
    "--max-tokens",
    20,
    "--json",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an untrained model that a laptop holds."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer(load_task(f"train:{number}").prompt for number in range(20))
    make_model(tokenizer, 1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_model_of_a_folder_is_evaluated(toolkit: Callable[..., Result], model: Path) -> None:
    result = toolkit("evaluate", "--model", model, *QUICK)
    assert result.code == 0, result.err
    (row,) = result.json()["sets"]
    assert (row["episodes"], row["success"]["estimate"]) == (2, 0.0)


def test_the_same_model_plays_the_same_episodes(
    toolkit: Callable[..., Result], model: Path, tmp_path: Path
) -> None:
    first, second = (
        toolkit("evaluate", "--model", model, *QUICK, "--out", tmp_path / str(n)).json() for n in range(2)
    )
    assert first["registers"]["logical_sha256"] == second["registers"]["logical_sha256"]


def test_a_folder_is_told_apart_by_its_weights(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"\0")
    opened, changed = (identify(Opening("transformers", str(folder))) for folder in (model, other))
    assert opened["weights"] != changed["weights"]
    assert opened == identify(Opening("transformers", str(model)))


def test_a_folder_that_was_moved_is_the_same_model(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / model.name)
    assert identify(Opening("transformers", str(tmp_path / model.name))) == identify(
        Opening("transformers", str(model))
    )


def test_an_identity_names_the_libraries(model: Path) -> None:
    import transformers

    libraries = identify(Opening("transformers", str(model)))["libraries"]
    assert libraries["transformers"] == transformers.__version__


def test_a_folder_has_no_revision(model: Path) -> None:
    with pytest.raises(UsageError, match="a revision is that of a model on the Hub"):
        identify(Opening("transformers", str(model), revision="main"))


def without(model: Path, tmp_path: Path, *names: str) -> Any:
    folder = tmp_path / "damaged"
    shutil.copytree(model, folder, ignore=lambda *_: names)
    return folder


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_alone(
    model: Path, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    load_model(str(model))
    assert ("Loading weights" in capsys.readouterr().err) is is_terminal
    assert logging.is_progress_bar_enabled()


def test_a_model_without_a_chat_template_is_refused(model: Path, tmp_path: Path) -> None:
    folder = without(model, tmp_path, "chat_template.jinja")
    with pytest.raises(UsageError, match="chat template cannot be used"):
        load_chat(str(folder))


def test_a_model_whose_calls_nobody_can_read_is_refused(model: Path, tmp_path: Path) -> None:
    folder = without(model, tmp_path)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    del config["response_template"]
    path.write_text(json.dumps(config))
    with pytest.raises(UsageError, match="answers cannot be read"):
        load_chat(str(folder))


def test_a_folder_without_weights_is_told_of(model: Path, tmp_path: Path) -> None:
    folder = without(model, tmp_path, "model.safetensors")
    with pytest.raises(IncompleteError, match="cannot be loaded") as raised:
        load_model(str(folder))
    assert "\n" not in (raised.value.found or "")


def test_a_folder_without_a_tokenizer_is_told_of(model: Path, tmp_path: Path) -> None:
    folder = without(model, tmp_path, "tokenizer.json", "tokenizer_config.json")
    with pytest.raises(IncompleteError, match="cannot be loaded"):
        load_chat(str(folder))


def test_a_folder_that_holds_no_adapter_is_told_of(model: Path, tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="cannot be loaded"):
        load_model(str(model), adapter=str(tmp_path))


def test_an_adapter_is_put_on_the_model(model: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(load_model(str(model)), LoraConfig(r=2, target_modules="all-linear"))
    adapted.save_pretrained(tmp_path)
    names = [name for name, _ in load_model(str(model), adapter=str(tmp_path)).named_parameters()]
    assert any("lora_A" in name for name in names)
