"""What `tests.benchmarks.gpu` measures, part by part, each figure with the bytes and operations it needs.

They are what the task needs at least, so that a bound is one: every weight is read once a pass, an adapter's
weights alone have gradients, padding and what attention does between tokens are not counted.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import unwrap
from typing import Any

from tests.benchmarks.harness import medians
from tests.benchmarks.scores import PUBLISHED, clock
from tests.unit.lab.probe import published, tiny

HALF, SINGLE = 2, 4
ROUNDS = 5
STEPS = 3
MOVED = 1e-3  # what a hundred steps at the paper's learning rate of 1e-5 can come to
Work = tuple[float, float]
"""Bytes that have to move, and operations that have to be done."""


@dataclass(frozen=True)
class Figure:
    """What was measured, with the work of each phase that was timed; `count` is of what a rate counts.

    `bound` and its `basis` are given where no card decides it.
    """

    name: str
    value: float
    unit: str
    phases: tuple[Work, ...] = ()
    count: float = 0
    bound: float | None = None
    basis: str = ""


@dataclass(frozen=True)
class Size:
    """How large everything is."""

    text: Mapping[str, Any]
    lora: Mapping[str, Any]
    copied: int
    matrix: int
    lengths: tuple[int, ...]
    merges: int
    settings: tuple[str, ...]


# A whole step has 24 × 8 rollouts of up to 6,144 tokens; a part of one shows what a token takes.
FULL = Size(
    {**published.TEXT, "max_position_embeddings": 16384},
    published.LORA,
    copied=2**31,
    matrix=8192,
    lengths=PUBLISHED,
    merges=10,
    settings=("step.prompts=1", "sampling.max_completion_tokens=512"),
)
TINY = Size(
    {**tiny.TEXT, "vocab_size": 1024, "max_position_embeddings": 4096, "tie_word_embeddings": True},
    {"r": 4, "target_modules": "all-linear"},
    copied=2**22,
    matrix=128,
    lengths=(90, 70),
    merges=5,
    settings=(
        *("step.prompts=1", "step.micro_batch=4", "lora.rank=4", "dtype=float32"),
        *("sampling.max_completion_tokens=12", "sampling.context=4096"),
    ),
)


def peaks(size: Size, device: str) -> list[Figure]:
    """What the card does when it does nothing else."""
    import torch

    source = torch.ones(size.copied // HALF, dtype=torch.bfloat16, device=device)
    target, n = torch.empty_like(source), size.matrix
    left, right = torch.randn(2, n, n, device=device).to(torch.bfloat16)
    ways = {"copy": lambda: target.copy_(source), "product": lambda: left @ right}
    taken = medians(ways, ROUNDS, clock)
    return [
        Figure("copy", 2 * size.copied / taken["copy"] / 1e9, "GB/s"),
        Figure("matrix product", 2 * n**3 / taken["product"] / 1e12, "TFLOP/s"),
    ]


def kernels(size: Size, device: str) -> list[Figure]:
    """The gated delta rule of one layer: fla's kernel, and what transformers computes without it."""
    import torch
    from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling

    heads, keys = size.text["linear_num_value_heads"], size.text["linear_key_head_dim"]
    values, tokens = size.text["linear_value_head_dim"], len(size.lengths) * max(size.lengths)
    shape = (len(size.lengths), max(size.lengths), heads)
    generator = torch.Generator(device).manual_seed(0)

    def drawn(*last: int, dtype: Any = torch.bfloat16) -> Any:
        return torch.randn(*shape, *last, generator=generator, device=device).to(dtype)

    inputs = [drawn(keys), drawn(keys), drawn(values), -drawn(dtype=torch.float32).exp(), drawn().sigmoid()]
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    downstream = drawn(values)

    def forward(rule: Callable[..., Any]) -> Any:
        query, key, value, decay, beta = inputs
        options = {"initial_state": None, "output_final_state": False, "use_qk_l2norm_in_kernel": True}
        return rule(query, key, value, g=decay, beta=beta, **options)[0]

    def both(rule: Callable[..., Any]) -> Any:
        return torch.autograd.grad(forward(rule), inputs, downstream)

    recurrent = unwrap(modeling.torch_recurrent_gated_delta_rule)
    ways = {"reference": unwrap(modeling.torch_chunk_gated_delta_rule), **_fla()}
    # Queries, keys, values and outputs; backward reads these and a gradient, and writes three.
    row, state = HALF * tokens * heads, 6.0 * tokens * heads * keys * values
    forth, back = row * (2.0 * keys + 2 * values), row * (4.0 * keys + 3 * values)
    works = {"forward": (forward, (forth, state)), "forward and backward": (both, (forth + back, 3 * state))}
    found = []
    for kind, (function, work) in works.items():
        timed = {name: lambda rule=rule, run=function: run(rule) for name, rule in ways.items()}
        taken = medians(timed, ROUNDS, clock)
        found += [Figure(f"{name}, {kind}", seconds, "s", (work,)) for name, seconds in taken.items()]
    held = {"bound": 2.0**-8, "basis": "rounding of bfloat16"}
    expected, gradients = forward(ways["reference"]).detach(), both(ways.pop("reference"))
    with torch.no_grad():
        for name, rule in {**ways, "token by token": recurrent}.items():
            distance = _apart(forward(rule), expected)
            found.append(Figure(f"{name}, output's distance from the reference", distance, "", **held))
    for name, rule in ways.items():
        distance = max(map(_apart, both(rule), gradients))
        found.append(Figure(f"{name}, gradients' largest distance from it", distance, "", **held))
    return found


