"""Probing a trajectory of a language model: its rollouts sampled, and scored in its adapter's coordinates.

1. The base model is found by the name that the recipe gives it, and has to be the registered one.
2. Checkpoint by checkpoint, the adapter takes the place of the one before, and is compared with its row.
3. The rollouts of both sets are sampled by the engine that the recipe names, and scored by transformers.
   Where both are one, importance weights are 1. vLLM gets the policy from TRL, as in training, and is
   compared with it; importance weights are the ratios that the recipe's loss asks for.
4. All checkpoints have the same coordinates.

On a processor the whole of it takes one thread, and blocks and batches have fixed sizes: what comes out does
not depend on how many processes are at work. Its last digits are those of the machine and its libraries.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolkit import specification
from toolkit.canonical import canonical
from toolkit.errors import DamagedError
from toolkit.lab.play.rows import fingerprint, read_adapter
from toolkit.lab.play.training_jobs import check_model
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.loading import load_chat, loading, model_path
from toolkit.lab.policies.language_model.vllm_engine import (
    VllmEngine,
    check_agreement,
    check_installed,
    opened_by_trainer,
    taking_up,
)
from toolkit.lab.probe import design, language_model, lora
from toolkit.lab.probe.checkpoint import ScoredPolicy
from toolkit.lab.probe.evidence import Place
from toolkit.lab.probing.probed import ProbeJob, Trajectory
from toolkit.lab.training.devices import connected_processes
from toolkit.lab.training.language_model.session import load_base, restore_base
from toolkit.lab.training.recipe import Recipe, engine_options, lora_arguments, read_recipe, recipe_of
from toolkit.registers.arrow import Row

BATCH = 8
"""Transcripts that share a pass when they are scored."""


def probe_model_trajectory(job: ProbeJob, run: specification.LanguageModelSpecification) -> dict[str, bytes]:
    """Probe every checkpoint of a trajectory and return its two files."""
    trajectory = Trajectory(job)
    outcome, transition = job.design.sets
    names: str | None = None
    check_model(run, recipe_of(run).model)  # 1
    speaker = _opened(run)
    with _as_in_training(), tempfile.TemporaryDirectory() as scratch:
        for checkpoint in job.checkpoints:
            raw = read_adapter(checkpoint, run.run_id)
            put_adapter(speaker.model, raw, f"{run.run_id} at step {checkpoint['step']}")  # 2
            if speaker.sampler is not None:
                speaker.sampler.synchronize()
            scorer = lora.Scorer(speaker.model, speaker.temperature)
            evidence = language_model.probe_language_model(  # 3
                scorer,
                job.design,
                language_model.record_tasks(speaker, outcome, trajectory.sampling, checkpoint["step"]),
                language_model.record_tasks(speaker, transition, trajectory.sampling, checkpoint["step"]),
                trajectory.groups,
                folder=Path(scratch),
                batch=BATCH,
                names_sha256=names,  # 4
            )
            names, size = scorer.coordinates.names_sha256, scorer.coordinates.size
            policy = ScoredPolicy(checkpoint["sha256"], fingerprint(raw), names, size)
            trajectory.add(Place(job.trajectory, checkpoint["step"], design.ALL), evidence, policy)
    return trajectory.files()


def scored_model(checkpoint: Row, run_id: str, stored: Row) -> ScoredPolicy:
    """Return what was scored of a checkpoint of `adapters`, as far as that can be said without the model."""
    if checkpoint["adapter"] is None:
        numbers = stored["adapter_fingerprint"]
    else:
        numbers = fingerprint(read_adapter(checkpoint, run_id))
    return ScoredPolicy(
        checkpoint["sha256"], numbers, stored["coordinate_names_sha256"], stored["coordinates"]
    )


def put_adapter(model: Any, raw: bytes, where: str) -> None:
    """Give a model's adapter the values of another one, and check that it has them."""
    import torch
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        wanted = load(raw)
    except SafetensorError as error:
        raise DamagedError("the adapter is no safetensors file", found=error, where=where) from None
    own = {name: tuple(tensor.shape) for name, tensor in get_peft_model_state_dict(model).items()}
    given = {name: tuple(tensor.shape) for name, tensor in wanted.items()}
    if own != given:
        first = min(name for name in {*own, *given} if own.get(name) != given.get(name))
        raise DamagedError(
            "the adapter is not one of this model and recipe",
            expected=f"{first} {_said(own, first)}",
            found=f"{first} {_said(given, first)}",
            where=where,
            remedy="probe the study's own adapters; the recipe's [lora] and the model decide their shapes",
        )
    set_peft_model_state_dict(model, wanted)
    for name, tensor in get_peft_model_state_dict(model).items():
        if not torch.equal(tensor.cpu(), wanted[name].to(tensor.dtype)):
            raise DamagedError("the adapter was not taken over", found=name, where=where)


def _said(shapes: Mapping[str, tuple[int, ...]], name: str) -> str:
    return " × ".join(map(str, shapes[name])) if name in shapes else "missing"


def _opened(run: specification.LanguageModelSpecification) -> language_model.Speaker:
    model, recipe = recipe_of(run).model, canonical(recipe_of(run).document())
    return _speaker(model_path(model), run.model_commit, recipe)


@lru_cache(maxsize=1)
def _speaker(model: str, commit: str, document: str) -> language_model.Speaker:  # noqa: ARG001 - another commit, another model
    """Return a base model with a fresh adapter, loaded once a process."""
    import json

    recipe = read_recipe(json.loads(document), model)
    chat = load_chat(model, recipe.revision or None, (("enable_thinking", recipe.engine.thinking),))
    with loading(model):
        import torch
        from peft import LoraConfig, get_peft_model

        has_gpu = torch.cuda.is_available()
        base = load_base(model, recipe, cpu=not has_gpu)
        adapted: Any = get_peft_model(base, LoraConfig(**lora_arguments(recipe, base)))
        adapted = adapted.to("cuda" if has_gpu else "cpu").eval()
    sampling = recipe.sampling
    return language_model.Speaker(
        adapted,
        chat,
        sampling.temperature,
        sampling.max_completion_tokens,
        sampling.max_turns,
        open_sampler(adapted, chat, recipe, model) if recipe.engine.kind == "vllm" else None,
    )


def open_sampler(adapted: Any, chat: Chat, recipe: Recipe, model: str) -> language_model.Sampler:
    """Return vLLM, opened beside a model as the trainer opens it."""
    check_installed("trl")
    with opened_by_trainer(model, recipe.revision or None, engine_options(recipe)), taking_up(model):
        from accelerate import Accelerator
        from trl.generation.vllm_generation import VLLMGeneration

        cpu = adapted.device.type == "cpu"
        connected_processes(cpu=cpu)
        generation = VLLMGeneration(
            model=adapted,
            accelerator=Accelerator(cpu=cpu),
            processing_class=chat.tokenizer,
            gpu_memory_utilization=recipe.engine.gpu_memory,
            max_model_length=recipe.sampling.context,
            max_num_seqs=language_model.SIDE_BY_SIDE,
        )
    restore_base(adapted)

    def synchronize() -> None:
        generation.sync_weights()
        check_agreement(generation.llm, chat, adapted)

    sampling, correction = recipe.sampling, recipe.loss.importance_sampling
    engine = VllmEngine(
        generation.llm, chat, temperature=sampling.temperature, max_tokens=sampling.max_completion_tokens
    )
    return language_model.Sampler(engine, synchronize, correction.level, correction.max)


@contextmanager
def _as_in_training() -> Iterator[None]:
    """Have torch compute as in training, with one thread: how many share a sum decides its last digits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
