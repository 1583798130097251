"""A recipe as TRL's and PEFT's own classes understand it."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.probe import published
from tests.unit.stack import require_trainer
from toolkit.errors import UsageError
from toolkit.lab.training.recipe import load_recipe
from toolkit.lab.training.settings import accumulation, engine_options, grpo_arguments, lora_arguments

PAPER = load_recipe("qwen3.5-2b")
WITHOUT_GPU = load_recipe("qwen3.5-2b", changes=["engine.kind=transformers"])


@pytest.fixture(scope="module")
def grpo() -> Any:
    require_trainer()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl import GRPOConfig

    return GRPOConfig


def config(grpo: Any, folder: Path, **changed: Any) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return grpo(**grpo_arguments(WITHOUT_GPU, folder, 7, cpu=True, **changed))


def test_trl_takes_every_argument_and_keeps_its_value(grpo: Any, tmp_path: Path) -> None:
    made = config(grpo, tmp_path)
    for name, value in grpo_arguments(WITHOUT_GPU, tmp_path, 7, cpu=True).items():
        assert getattr(made, name) == value, name
    # A step is one generation batch of whole groups.
    assert made.generation_batch_size == 24 * 8
    assert made.steps_per_generation == made.gradient_accumulation_steps == 96
    assert config(grpo, tmp_path, scale_rewards="none").scale_rewards == "none"


def test_what_the_paper_leaves_to_the_trainer_is_the_trainer_s_default(grpo: Any) -> None:
    defaults = {f.name: f.default for f in fields(grpo) if f.default is not MISSING}
    given = grpo_arguments(PAPER, Path("x"), 0)
    for name in (
        *("lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm"),
        *("vllm_importance_sampling_correction", "vllm_importance_sampling_mode"),
        *("vllm_importance_sampling_clip_max", "vllm_importance_sampling_clip_min"),
        *("loss_type", "beta", "scale_rewards", "top_p", "top_k", "min_p", "repetition_penalty"),
    ):
        assert given[name] == defaults[name], name


def test_the_arguments_for_a_gpu_are_the_paper_s() -> None:
    given = grpo_arguments(PAPER, Path("x"), 3)
    assert given["bf16"]
    assert given["use_vllm"]
    assert (given["vllm_mode"], given["vllm_gpu_memory_utilization"]) == ("colocate", 0.35)
    assert (given["learning_rate"], given["max_completion_length"]) == (1e-5, 6144)
    assert given["chat_template_kwargs"] == {"enable_thinking": False}
    assert (given["save_steps"], given["max_steps"], given["seed"]) == (20, 100, 3)


def test_engine_options_reach_trl_and_what_it_does_not_take_reaches_vllm(grpo: Any, tmp_path: Path) -> None:
    changes = ["engine.gpu_memory=0.2", "sampling.context=8192", "engine.sleep=true"]
    recipe = load_recipe("qwen3.5-2b", changes=[*changes, "engine.dtype=float16", "engine.conversations=48"])
    given = grpo_arguments(recipe, tmp_path, 0)
    names = {f.name for f in fields(grpo)}
    told = {name: value for name, value in given.items() if name in names and name.startswith("vllm_")}
    assert told["vllm_gpu_memory_utilization"] == 0.2
    assert told["vllm_max_model_length"] == 8192
    assert told["vllm_enable_sleep_mode"] is True
    assert engine_options(recipe).for_vllm() == {"dtype": "float16", "max_num_seqs": 48}
    assert engine_options(PAPER).for_vllm() == {}
    with pytest.raises(UsageError, match="never sleeps"):
        grpo_arguments(recipe, tmp_path, 0, cpu=True)


def test_several_processes_share_a_step() -> None:
    assert accumulation(PAPER, 8) == 12
    assert grpo_arguments(PAPER, Path("x"), 0, processes=8)["gradient_accumulation_steps"] == 12
    with pytest.raises(UsageError, match="share a step evenly"):
        accumulation(PAPER, 5)


def test_a_constant_rate_with_a_warm_up_is_the_trainer_s_word_for_it() -> None:
    recipe = load_recipe("qwen3.5-2b", changes=["optimizer.schedule=constant", "optimizer.warmup_steps=5"])
    assert grpo_arguments(recipe, Path("x"), 0)["lr_scheduler_type"] == "constant_with_warmup"


def without_weights(config: Any) -> Any:
    """Return a model of a configuration on the meta device, as its own class."""
    import torch
    import transformers

    architecture = getattr(transformers, config.architectures[0])
    with torch.device("meta"):
        return architecture(config)


def the_published(*, with_images: bool) -> Any:
    """Return the published architecture: with the tower for images of its class, or its text model alone."""
    import transformers

    text = published.TEXT
    if not with_images:
        return without_weights(transformers.Qwen3_5TextConfig(**text, architectures=["Qwen3_5ForCausalLM"]))
    return without_weights(
        transformers.Qwen3_5Config(text_config=text, architectures=["Qwen3_5ForConditionalGeneration"])
    )


@pytest.mark.parametrize("with_images", [True, False], ids=["with its tower for images", "text alone"])
def test_the_published_architecture_gets_the_paper_s_coordinates_and_its_tower_none(
    *, with_images: bool
) -> None:
    """33,638,400, in 186 linear maps of the text model."""
    require_trainer()
    from peft import LoraConfig, get_peft_model

    model = the_published(with_images=with_images)
    assert with_images == any("visual" in name for name, _ in model.named_modules())
    adapted = get_peft_model(model, LoraConfig(**lora_arguments(PAPER, model)))
    trained = {name: p.numel() for name, p in adapted.named_parameters() if p.requires_grad}
    assert sum(trained.values()) == 33_638_400
    assert len(trained) == 2 * 186
    assert not [name for name in trained if "visual" in name or "lm_head" in name]


def test_peft_takes_the_adapter_s_settings() -> None:
    require_trainer()
    from peft import LoraConfig

    model = the_published(with_images=False)
    made = LoraConfig(**lora_arguments(PAPER, model))
    assert (made.r, made.lora_alpha, made.lora_dropout, made.target_modules) == (32, 64, 0.0, "all-linear")
    assert made.exclude_modules is None