def _fla() -> dict[str, Callable[..., Any]]:
    """Return fla's kernel by its name; without fla nothing, and say so."""
    from toolkit.errors import UsageError
    from toolkit.lab.policies.language_model.loading import PACKAGE, check_importable

    try:
        check_importable("this script")
    except UsageError as error:
        print(f"left out: the kernels of fla: {error.found}", file=sys.stderr)
        return {}
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    return {PACKAGE: chunk_gated_delta_rule}


def _apart(mine: Any, other: Any) -> float:
    """Return the relative distance of two tensors."""
    return float((mine.float() - other.float()).norm() / other.float().norm())


def needed(text: Mapping[str, Any], rank: int, positions: int, predicted: int, forwards: int) -> Work:
    """Return the work of reading tokens and having the adapter's gradient.

    Asked for are the probabilities of `predicted` tokens; 2 `forwards` where activations are computed again.
    """
    maps, head = linear_maps(text), text["hidden_size"] * text["vocab_size"]
    multiplied = sum(rows * columns for rows, columns in maps.values())
    adapter = adapter_parameters(maps, rank)
    done = positions * (multiplied * (forwards + 1) + adapter * (forwards + 2)) + predicted * head * 2
    # No gradient goes to what the first layer's projections read: the embedding is frozen.
    first = [size for name, size in maps.items() if ".layers.0." in name and "in_proj" in name]
    done -= positions * sum(rows * (columns + rank) for rows, columns in first)
    return HALF * (multiplied + head) * (forwards + 1.0), 2.0 * done


