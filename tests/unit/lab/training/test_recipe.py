"""Recipes, and the arguments of libraries that they mean."""

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.probe import published
from tests.unit.stack import require_trainer
from toolkit.errors import RuleError, UsageError
from toolkit.lab.policies.language_model.options import read_options
from toolkit.lab.training.recipe import (
    accumulation,
    engine_options,
    grpo_arguments,
    load_recipe,
    lora_arguments,
    read_recipe,
    recipe_path,
    setting_sources,
    shipped,
)

PAPER = "qwen3.5-2b"


@pytest.fixture
def document() -> dict[str, Any]:
    document = tomllib.loads(recipe_path(PAPER).read_text(encoding="utf-8"))
    del document["sources"]
    return document


def test_a_setting_that_the_paper_does_not_print_says_so() -> None:
    recipe = load_recipe(PAPER)
    sources = setting_sources(PAPER, recipe, model=None, changes=())
    silent = {name for name, source in sources.items() if "not in the paper" in source}
    assert silent == {f"optimizer.{n}" for n in ("schedule", "warmup_steps", "weight_decay", "max_grad_norm")}
    assert {name for name, source in sources.items() if source == "the recipe"} == {"name"}


def test_the_revision_is_the_one_that_the_published_runs_record(published: Any) -> None:
    recorded = {row["model_commit"] for row in published.rows("runs")} - {None}
    assert recorded == {load_recipe(PAPER).revision}


