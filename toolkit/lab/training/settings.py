"""A recipe as the arguments of the libraries that train: TRL's `GRPOConfig`, PEFT's `LoraConfig`.

Source:
    Paper app:training, "Stack" and "Trainer settings"; TRL 1.12.0, `GRPOConfig`.
"""

import re
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError
from toolkit.lab.policies.language_model.options import EngineOptions
from toolkit.lab.training.recipe import AUTO, Recipe


def grpo_arguments(
    recipe: Recipe,
    folder: Path,
    seed: int,
    *,
    processes: int = 1,
    cpu: bool = False,
    scale_rewards: str | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments of `trl.GRPOConfig` that a recipe means."""
    if cpu and recipe.engine.sleep:
        raise UsageError("vLLM for processors never sleeps", remedy="leave engine.sleep out of the recipe")
    step, sampling, loss, engine = recipe.step, recipe.sampling, recipe.loss, recipe.engine
    return {
        "output_dir": str(folder),
        "seed": seed,
        "report_to": [],
        "shuffle_dataset": False,
        "use_cpu": cpu,
        "bf16": recipe.dtype == "bfloat16" and not cpu,
        "gradient_checkpointing": not cpu,
        # The step.
        "max_steps": step.steps,
        "save_strategy": "steps",
        "save_steps": step.checkpoint_every,
        "per_device_train_batch_size": step.micro_batch,
        "gradient_accumulation_steps": accumulation(recipe, processes),
        "generation_batch_size": step.prompts * step.rollouts,
        "num_generations": step.rollouts,
        "num_iterations": 1,
        # The optimizer.
        "learning_rate": float(recipe.optimizer.learning_rate),
        "lr_scheduler_type": recipe.optimizer.schedule
        if recipe.optimizer.schedule != "constant" or not recipe.optimizer.warmup_steps
        else "constant_with_warmup",
        "warmup_steps": recipe.optimizer.warmup_steps,
        "weight_decay": recipe.optimizer.weight_decay,
        "max_grad_norm": recipe.optimizer.max_grad_norm,
        # The sampling: by the model's own distribution, whatever its generation settings say.
        "temperature": sampling.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": None,
        "repetition_penalty": 1.0,
        "max_completion_length": sampling.max_completion_tokens,
        "max_tool_calling_iterations": sampling.max_turns,
        "chat_template_kwargs": {"enable_thinking": engine.thinking},
        # The loss.
        "loss_type": loss.type,
        "beta": loss.beta,
        "scale_rewards": scale_rewards or loss.scale_rewards,
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": loss.importance_sampling.level,
        "vllm_importance_sampling_clip_max": loss.importance_sampling.max,
        "vllm_importance_sampling_clip_min": None,
        # The engine.
        "use_vllm": engine.kind == "vllm",
        "vllm_mode": "colocate",
        "vllm_gpu_memory_utilization": engine.gpu_memory,
        "vllm_max_model_length": sampling.context,
        "vllm_enable_sleep_mode": engine.sleep,
    }


def engine_options(recipe: Recipe) -> EngineOptions:
    """Return what vLLM is told by a recipe beyond the arguments that `trl.GRPOConfig` has."""
    engine = recipe.engine
    return EngineOptions(
        dtype=None if engine.dtype == AUTO else engine.dtype, conversations=engine.conversations or None
    )


def lora_arguments(recipe: Recipe, model: Any) -> dict[str, Any]:
    """Return the keyword arguments of `peft.LoraConfig` that a recipe means for a model.

    PEFT takes a model's towers for images too, whose adapters text would never train: what lies outside the
    text decoder is left out.

    Source:
        Paper app:probe: 33,638,400 coordinates, those of the text model alone.
    """
    return {
        "task_type": "CAUSAL_LM",
        "r": recipe.lora.rank,
        "lora_alpha": recipe.lora.alpha,
        "lora_dropout": recipe.lora.dropout,
        "target_modules": recipe.lora.target,
        "exclude_modules": _outside_decoder(model),
    }


def _outside_decoder(model: Any) -> str | None:
    """Return a pattern of what is not in a model's text decoder; None where that is all there is."""
    decoder, output = model.get_decoder(), model.get_output_embeddings()
    names = {id(module): name for name, module in model.named_modules()}
    within = f"{names[id(decoder)]}."
    others = [
        name
        for name, module in model.named_modules()
        if name
        and module is not output
        and not f"{name}.".startswith(within)
        and any(True for _ in module.parameters(recurse=False))
    ]
    return rf"(?!{re.escape(within)}).*" if within != "." and others else None


def accumulation(recipe: Recipe, processes: int = 1) -> int:
    """Return how many micro-batches each process adds up for one optimizer step."""
    size, at_once = recipe.step.prompts * recipe.step.rollouts, recipe.step.micro_batch * processes
    if size % at_once:
        problem = "the processes cannot share a step evenly"
        expected = f"step.micro_batch × processes that divides {size}"
        raise UsageError(problem, expected=expected, found=f"{recipe.step.micro_batch} × {processes}")
    return size // at_once