def linear_maps(text: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the sizes of every linear map of the layers, the output layer not among them."""
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    with torch.device("meta"):
        modules = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text)).named_modules()
    linear = ((name, each) for name, each in modules if isinstance(each, torch.nn.Linear))
    return {name: (each.in_features, each.out_features) for name, each in linear if name != "lm_head"}


def adapter_parameters(maps: Mapping[str, tuple[int, int]], rank: int) -> int:
    """Return the parameters of adapters of a rank on linear maps."""
    return sum(rank * (rows + columns) for rows, columns in maps.values())


def scores(size: Size, device: str) -> list[Figure]:
    """The probe's scores: a pass of the scorer with all that it verifies, and one that sums them alone."""
    from toolkit.lab.probe.lora import Scorer, batch_log_likelihood

    model, batch = published.published_model(device, size.text, size.lora), tiny.transcripts(size.lengths)
    tiny.draw(model, 1)
    scorer = Scorer(model)
    coordinates = scorer.identify(batch[0]).size
    (alone,), (*_, padded) = scorer.scores(batch[-1:], 1), scorer.scores(batch, len(batch))
    distance = float(((alone - padded) ** 2).sum() ** 0.5 / (alone**2).sum() ** 0.5)

    def plain() -> None:
        model.zero_grad()
        batch_log_likelihood(model, batch, 1.0).backward()

    ways = {"plain pass": plain, "scores": lambda: list(scorer.scores(batch, len(batch)))}
    taken = medians(ways, ROUNDS, clock)
    tokens, chosen = sum(size.lengths), sum(sum(one.chosen) for one in batch)
    read, done = needed(size.text, size.lora["r"], tokens, chosen, 1)
    rows = 2.0 * SINGLE * coordinates * len(batch)  # written on the device, and read to be returned
    return [
        Figure("coordinates", coordinates, "", basis="the published runs'", bound=published.COORDINATES),
        Figure("plain pass", taken["plain pass"], "s", ((read, done),)),
        Figure(f"scores of {len(batch)} rollouts", taken["scores"], "s", ((read + rows, done),)),
        Figure("scored", tokens / taken["scores"], "tokens/s", ((read + rows, done),), tokens),
        Figure("distance of a score alone and in a padded batch", distance, ""),
    ]


def merging(size: Size, device: str) -> list[Figure]:
    """Merging the adapter and taking it out, as for every synchronization with vLLM: drift and duration."""
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    from toolkit.lab.training.language_model.session import restore_base

    model, generator = published.published_model(device, size.text, size.lora), torch.Generator(device)
    layers = [layer for layer in model.modules() if isinstance(layer, BaseTunerLayer)]
    bases = [layer.get_base_layer().weight for layer in layers]
    moving = [tensor for name, tensor in model.named_parameters() if "lora_B" in name]
    total = sum(base.numel() for base in bases)

    def once() -> None:
        model.merge_adapter()
        model.unmerge_adapter()

    def drift() -> float:
        before = [base.detach().clone() for base in bases]
        for _ in range(size.merges):
            for tensor in moving:
                tensor.data.normal_(0, MOVED, generator=generator)
            once()
        changed = sum(int((base != copy).sum()) for base, copy in zip(bases, before, strict=True))
        return changed / total

    times = f"{size.merges} merges"
    found = [Figure(f"base weights changed by {times}", drift(), "")]
    restore_base(model)
    found.append(Figure(f"the same, restored by {times}", drift(), "", bound=0.0, basis="to the bit"))
    with torch.no_grad():
        taken = medians({"once": once}, ROUNDS, clock)["once"]
    # Kept, merged and put back: read and written each time.
    work = (6.0 * HALF * total, 2.0 * size.lora["r"] * total)
    return [*found, Figure("a merge, restored", taken, "s", (work,))]


def training(size: Size, device: str) -> list[Figure]:
    """Steps of `toolkit train --try`: rollouts by transformers, then the update; the first is not counted."""
    from tests.unit.lab.study.fake_play import specification
    from toolkit.lab.play.training_jobs import shortened, try_steps
    from toolkit.lab.policies.language_model import loading as chosen
    from toolkit.lab.policies.language_model.loading import load_chat, model_path
    from toolkit.lab.training.language_model.groups import examples
    from toolkit.lab.training.recipe import load_recipe, read_recipe

    with tempfile.TemporaryDirectory() as folder:
        chat = load_chat(model_path("small"))  # words of its own: no other tokenizer lies here
        base = published.published_model(device, size.text, size.lora).unload()
        base.config.eos_token_id, base.config.pad_token_id = chat.tokenizer.eos_token_id, 0
        base.save_pretrained(folder)
        chat.tokenizer.save_pretrained(folder)
        parameters = sum(weight.numel() for weight in base.parameters())
        del base
        changes = ("engine.kind=transformers", "sampling.max_turns=1", *size.settings)
        document = load_recipe("qwen3.5-2b", model=folder, changes=changes).document()
        if not _fla():
            del document["packages"][chosen.DISTRIBUTION]
        recipe, run = read_recipe(document, "this script"), specification()
        say = partial(print, file=sys.stderr)
        if device == "cuda":
            import torch

            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        trial = try_steps(run, recipe, STEPS, cpu=device == "cpu", say=say)
    maps = linear_maps(size.text)
    multiplied = sum(r * c for r, c in maps.values()) + size.text["hidden_size"] * size.text["vocab_size"]
    later, rollouts = trial.steps[1:], recipe.step.prompts * recipe.step.rollouts
    steps = {step.step for step in later}
    rows = [row for row in examples(shortened(run, recipe, STEPS)) if row["step"] in steps]
    said = sum(step.tokens for step in later)
    read = said + recipe.step.rollouts * sum(len(chat.opening(row["prompt"])) for row in rows)
    playing = sum(step.generation or 0.0 for step in later)
    seconds = sum(step.seconds for step in later)
    each = HALF if recipe.dtype == "bfloat16" else SINGLE
    # Token by token: all rollouts share the reading of the weights, once a token of each.
    generation = (each * multiplied * said / rollouts, 2.0 * multiplied * said)
    moved, done = needed(size.text, recipe.lora.rank, read, said, 2 if device == "cuda" else 1)
    batches = len(later) * rollouts // recipe.step.micro_batch
    update = (moved * batches, done)
    # An adapter, its gradient and AdamW's two moments are in single precision.
    held = each * parameters + 4 * SINGLE * adapter_parameters(maps, recipe.lora.rank)
    found = [
        Figure("generation by transformers", said / playing, "tokens/s", (generation,), said),
        Figure("outside generation", read / (seconds - playing), "tokens/s", (update,), read),
        Figure("a whole step, tokens said", said / seconds, "tokens/s", (generation, update), said),
        Figure("share of time outside generation", 1 - playing / seconds, ""),
    ]
    if trial.peak_gpu_bytes is not None:
        basis = "weights, adapter, gradients, moments"
        found.append(Figure("peak memory", trial.peak_gpu_bytes / 1e9, "GB", bound=held / 1e9, basis=basis))
    return found


PARTS = {part.__name__: part for part in (peaks, kernels, scores, merging, training)}
