"""How much memory a run's GPU needs, part by part, from the model's sizes and the recipe.

An estimate: what libraries keep for themselves, and what lies between two allocations, is not in it. A test
holds it to the peaks that the published runs recorded, on two kinds of accelerators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.lab.training.architecture import Architecture
from toolkit.lab.training.recipe import Recipe

if TYPE_CHECKING:
    from toolkit.documents.runs import Fitting

GIGA = 10**9
MEGA = 10**6
BYTES = {"bfloat16": 2, "float32": 4}
# PEFT keeps adapters in single precision also where the model is in half; AdamW has two moments of each.
ADAPTER, GRADIENT, MOMENTS = 4, 4, 8
# A token's logits and their gradient: in half precision alone, or with copies of both in single.
LOGITS_LOW, LOGITS_HIGH = 4, 12
# The recurrent state of linear attention, in half or in single precision.
STATE_HIGH = 4
# Widths that one layer keeps while it is computed again: feed-forward's three, and eight of the hidden one
# for norms, queries, keys, values, gates and sums.
KEPT_FEED_FORWARD, KEPT_HIDDEN = 3, 8


@dataclass(frozen=True)
class Part:
    """A part of the memory: what it is, its bytes at least and at most, and how they are counted."""

    name: str
    low: int
    high: int
    how: str


@dataclass(frozen=True)
class Memory:
    """The memory of one GPU.

    Args:
        parts: what it holds.
        accelerator: bytes that it has.
        sequences: sequences of full length that the engine's cache holds at once; None without an engine of
            its own.
    """

    parts: tuple[Part, ...]
    accelerator: int
    sequences: int | None

    @property
    def low(self) -> int:
        """Bytes that are needed at least."""
        return sum(part.low for part in self.parts)

    @property
    def high(self) -> int:
        """Bytes that are needed at most."""
        return sum(part.high for part in self.parts)

    @property
    def verdict(self) -> Fitting:
        """Whether it fits: `fits`, `may_fit`, or `does_not_fit`."""
        if self.sequences == 0 or self.low > self.accelerator:
            return "does_not_fit"
        return "fits" if self.high <= self.accelerator else "may_fit"


def estimate_memory(recipe: Recipe, model: Architecture, accelerator: int) -> Memory:
    """Return the memory of a GPU that trains a whole run by itself."""
    training = _training(recipe, model)
    sequence = sequence_bytes(recipe, model)
    if recipe.engine.kind == "vllm":
        share = round(recipe.engine.gpu_memory * accelerator)
        held = max(0, share - weights(recipe, model)) // sequence
        asleep = "; given back while a step is trained, which is not counted" if recipe.engine.sleep else ""
        part = _exact(
            "share of vLLM",
            share,
            f"{recipe.engine.gpu_memory:g} of the GPU: its weights, {held} sequences of "
            f"{sequence / MEGA:.0f} MB{asleep}",
        )
        return Memory((*training, part), accelerator, held)
    rollouts = recipe.step.prompts * recipe.step.rollouts
    at_once = min(recipe.engine.conversations or rollouts, rollouts)
    part = _exact(
        "caches of sampling",
        at_once * sequence,
        f"{at_once} sequences of {sequence / MEGA:.0f} MB: keys, values, states",
    )
    return Memory((*training, part), accelerator, None)


def gpus_needed(recipe: Recipe, model: Architecture, accelerator: int) -> int:
    """Return the least power of two of GPUs that hold a run, everything divided evenly among them.

    Counted are the parts of training at most, and for an engine beside it a second copy of the weights and
    the cache of one micro-batch. A power of two, because heads and widths are divided by them.
    """
    needed = sum(part.high for part in _training(recipe, model))
    needed += weights(recipe, model) if recipe.engine.kind == "vllm" else 0
    needed += recipe.step.micro_batch * sequence_bytes(recipe, model)
    gpus = 1
    while gpus * accelerator < needed:
        gpus *= 2
    return gpus


def weights(recipe: Recipe, model: Architecture) -> int:
    """Return the bytes of one copy of the weights."""
    return model.parameters * BYTES[recipe.dtype]


def sequence_bytes(recipe: Recipe, model: Architecture) -> int:
    """Return the bytes that a sequence of full length has in a cache."""
    each = BYTES[recipe.dtype]
    return recipe.sampling.context * model.cache_bytes_per_token(each) + model.state_bytes(each, STATE_HIGH)


def _training(recipe: Recipe, model: Architecture) -> Sequence[Part]:
    each, rollouts = BYTES[recipe.dtype], recipe.step.micro_batch
    adapters = model.adapter_parameters(recipe.lora.rank)
    tokens = rollouts * recipe.sampling.context
    kept = tokens * model.hidden * len(model.layers) * each
    again = tokens * (KEPT_FEED_FORWARD * model.feed_forward + KEPT_HIDDEN * model.hidden) * each
    logits = rollouts * recipe.sampling.max_completion_tokens * model.vocabulary
    return (
        _exact("weights", weights(recipe, model), f"{model.parameters:,} parameters × {each} bytes"),
        _exact("adapters", adapters * ADAPTER, f"{adapters:,} parameters × {ADAPTER} bytes"),
        _exact("their gradients", adapters * GRADIENT, f"× {GRADIENT} bytes"),
        _exact("AdamW's moments", adapters * MOMENTS, f"× {MOMENTS} bytes"),
        Part(
            "activations", kept, kept + again, f"{tokens:,} tokens: every layer's input, and one whole layer"
        ),
        Part(
            "logits",
            logits * LOGITS_LOW,
            logits * LOGITS_HIGH,
            f"{rollouts} × {recipe.sampling.max_completion_tokens:,} × {model.vocabulary:,}, "
            f"{LOGITS_LOW} to {LOGITS_HIGH} bytes with gradients",
        ),
    )


def _exact(name: str, size: int, how: str) -> Part:
    return Part(name, size, size, how)
