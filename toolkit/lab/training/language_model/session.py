"""A run's trainer, from its recipe: the model, its adapter, and what happens at its checkpoints."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.errors import EXCERPT, IncompleteError, UsageError
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import Player, TurnTaker
from toolkit.lab.policies.language_model.loading import (
    DISTRIBUTION,
    check_kernels,
    installed,
    kernels_of,
    kernels_text,
    load_chat,
    loading,
    own_class,
)
from toolkit.lab.policies.language_model.lockstep import BATCH, LocalEngine
from toolkit.lab.training.devices import connected_processes, launched_together
from toolkit.lab.training.language_model.groups import Example, Record, examples
from toolkit.lab.training.recipe import Recipe, engine_options, grpo_arguments, lora_arguments, recipe_of
from toolkit.lab.worlds.world import tools_for_model
from toolkit.seeds import derive, run_seed, sampling_seed
from toolkit.specification import LanguageModelSpecification


def restore_base(model: Any) -> None:
    """Have a model give its base weights back to the bit whenever its adapter was merged."""
    tuner = model.base_model
    merge, unmerge = tuner.merge_adapter, tuner.unmerge_adapter
    kept: list[tuple[Any, Any]] = []

    def merged(*arguments: Any, **options: Any) -> None:
        if not kept:
            kept.extend((tensor, tensor.detach().clone()) for tensor in _base(tuner))
        merge(*arguments, **options)

    def unmerged() -> None:
        unmerge()
        for tensor, copy in kept:
            tensor.data.copy_(copy)
        kept.clear()

    tuner.merge_adapter, tuner.unmerge_adapter = merged, unmerged


def _base(tuner: Any) -> Iterator[Any]:
    """Yield the parameters that merging changes."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for layer in tuner.model.modules():
        if isinstance(layer, BaseTunerLayer):
            yield from layer.get_base_layer().parameters(recurse=False)


SEEDS = 2**31


@dataclass(frozen=True)
class Moments:
    """What happens while a run trains; each is told the step."""

    saved: Callable[[int], None]  # after a checkpoint was saved
    stepped: Callable[[int], None]  # after every step
    # After every step, with the trainer's figures of it by their names
    figured: Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Session:
    """A run's trainer."""

    trainer: Any  # a `GroupTrainer`
    recipe: Recipe  # its settings

    @property
    def is_main(self) -> bool:
        """Whether this process writes what is recorded."""
        return bool(self.trainer.accelerator.is_main_process)

    @property
    def coordinates(self) -> int:
        """Numbers in the adapter."""
        return sum(p.numel() for p in self.trainer.model.parameters() if p.requires_grad)

    @property
    def kernels(self) -> str | None:
        """What computes linear attention, as `launches` has it; None where there is none."""
        return kernels_text(kernels_of(self.trainer.model))

    def train(self, checkpoint: Path | None) -> None:
        """Train to the end, from a checkpoint or from the start."""
        with _explained():
            self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def save(self, folder: Path) -> None:
        """Save the adapter as it is."""
        self.trainer.save_model(str(folder))

    def engine(self) -> TurnTaker | Player:
        """Return what plays evaluations with the policy as it is."""
        trainer, sampling = self.trainer, self.recipe.sampling
        most = sampling.max_completion_tokens
        if not trainer.use_vllm:
            model = trainer.accelerator.unwrap_model(trainer.model).eval()
            return LocalEngine(
                model,
                trainer.chat,
                temperature=sampling.temperature,
                max_tokens=most,
                context=sampling.context,
                conversations=self.recipe.engine.conversations or BATCH,
            )
        from toolkit.lab.policies.language_model.vllm_engine import VllmEngine

        llm = self._synchronized()
        return VllmEngine(llm, trainer.chat, temperature=sampling.temperature, max_tokens=most)

    def check_engine(self) -> None:
        """Compare what generates with what is trained, where these are two."""
        if self.recipe.engine.kind != "vllm":
            return
        from toolkit.lab.policies.language_model.vllm_engine import check_agreement

        model = self.trainer.accelerator.unwrap_model(self.trainer.model).eval()
        check_agreement(self._synchronized(), self.trainer.chat, model)
        model.train()

    def _synchronized(self) -> Any:
        """Return vLLM with the policy as it is, and awake: TRL wakes its weights alone."""
        generation = self.trainer.vllm_generation
        generation.sync_weights()
        if self.recipe.engine.sleep:
            generation.llm.wake_up(tags=["kv_cache"])
        return generation.llm


