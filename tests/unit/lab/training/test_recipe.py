"""Recipes: strict reading, what a command changes, and the paper's settings."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import RuleError, UsageError
from toolkit.lab.training.recipe import load_recipe, read_recipe, recipe_path, setting_sources, shipped

PAPER = "qwen3.5-2b"
# Of the paper, app:training, "Trainer settings" and "Stack".
PRINTED = {
    "model": "Qwen/Qwen3.5-2B",
    "dtype": "bfloat16",
    "lora.rank": 32,
    "lora.alpha": 64,
    "lora.dropout": 0.0,
    "lora.target": "all-linear",
    "step.prompts": 24,
    "step.rollouts": 8,
    "step.micro_batch": 2,
    "step.steps": 100,
    "step.checkpoint_every": 20,
    "optimizer.learning_rate": "0.00001",
    "sampling.temperature": 1.0,
    "sampling.max_completion_tokens": 6144,
    "sampling.max_turns": 24,
    "sampling.context": 12288,
    "loss.type": "dapo",
    "loss.beta": 0.0,
    "loss.scale_rewards": "group",
    "loss.importance_sampling.level": "sequence_mask",
    "loss.importance_sampling.max": 3.0,
    "engine.kind": "vllm",
    "engine.gpu_memory": 0.35,
    "engine.thinking": False,
    "packages.trl": "1.12.0",
    "packages.vllm": "0.27.1",
    "packages.transformers": "5.16.1",
    "packages.peft": "0.20.0",
    "packages.flash-linear-attention": "0.5.2",
}


@pytest.fixture
def document() -> dict[str, Any]:
    document = tomllib.loads(recipe_path(PAPER).read_text(encoding="utf-8"))
    del document["sources"]
    return document


def test_the_paper_s_recipe_has_the_settings_that_the_paper_prints() -> None:
    settings = load_recipe(PAPER).settings()
    assert {name: settings[name] for name in PRINTED} == PRINTED


def test_a_setting_that_the_paper_does_not_print_says_so() -> None:
    recipe = load_recipe(PAPER)
    sources = setting_sources(PAPER, recipe, model=None, changes=())
    silent = {name for name, source in sources.items() if "not in the paper" in source}
    assert silent == {f"optimizer.{n}" for n in ("schedule", "warmup_steps", "weight_decay", "max_grad_norm")}
    assert {name for name, source in sources.items() if source == "the recipe"} == {"name"}


def test_the_revision_is_the_one_that_the_published_runs_record(published: Any) -> None:
    recorded = {row["model_commit"] for row in published.rows("runs")} - {None}
    assert recorded == {load_recipe(PAPER).revision}


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_recipe_can_be_read_and_bears_its_file_s_name(name: str) -> None:
    assert load_recipe(name).name == name


@pytest.mark.parametrize(
    ("section", "key", "value", "said"),
    [
        ("lora", "rang", 8, "does not know"),
        ("lora", "rank", "32", "not a whole number"),
        ("lora", "rank", True, "not a whole number"),
        ("lora", "dropout", "0", "not a number"),
        ("lora", "dropout", 1.0, "is a share"),
        ("engine", "thinking", 0, "not true or false"),
        ("engine", "kind", "sglang", "none of its words"),
        ("engine", "gpu_memory", float("nan"), "not above zero"),
        ("engine", "dtype", "int8", "none of its words"),
        ("engine", "sleep", 1, "not true or false"),
        ("engine", "conversations", -1, "too small"),
        ("engine", "tensor_parallel", 2, "does not know"),
        ("step", "rollouts", 1, "too small"),
        ("step", "micro_batch", 7, "cannot be divided"),
        ("step", "checkpoint_every", 30, "no checkpoint"),
        ("optimizer", "warmup_steps", 101, "never be reached"),
        ("optimizer", "learning_rate", 1e-5, "not text"),
        ("optimizer", "learning_rate", "fast", "no rate"),
        ("sampling", "max_completion_tokens", 12288, "no room for a prompt"),
        ("packages", "trl", ">=1.12", "no exact version"),
        ("", "lora", 32, "not a section"),
        ("", "model", " ", "is empty"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_by_name(
    document: dict[str, Any], section: str, key: str, value: object, said: str
) -> None:
    (document[section] if section else document)[key] = value
    with pytest.raises(RuleError, match=said) as caught:
        read_recipe(document, "here.toml")
    assert caught.value.where == "here.toml"


def test_a_setting_that_is_left_out_is_missed(document: dict[str, Any]) -> None:
    del document["loss"]["importance_sampling"]["max"]
    with pytest.raises(RuleError, match="lacks") as caught:
        read_recipe(document, "here.toml")
    assert caught.value.found == "loss.importance_sampling.max"


@pytest.mark.parametrize("line", ['lora.rang = "app:training"', "lora.rank = 3"])
def test_a_source_of_no_setting_is_refused(tmp_path: Path, line: str) -> None:
    settings = recipe_path(PAPER).read_text(encoding="utf-8").partition("[sources]")[0]
    (tmp_path / "x.toml").write_text(f"{settings}\n[sources]\n{line}\n", encoding="utf-8")
    path = str(tmp_path / "x.toml")
    with pytest.raises(RuleError, match="sources are not those"):
        setting_sources(path, load_recipe(path), model=None, changes=())


def test_what_is_no_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("name =")
    with pytest.raises(RuleError, match="no TOML"):
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


def test_a_setting_of_the_engine_that_is_left_out_can_be_asked_for() -> None:
    plain = load_recipe(PAPER)
    as_it_is = load_recipe(
        PAPER, changes=["engine.sleep=false", "engine.dtype=auto", "engine.conversations=0"]
    )
    assert as_it_is.sha256() == plain.sha256()
    assert plain.left_out() == {"engine.dtype", "engine.sleep", "engine.conversations"}
    assert setting_sources(PAPER, plain, model=None, changes=())["engine.sleep"] == "its default: left out"
    changes = ["engine.sleep=true", "engine.dtype=float16", "engine.conversations=64"]
    changed = load_recipe(PAPER, changes=changes)
    assert (changed.engine.sleep, changed.engine.dtype, changed.engine.conversations) == (True, "float16", 64)
    assert changed.sha256() != plain.sha256()
    assert read_recipe(changed.document(), "here") == changed
    assert setting_sources(PAPER, changed, model=None, changes=changes)["engine.sleep"] == "--set"


@pytest.mark.parametrize("change", ["engine.sleep=true", "engine.dtype=float32"])
def test_what_is_vllm_s_alone_is_refused_without_it(change: str) -> None:
    with pytest.raises(UsageError, match="is vLLM's alone"):
        load_recipe("small", changes=[change])


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
        ("packages.trl=newest", "no exact version"),
    ],
)
def test_a_change_that_cannot_be_is_wrong_usage(change: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_recipe(PAPER, changes=[change])


def test_another_model_has_no_revision_of_the_recipe_s() -> None:
    recipe = load_recipe(PAPER, model="some/other")
    assert (recipe.model, recipe.revision) == ("some/other", "")
    pinned = load_recipe(PAPER, model="some/other", changes=["revision=abc"])
    assert pinned.revision == "abc"


def test_what_was_changed_says_by_what() -> None:
    changes = ["lora.rank=16"]
    recipe = load_recipe(PAPER, model="some/other", changes=changes)
    sources = setting_sources(PAPER, recipe, model="some/other", changes=changes)
    assert sources["lora.rank"] == "--set"
    assert sources["model"] == "--model"
    assert sources["step.prompts"] == "app:training"
    assert sources["packages.trl"] == "app:training"
