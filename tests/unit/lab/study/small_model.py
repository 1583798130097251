"""A language model small enough for tests, and two runs of it as their registers would hold them."""

from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs
from small_model.untrained import make_tokenizer

from tests.unit.lab.probe.designs import design
from tests.unit.lab.probe.tiny import draw
from tests.unit.lab.study import fake_play
from tests.unit.lab.training.language_model.small_model import saved
from toolkit.lab.play import language_model_run
from toolkit.lab.policies.language_model.opening import model_commit
from toolkit.lab.probe.recorded import Recorded
from toolkit.lab.task_pools import summarize
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.recipe import Recipe, load_recipe, lora_arguments, recipe_of
from toolkit.registers.arrow import Row
from toolkit.specification import LanguageModelSpecification

STEPS = (0, 10)
ARMS = ("independent", "paired")
RUNS = tuple(f"x-{arm}-s0" for arm in ARMS)
DESIGN = design(outcome_tasks=3, transition_tasks=2, size=2)


def save_base(folder: Path, seed: int = 1) -> Path:
    """Write a base model of 20 thousand parameters, and return its folder."""
    prompts = (load_task(f"train:{number}").prompt for number in range(20))
    return Path(saved(folder, make_tokenizer(prompts), 512, seed))


def recipe(base: Path, *changes: str) -> Recipe:
    """Return the settings of a run that starts from a base model."""
    settings = [
        "engine.kind=transformers",
        "dtype=float32",
        "lora.rank=2",
        "sampling.max_completion_tokens=24",
        "step.steps=20",
        "step.checkpoint_every=10",
        *changes,
    ]
    return load_recipe("qwen3.5-2b", model=str(base), changes=settings)


@cache
def pools() -> dict[str, str]:
    """Return the digests of the pools that are probed."""
    return {name: summarize(name).sha256 for name in ("diagnostic", "validation")}


def specification(base: Path, run_id: str, *changes: str) -> LanguageModelSpecification:
    """Return a run that starts from a base model; every change is a setting of its recipe."""
    place = {"condition": "X", "arm": run_id.split("-")[1], "seed": int(run_id[-1]), "diagnosed": ()}
    sizes = {"steps": STEPS[-1], "checkpoint_every": STEPS[1], "surface_tokens": 0, "pools": pools()}
    made = recipe(base, f"step.steps={STEPS[-1]}", *changes)
    own = {"recipe": made.document(), "model_commit": model_commit(str(base), None)}
    return LanguageModelSpecification(
        **structs.asdict(fake_play.specification(run_id, **place, **sizes)), **own
    )


def graded(transcripts: Any, rewards: Any, weights: Any) -> Recorded:
    """Grade rollouts by their tokens: an untrained model succeeds at nothing, and nothing would vary."""
    assert set(rewards) == {0.0}
    return Recorded(transcripts, tuple(float(sum(each.tokens) % 2) for each in transcripts), weights)


def adapted(base: Path, run: LanguageModelSpecification, seed: int) -> Any:
    """Return the base model with an adapter that no B of is zero, but for seed 0: that one is untrained."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        loaded = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
        model = get_peft_model(loaded, LoraConfig(**lora_arguments(recipe_of(run), loaded)))
    if seed:
        draw(model, seed)
    return model.eval()


def adapter_row(model: Any, run_id: str, step: int, folder: Path) -> Row:
    """Save a model's adapter as a trainer does, and return its row of `adapters`."""
    model.save_pretrained(folder)
    return language_model_run.adapter_row(run_id, step, folder)


def adapter_rows(base: Path, run: LanguageModelSpecification, folder: Path) -> list[Row]:
    """Return a run's rows of `adapters`: the untrained one, and others drawn from its name and step."""
    first = 1 + 10 * ARMS.index(run.arm)
    return [
        adapter_row(
            adapted(base, run, first + at if step else 0), run.run_id, step, folder / f"{run.run_id}-{step}"
        )
        for at, step in enumerate(run.ends)
    ]