def open_session(
    specification: LanguageModelSpecification,
    model: str,
    folder: Path,
    *,
    record: Record,
    moments: Moments,
    cpu: bool,
) -> Session:
    """Return a run's trainer, before its first step."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl import GRPOConfig

    from toolkit.lab.training.language_model.trainer import GroupTrainer

    recipe = recipe_of(specification)
    chat = load_chat(model, recipe.revision or None, (("enable_thinking", recipe.engine.thinking),))
    sampling = sampling_seed(specification.root, specification.run_id, specification.seed)
    # The arms of one seed start from one adapter; what is sampled has seeds of its own.
    adapter = derive("adapter/v1", run_seed(specification.root, specification.seed)) % SEEDS
    arguments = grpo_arguments(
        recipe,
        folder,
        adapter,
        processes=connected_processes(cpu=cpu).num_processes,
        cpu=cpu,
        scale_rewards=specification.scale_rewards,
    )
    # It says at every start that its environments may change; what is used of them is tested.
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    rows = examples(specification)
    chat = replace(chat, tools=tuple(tools_for_model(specification.world)))
    if cpu:
        # With more, its sums, and so what is sampled, would depend on how many processors there are.
        torch.set_num_threads(1)
    with _explained():
        loaded = load_base(model, recipe, cpu=cpu)
        if not cpu and DISTRIBUTION in recipe.packages:
            check_kernels(loaded, f"recipe {recipe.name}")
        limit = int(loaded.config.get_text_config().max_position_embeddings)
        _check_context(chat, rows, min(limit, recipe.sampling.context))
        # Newer trainers do it themselves, with the seed that they are given.
        torch.manual_seed(adapter)
        with _opening_vllm(model, recipe):
            trainer = GroupTrainer(
                sampling=sampling,
                record=record,
                conversations=recipe.engine.conversations,
                scored=recipe.step.scored_at_once,
                world=specification.world,
                model=loaded,
                args=GRPOConfig(**arguments, **_QUIET),
                train_dataset=Dataset.from_list(rows),
                processing_class=chat.tokenizer,
                peft_config=LoraConfig(**lora_arguments(recipe, loaded)),
                callbacks=[checkpoint_callback(moments)],
            )
        restore_base(trainer.model)
    # It prints every step's figures on stdout, which belongs to whoever asked for the run.
    trainer.remove_callback(PrinterCallback)
    session = Session(trainer, recipe)
    session.check_engine()
    return session


def _opening_vllm(model: str, recipe: Recipe) -> AbstractContextManager[None]:
    """Return a context in which TRL opens vLLM with the recipe's model; without vLLM it does nothing."""
    if recipe.engine.kind != "vllm":
        return nullcontext()
    from toolkit.lab.policies.language_model.vllm_engine import opened_by_trainer

    return opened_by_trainer(model, recipe.revision or None, engine_options(recipe))


_QUIET = {
    "disable_tqdm": True,
    "logging_strategy": "steps",
    "logging_steps": 1,
    "dataloader_pin_memory": False,
}


def _check_context(chat: Chat, rows: Sequence[Example], context: int) -> None:
    """Refuse a context that the run's longest prompt fills before anything is said."""
    longest = max((row["prompt"] for row in rows), key=lambda prompt: len(str(prompt)))
    length = len(chat.opening(longest))
    if length >= context:
        problem = "the context is too small for the tasks and their tools"
        expected = f"more than {length} tokens"
        remedy = "a larger sampling.context, or a model with a longer context"
        raise UsageError(problem, expected=expected, found=f"{context} tokens", remedy=remedy)


@contextmanager
def _explained() -> Iterator[None]:
    """Say in a line of what training died."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise IncompleteError(
            "there is not enough memory to train",
            found=_first_line(error),
            remedy="a smaller step.micro_batch or engine.gpu_memory, or engine.sleep; what was recorded "
            "stays, and the same command goes on from the newest checkpoint",
        ) from None
    except Exception as error:
        if type(error).__name__ != "EngineDeadError":  # of vLLM, which need not be here
            raise
        remedy = "see its own messages above; the same command goes on from the newest checkpoint"
        raise IncompleteError("the vLLM engine died", found=_first_line(error), remedy=remedy) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:EXCERPT]


def load_base(model: str, recipe: Recipe, *, cpu: bool) -> Any:
    """Return a model, without an adapter, as its own class."""
    import torch

    dtype = torch.float32 if cpu or recipe.dtype == "float32" else torch.bfloat16
    revision = recipe.revision or None
    with loading(model):
        loaded = own_class(model, revision).from_pretrained(model, revision=revision, dtype=dtype)
    text = loaded.config.get_text_config()
    if not hasattr(loaded.config, "max_position_embeddings"):
        # TRL asks the model itself for its context, also where a part of it has one.
        loaded.config.max_position_embeddings = text.max_position_embeddings
    return loaded


def checkpoint_callback(moments: Moments) -> Any:
    """Return a callback of Transformers' trainer."""
    from transformers import TrainerCallback

    class Progress(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            moments.stepped(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
            if "loss" in logs:  # what it says at the end of training has none
                moments.figured(state.global_step, logs)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            moments.saved(state.global_step)

    return Progress()


PACKAGES = ("torch", "triton", "transformers", "trl", "peft", "accelerate", "vllm", DISTRIBUTION)


def stack() -> dict[str, Any]:
    """Return packages and their versions, accelerators, and the number of processes."""
    import torch

    here = [f"{name} {version}" for name in PACKAGES if (version := installed(name))]
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {
        "stack": ", ".join(here),
        "accelerator": ", ".join(names) or None,
        "processes": launched_together(),
    }
