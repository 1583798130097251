"""A tokenizer and a model that train in a second, in a folder; a recipe and a run that fit them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from small_model.template import ASSISTANT
from small_model.untrained import CONTEXT, make_tokenizer

from tests.unit.lab.probe.tiny import TEXT
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model.conversation import as_text, opening, tool_call
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.recipe import load_recipe, specify_language_model
from toolkit.noise.regimes import REGIMES
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import replace

HIDDEN = 32
TASKS = 24
SETTINGS = (
    "engine.kind=transformers",
    "dtype=float32",
    "lora.rank=2",
    "lora.alpha=4",
    "step.prompts=2",
    "step.micro_batch=4",
    "step.steps=2",
    "step.checkpoint_every=1",
    "optimizer.learning_rate=0.01",
    "sampling.max_completion_tokens=1200",
    f"sampling.context={CONTEXT}",
)
RUN = Specification(
    study="tests",
    root="tests",
    run_id="c2-paired-s3",
    condition="C2",
    arm="paired",
    seed=3,
    tier=1,
    role="primary",
    regime="faults_p025",
    at_noise="faults_p025",
    scale_rewards="group",
    steps=2,
    prompts_per_step=2,
    checkpoint_every=1,
    diagnosed=(),
)


def conversation(prompt: str, calls: Iterable[tuple[str, dict[str, Any], Any]]) -> list[dict[str, Any]]:
    """Return an episode as messages."""
    messages = opening(prompt)
    for name, arguments, answer in calls:
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [tool_call("0", name, arguments)]},
            {"role": "tool", "tool_call_id": "0", "name": name, "content": as_text(answer)},
        ]
    return messages


def a_tokenizer() -> Any:
    """Return a tokenizer that has seen the reference agent at work."""
    renderer = make_tokenizer(["-"])
    texts = []
    for number in range(TASKS):
        task = load_task(f"train:{number}")
        episode = play(task, REGIMES["faults_p025"], number, AGENTS["reference"], traced=True)
        calls = [(record.tool, record.arguments, record.answer) for record in episode.trace or ()]
        texts.append(renderer.apply_chat_template(conversation(task.prompt, calls), tokenize=False))
    return make_tokenizer(texts)


def tiny_model(tokenizer: Any, context: int = CONTEXT, seed: int = 1) -> Any:
    """Return an untrained model: a layer of linear attention, one of full attention."""
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    sizes = {"hidden_size": HIDDEN, "intermediate_size": 48, "max_position_embeddings": context}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "linear_num_value_heads": 2}
    config = Qwen3_5TextConfig(
        **TEXT | sizes | heads | {"vocab_size": len(tokenizer)},
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3_5ForCausalLM(config)


def saved(folder: Path, tokenizer: Any, context: int = CONTEXT, seed: int = 1) -> str:
    """Save a model and its tokenizer; return the folder's name."""
    tiny_model(tokenizer, context, seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def specified(model: str, settings: Iterable[str] = (), **changed: Any) -> LanguageModelSpecification:
    """Return a run of a model; its steps and sizes are those of the recipe."""
    recipe = load_recipe("qwen3.5-2b", model=model, changes=[*SETTINGS, *settings])
    sizes = {"steps": recipe.step.steps, "prompts_per_step": recipe.step.prompts}
    return specify_language_model(replace(RUN, **{**sizes, **changed}), recipe, "")


def turn_tokens(tokenizer: Any, *calls: tuple[str, dict[str, Any]], text: str = "") -> list[int]:
    """Return a turn as the model would have to sample it, its last token the end of the turn."""
    message = {
        "role": "assistant",
        "content": text,
        "tool_calls": [tool_call("0", name, arguments) for name, arguments in calls],
    }
    written = tokenizer.apply_chat_template([message], tokenize=False).removeprefix(ASSISTANT)
    return tokenizer.encode(written, add_special_tokens=False)