@pytest.mark.parametrize(
    ("section", "key", "value", "said"),
    [
        ("lora", "rang", 8, "`rang`"),
        ("lora", "rank", "32", "`int`, got `str`"),
        ("lora", "rank", True, "`int`, got `bool`"),
        ("lora", "dropout", "0", "`float`, got `str`"),
        ("lora", "dropout", 1.0, "< 1.0"),
        ("engine", "thinking", 0, "`bool`"),
        ("engine", "kind", "sglang", "'sglang'"),
        ("engine", "gpu_memory", float("nan"), "> 0.0"),
        ("engine", "dtype", "int8", "'int8'"),
        ("engine", "sleep", 1, "`bool`"),
        ("engine", "conversations", -1, ">= 0"),
        ("engine", "tensor_parallel", 2, "`tensor_parallel`"),
        ("step", "rollouts", 1, ">= 2"),
        ("step", "micro_batch", 7, "cannot be divided"),
        ("step", "checkpoint_every", 30, "no checkpoint"),
        ("optimizer", "warmup_steps", 101, "never be reached"),
        ("optimizer", "learning_rate", 1e-5, "`str`, got `float`"),
        ("optimizer", "learning_rate", "fast", "not a rate"),
        ("sampling", "max_completion_tokens", 12288, "no room for a prompt"),
        ("packages", "trl", ">=1.12", "'>=1.12' has a form that is not allowed"),
        ("", "lora", 32, "`object`, got `int`"),
        ("", "model", " ", "a form that is not allowed"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_by_name(document, section, key, value, said) -> None:
    (document[section] if section else document)[key] = value
    with pytest.raises(RuleError, match=said) as caught:
        read_recipe(document, "here.toml")
    assert caught.value.where == "here.toml"


def test_a_setting_that_is_left_out_is_missed(document: dict[str, Any]) -> None:
    del document["loss"]["importance_sampling"]["max"]
    with pytest.raises(RuleError, match="`max`") as caught:
        read_recipe(document, "here.toml")
    assert "$.loss.importance_sampling" in str(caught.value)


@pytest.mark.parametrize("line", ['lora.rang = "app:training"', "lora.rank = 3"])
def test_a_source_of_no_setting_is_refused(tmp_path: Path, line: str) -> None:
    settings = recipe_path(PAPER).read_text(encoding="utf-8").partition("[sources]")[0]
    (tmp_path / "x.toml").write_text(f"{settings}\n[sources]\n{line}\n", encoding="utf-8")
    path = str(tmp_path / "x.toml")
    with pytest.raises(RuleError, match="sources are not those"):
        setting_sources(path, load_recipe(path), model=None, changes=())


def test_what_is_no_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("name =")
    with pytest.raises(RuleError, match="not TOML"):
        load_recipe(str(tmp_path / "x.toml"))
    with pytest.raises(UsageError, match="no recipe 'nothing'"):
        load_recipe("nothing")


def test_the_hash_does_not_depend_on_the_file_but_on_what_it_says(tmp_path: Path) -> None:
    text = recipe_path(PAPER).read_text(encoding="utf-8")
    bare = text.partition("[sources]")[0]
    (tmp_path / "bare.toml").write_text(bare.replace("dropout = 0.0", "dropout = 0"), encoding="utf-8")
    assert load_recipe(str(tmp_path / "bare.toml")).sha256() == load_recipe(PAPER).sha256()
    assert load_recipe(PAPER, changes=["lora.rank=16"]).sha256() != load_recipe(PAPER).sha256()


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_recipe_s_document_is_what_its_file_says_and_no_more(name: str) -> None:
    """Also where settings came later that it leaves out: a registration has frozen its hash."""
    written = tomllib.loads(recipe_path(name).read_text(encoding="utf-8"))
    del written["sources"]
    assert load_recipe(name).document() == written
    assert written["name"] == name


def test_a_setting_of_the_engine_that_is_left_out_can_be_asked_for() -> None:
    plain = load_recipe(PAPER)
    as_it_is = load_recipe(
        PAPER, changes=["engine.sleep=false", "engine.dtype=auto", "engine.conversations=0"]
    )
    assert as_it_is.sha256() == plain.sha256()
    of_engine = ("dtype", "sleep", "conversations", "prefix_caching", "batched_tokens")
    assert plain.left_out() == {f"engine.{name}" for name in of_engine}
    assert setting_sources(PAPER, plain, model=None, changes=())["engine.sleep"] == "its default: left out"
    changes = ["engine.sleep=true", "engine.dtype=float16", "engine.conversations=64"]
    changed = load_recipe(PAPER, changes=changes)
    assert (changed.engine.sleep, changed.engine.dtype, changed.engine.conversations) == (True, "float16", 64)
    assert changed.sha256() != plain.sha256()
    assert read_recipe(changed.document(), "here") == changed
    assert setting_sources(PAPER, changed, model=None, changes=changes)["engine.sleep"] == "--set"


@pytest.mark.parametrize("change", ["engine.sleep=true", "engine.dtype=float32", "engine.prefix_caching=off"])
def test_what_is_vllm_s_alone_is_refused_without_it(change: str) -> None:
    with pytest.raises(UsageError, match="is vLLM's alone"):
        load_recipe("small", changes=[change])


def test_a_recipe_that_says_nothing_of_scoring_keeps_its_digest() -> None:
    """Registrations that are frozen have recipes of before."""
    assert load_recipe("small").sha256() == "29922d73dab632cf81a71b37f6cd5bcb82ec44ba91f2e07900377516728ce290"
    assert load_recipe("small").settings()["step.scored_at_once"] == 0
    assert load_recipe(PAPER).document()["step"]["scored_at_once"] == 1


def test_changes_are_typed_by_their_setting() -> None:
    recipe = load_recipe(
        PAPER,
        changes=["lora.rank=16", "engine.thinking=true", "lora.dropout=0", "optimizer.learning_rate=3e-6"],
    )
    assert (recipe.lora.rank, recipe.engine.thinking) == (16, True)
    assert (recipe.lora.dropout, recipe.optimizer.learning_rate) == (0.0, "3e-6")
    assert type(recipe.lora.dropout) is float


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("lora.rank", "changes no setting"),
        ("lora=3", "changes no setting"),
        ("lora.rank=3.5", "not a whole number"),
        ("engine.thinking=no", "not true or false"),
        ("step.micro_batch=5", "cannot be divided"),
        ("packages.trl=newest", "a form that is not allowed"),
    ],
)
def test_a_change_that_cannot_be_is_wrong_usage(change: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_recipe(PAPER, changes=[change])


def test_another_model_has_no_revision_of_the_recipe_s_and_what_was_changed_says_by_what() -> None:
    pinned = load_recipe(PAPER, model="some/other", changes=["revision=abc"])
    assert pinned.revision == "abc"
    changes = ["lora.rank=16"]
    recipe = load_recipe(PAPER, model="some/other", changes=changes)
    assert (recipe.model, recipe.revision) == ("some/other", "")
    sources = setting_sources(PAPER, recipe, model="some/other", changes=changes)
    assert sources["lora.rank"] == "--set"
    assert sources["model"] == "--model"
    assert sources["step.prompts"] == "app:training"
    assert sources["packages.trl"] == "app:training"


OF_PAPER = load_recipe("qwen3.5-2b")
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
    given = grpo_arguments(OF_PAPER, Path("x"), 0)
    for name in (
        *("lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm"),
        *("vllm_importance_sampling_correction", "vllm_importance_sampling_mode"),
        *("vllm_importance_sampling_clip_max", "vllm_importance_sampling_clip_min"),
        *("loss_type", "beta", "scale_rewards", "top_p", "top_k", "min_p", "repetition_penalty"),
    ):
        assert given[name] == defaults[name], name


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
    assert engine_options(OF_PAPER).for_vllm() == {}
    faster = load_recipe(PAPER, changes=["engine.prefix_caching=off", "engine.batched_tokens=8192"])
    expected = {"enable_prefix_caching": False, "max_num_batched_tokens": 8192}
    assert engine_options(faster).for_vllm() == expected
    assert read_options(["prefix_caching=off", "batched_tokens=8192"], "vllm") == engine_options(faster)
    with pytest.raises(UsageError, match="never sleeps"):
        grpo_arguments(recipe, tmp_path, 0, cpu=True)


def test_several_processes_share_a_step() -> None:
    assert accumulation(OF_PAPER, 8) == 12
    assert grpo_arguments(OF_PAPER, Path("x"), 0, processes=8)["gradient_accumulation_steps"] == 12
    with pytest.raises(UsageError, match="share a step evenly"):
        accumulation(OF_PAPER, 5)


def the_published(*, with_images: bool) -> Any:
    """Return the published architecture without weights: with its class's tower for images, or text alone."""
    import torch
    import transformers

    text = transformers.Qwen3_5TextConfig(**published.TEXT)
    with torch.device("meta"):
        if with_images:
            return transformers.Qwen3_5ForConditionalGeneration(
                transformers.Qwen3_5Config(text_config=published.TEXT)
            )
        return transformers.Qwen3_5ForCausalLM(text)


@pytest.mark.parametrize("with_images", [True, False], ids=["with its tower for images", "text alone"])
def test_the_published_architecture_gets_the_paper_s_coordinates_and_its_tower_none(*, with_images) -> None:
    """33,638,400, in 186 linear maps of the text model."""
    require_trainer()
    from peft import LoraConfig, get_peft_model

    model = the_published(with_images=with_images)
    assert with_images == any("visual" in name for name, _ in model.named_modules())
    made = LoraConfig(**lora_arguments(OF_PAPER, model))
    assert (made.r, made.lora_alpha, made.lora_dropout, made.target_modules) == (32, 64, 0.0, "all-linear")
    assert (made.exclude_modules is not None) == with_images
    adapted = get_peft_model(model, made)
    trained = {name: p.numel() for name, p in adapted.named_parameters() if p.requires_grad}
    assert sum(trained.values()) == 33_638_400
    assert len(trained) == 2 * 186
    assert not [name for name in trained if "visual" in name or "lm_head" in name]
