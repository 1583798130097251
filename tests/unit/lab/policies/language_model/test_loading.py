"""A model in a folder: loaded with transformers, evaluated, told apart from others, refused in a line."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack import require_stack, require_trainer

require_stack()

import transformers  # noqa: E402

from toolkit.errors import IncompleteError, UsageError  # noqa: E402
from toolkit.lab.policies.language_model.loading import load_chat, load_model  # noqa: E402
from toolkit.lab.policies.language_model.opening import Opening, identify  # noqa: E402

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
def model(model: str) -> Path:
    return Path(model)


def test_a_model_of_a_folder_is_evaluated_and_plays_the_same_episodes_again(toolkit, model, tmp_path) -> None:
    results = [toolkit("evaluate", "--model", model, *QUICK, "--out", tmp_path / out) for out in "ab"]
    assert results[0].code == 0, results[0].err
    first, second = (result.json() for result in results)
    (row,) = first["sets"]
    assert (row["episodes"], row["success"]["estimate"]) == (2, 0.0)
    assert first["registers"]["logical_sha256"] == second["registers"]["logical_sha256"]


def test_a_folder_is_told_apart_by_its_weights(model: Path, tmp_path: Path) -> None:
    """It may be moved; other libraries sample other tokens."""
    identity, moved = identify(Opening("transformers", str(model))), tmp_path / model.name
    assert identity["libraries"]["transformers"] == transformers.__version__
    shutil.copytree(model, moved)
    assert identify(Opening("transformers", str(moved))) == identity
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"\0")
    assert identify(Opening("transformers", str(moved)))["weights"] != identity["weights"]


def test_a_folder_has_no_revision(model: Path) -> None:
    with pytest.raises(UsageError, match="a revision is that of a model on the Hub"):
        identify(Opening("transformers", str(model), revision="main"))


def without(model: Path, tmp_path: Path, *names: str) -> Any:
    folder = tmp_path / "damaged"
    shutil.copytree(model, folder, ignore=lambda *_: names)
    return folder


def test_a_model_whose_calls_nobody_can_read_is_refused(model: Path, tmp_path: Path) -> None:
    folder = without(model, tmp_path)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    del config["response_template"]
    path.write_text(json.dumps(config))
    with pytest.raises(UsageError, match="answers cannot be read"):
        load_chat(str(folder))


def test_a_tokenizer_of_a_known_family_reads_calls_as_trl_has_it(model: Path, tmp_path: Path) -> None:
    """Qwen3.5's template as TRL knows it, on a tokenizer that does not say how answers are read."""
    require_trainer()
    from trl.chat_template_utils import qwen3_5_nothink_chat_template

    tokenizer: Any = load_chat(str(model)).tokenizer
    tokenizer.response_template, tokenizer.chat_template = None, qwen3_5_nothink_chat_template
    tokenizer.save_pretrained(tmp_path)
    chat = load_chat(str(tmp_path), None, (("enable_thinking", False),))
    call = "<tool_call>\n<function=finish>\n<parameter=note>\ndone\n</parameter>\n</function>\n</tool_call>"
    (read,) = chat.tokenizer.parse_response(f"{call}<|im_end|>", prefix="")["tool_calls"]
    assert read["function"] == {"name": "finish", "arguments": {"note": "done"}}


@pytest.mark.parametrize(
    ("names", "load", "error", "problem"),
    [
        (["chat_template.jinja"], load_chat, UsageError, "chat template cannot be used"),
        (["tokenizer.json", "tokenizer_config.json"], load_chat, IncompleteError, "cannot be loaded"),
        (["model.safetensors"], load_model, IncompleteError, "cannot be loaded"),
        ([], partial(load_model, adapter=str(Path(__file__).parent)), IncompleteError, "cannot be loaded"),
    ],
)
def test_a_folder_that_lacks_a_part_is_told_of_in_a_line(
    model: Path, tmp_path: Path, names: list[str], load: Callable[[str], Any], error: type, problem: str
) -> None:
    with pytest.raises(error, match=problem) as raised:
        load(str(without(model, tmp_path, *names)))
    assert "\n" not in (raised.value.found or "")


def test_an_adapter_of_a_model_with_a_tower_for_images_is_applied_to_the_bit(tmp_path: Path) -> None:
    """It fits the class that it was trained on, and not the text model alone."""
    import torch
    from peft import LoraConfig, get_peft_model

    from toolkit.lab.training.recipe import load_recipe, lora_arguments

    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    linear = {f"linear_{name}": 2 for name in ("num_key_heads", "num_value_heads")}
    linear |= {f"linear_{name}": 16 for name in ("key_head_dim", "value_head_dim")}
    layers = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
    text = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, **heads, **linear, **layers}
    images = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32}
    config = transformers.Qwen3_5Config(text_config=text, vision_config=images, tie_word_embeddings=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        transformers.Qwen3_5ForConditionalGeneration(config).save_pretrained(tmp_path / "base")
        base = load_model(str(tmp_path / "base"))
        trained = get_peft_model(base, LoraConfig(**lora_arguments(load_recipe("qwen3.5-2b"), base)))
        for name, tensor in trained.named_parameters():
            if "lora_" in name:
                tensor.data.normal_(0, 0.3)
    trained.eval().save_pretrained(tmp_path / "adapter")
    loaded = load_model(str(tmp_path / "base"), adapter=str(tmp_path / "adapter"))
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        found, expected = (model(input_ids=tokens).logits for model in (loaded, trained))
        with trained.disable_adapter():
            plain = trained(input_ids=tokens).logits
    assert torch.equal(found, expected)
    assert not torch.allclose(found, plain, atol=0.01)
