"""A model's sizes, against the library's own models and the published register."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack import require_trainer
from toolkit.errors import IncompleteError
from toolkit.lab.training.architecture import architecture_of, find_model

QWEN = "Qwen/Qwen3.5-2B"


def small(**changed: Any) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": 101,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        **changed,
    }


HYBRID = small(
    model_type="qwen3_5_text",
    num_hidden_layers=4,
    head_dim=16,
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=8,
    linear_value_head_dim=16,
    linear_conv_kernel_dim=4,
    tie_word_embeddings=True,
)


def test_adapters_of_the_published_rank_have_the_published_number_of_coordinates(published: Any) -> None:
    recorded = {row["coordinates"] for row in published.rows("probe_checkpoints")}
    assert recorded == {find_model(QWEN).architecture.adapter_parameters(32)}


@pytest.mark.parametrize(
    "config",
    [
        small(),
        small(model_type="mistral", head_dim=16),
        small(model_type="qwen2", tie_word_embeddings=True),
        small(model_type="qwen3", head_dim=16),
        HYBRID,
    ],
    ids=lambda config: config["model_type"],
)
def test_parameters_are_those_of_the_library_s_model(config: dict[str, Any]) -> None:
    require_trainer()
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    given = {name: value for name, value in config.items() if name != "model_type"}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **given))
    made = architecture_of(config, "here")
    assert made.parameters == sum(p.numel() for p in model.parameters())
    maps = [m for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and name != "lm_head"]
    assert made.adapter_parameters(8) == sum(8 * (m.in_features + m.out_features) for m in maps)


@pytest.mark.parametrize(("name", "billions"), [(QWEN, 1.88), ("dense-70b", 70.55)])
def test_listed_models_have_about_the_parameters_of_their_names(name: str, billions: float) -> None:
    assert find_model(name).architecture.parameters / 1e9 == pytest.approx(billions, abs=0.01)


def test_one_layer_in_four_of_the_hybrid_keeps_keys_and_values() -> None:
    model = find_model(QWEN).architecture
    assert (model.full_layers, model.linear_layers) == (6, 18)
    # 6 layers, a key and a value, 2 heads of 256, 2 bytes.
    assert model.cache_bytes_per_token(2) == 6 * 2 * 2 * 256 * 2


def test_the_sizes_of_the_model_that_lies_with_the_package_are_known_without_the_hub() -> None:
    found = find_model("small").architecture
    assert found.parameters == 583_024  # as its README and the registration of its study say
    assert found.adapter_parameters(4) == 30_784


def test_an_architecture_is_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_5", "text_config": HYBRID}))
    assert find_model(str(tmp_path)).architecture == architecture_of(HYBRID, "here")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        (json.dumps(small(model_type="mixtral")), "not counted here"),
        (json.dumps({"model_type": "llama"}), "lacks a size"),
        (json.dumps(small(layer_types=["full_attention"])), "lacks a size"),
    ],
)
def test_a_configuration_that_says_no_sizes_is_incomplete(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(IncompleteError, match=said):
        find_model(str(tmp_path))


def test_a_folder_without_a_model_is_incomplete(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="holds no model"):
        find_model(str(tmp_path))
