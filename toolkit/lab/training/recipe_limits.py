"""What the settings of a recipe may be, each by itself and beside the others."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from toolkit.lab.policies.language_model.options import DTYPES

AUTO = "auto"
ONE_OF = {
    "dtype": ("bfloat16", "float32"),
    "lora.target": ("all-linear",),
    "optimizer.schedule": ("linear", "constant"),
    "loss.type": ("dapo",),
    "loss.scale_rewards": ("group", "none"),
    "loss.importance_sampling.level": (
        *("sequence_mask", "sequence_truncate"),
        *("token_mask", "token_truncate"),
    ),
    "engine.kind": ("vllm", "transformers"),
    "engine.dtype": (AUTO, *DTYPES),
}
"""Setting → the words that it may be."""

AT_LEAST = {
    "lora.rank": 1,
    "lora.alpha": 1,
    "lora.dropout": 0,
    "step.prompts": 1,
    "step.rollouts": 2,  # advantages compare the rollouts of a group
    "step.micro_batch": 1,
    "step.steps": 1,
    "step.checkpoint_every": 1,
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0,
    "optimizer.max_grad_norm": 0,
    "sampling.max_completion_tokens": 1,
    "sampling.max_turns": 1,
    "sampling.context": 2,
    "engine.conversations": 0,
    "loss.beta": 0,
}
"""Setting → the least that it may be."""

ABOVE_ZERO = ("sampling.temperature", "loss.importance_sampling.max", "engine.gpu_memory")
BELOW_ONE = ("lora.dropout", "engine.gpu_memory")
NOT_EMPTY = ("name", "model")
PACKAGES = "packages."
_VERSION = re.compile(r"\d+(\.[0-9A-Za-z+-]+)*")


class Problem(NamedTuple):
    """What is wrong with a recipe: the problem, what was expected, what was found."""

    problem: str
    expected: str
    found: str


def problems(settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with settings, by their dotted names."""
    yield from _words(settings)
    yield from _numbers(settings)
    yield from _contradictions(settings)


def _words(settings: Mapping[str, Any]) -> Iterator[Problem]:
    for name, allowed in ONE_OF.items():
        if settings[name] not in allowed:
            yield Problem(f"{name} is none of its words", ", ".join(allowed), settings[name])
    for name in NOT_EMPTY:
        if not settings[name].strip():
            yield Problem(f"{name} is empty", "a text", repr(settings[name]))
    for name, version in settings.items():
        if name.startswith(PACKAGES) and not _VERSION.fullmatch(version):
            yield Problem(f"{name} is no exact version", "a version, as 1.12.0", version)


def _numbers(settings: Mapping[str, Any]) -> Iterator[Problem]:
    for name, least in AT_LEAST.items():
        if not least <= settings[name] < float("inf"):
            yield Problem(f"{name} is too small, or no number", f"{least} or more", str(settings[name]))
    for name in ABOVE_ZERO:
        if not 0 < settings[name] < float("inf"):
            yield Problem(f"{name} is not above zero", "a number above zero", str(settings[name]))
    for name in BELOW_ONE:
        if not settings[name] < 1:
            yield Problem(f"{name} is a share", "less than 1", str(settings[name]))
    rate = settings["optimizer.learning_rate"]
    if not _is_rate(rate):
        yield Problem("optimizer.learning_rate is no rate", 'decimal text, as "0.00001"', rate)


def _is_rate(text: str) -> bool:
    try:
        rate = Decimal(text)
    except InvalidOperation:
        return False
    return rate.is_finite() and rate > 0


def _contradictions(settings: Mapping[str, Any]) -> Iterator[Problem]:
    prompts, rollouts = settings["step.prompts"], settings["step.rollouts"]
    steps, completion = settings["step.steps"], settings["sampling.max_completion_tokens"]
    if prompts * rollouts % (settings["step.micro_batch"] or 1):
        yield Problem(
            "a step's rollouts cannot be divided into micro-batches",
            f"step.micro_batch that divides {prompts} × {rollouts} = {prompts * rollouts}",
            str(settings["step.micro_batch"]),
        )
    if steps % (settings["step.checkpoint_every"] or 1):
        yield Problem(
            "the last step would leave no checkpoint",
            f"step.checkpoint_every that divides {steps} steps",
            str(settings["step.checkpoint_every"]),
        )
    if settings["optimizer.warmup_steps"] > steps:
        yield Problem(
            "the learning rate would never be reached",
            f"optimizer.warmup_steps of {steps} or less",
            str(settings["optimizer.warmup_steps"]),
        )
    for name, otherwise in {"engine.dtype": AUTO, "engine.sleep": False}.items():
        if settings["engine.kind"] != "vllm" and settings[name] != otherwise:
            yield Problem(
                f"{name} is vLLM's alone", 'engine.kind "vllm", or the setting left out', str(settings[name])
            )
    if completion >= settings["sampling.context"]:
        yield Problem(
            "the context has no room for a prompt",
            f"sampling.max_completion_tokens below {settings['sampling.context']}",
            str(completion),
        )
