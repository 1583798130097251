"""Teaching a small model the work before any of it is rewarded: supervised, from the reference agent.

1. A tokenizer is made from conversations, and an untrained model.
2. It learns to copy, then to read single arguments, then single requests, then two, then up to three. After
   the first steps, surnames are made up. The learning rate stays for half of the batches, then falls.
3. Model and tokenizer are written to a folder that transformers loads: the weights rounded to bfloat16, which
   halves the file, and loaded as float32, which processors are quick with.

The state is kept as it goes: what was cut off goes on from there, and more batches can be added later.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from small_model.lessons import (
    Lesson,
    copying_batch,
    drill_batch,
    lesson_batch,
    sample_conversations,
    sums_batch,
)
from small_model.quick import quick
from small_model.template import CHAT_TEMPLATE
from small_model.untrained import make_model, make_tokenizer
from toolkit.errors import UsageError
from toolkit.seeds import Stream, derive

STATE = ".warm-start.pt"
"""Hidden: it is no part of the model."""
TEXTS = 3000
KEPT_EVERY = 100
LEARNING_RATE = 4e-3
WARM_UP = 30
LEAST_RATE = 0.02
LEVEL = 0.5
"""Share of the batches in which the learning rate stays."""
PARTS = 2
"""Of a batch; how many it is decides the last digits, how many cores there are does not."""
CLIPPED = 1.0
"""Largest length of a gradient."""


@dataclass(frozen=True)
class Phase:
    """A stretch of teaching.

    Args:
        until: the batch that ends it.
        requests: how many requests the tasks of its lessons may have.
        drills: percent of batches that are drills.
        copying: percent of batches that are copying.
        sums: percent of batches that are sums.
        strange: whether surnames are made up, and drills are about what is rarely asked as well.
    """

    until: int
    requests: tuple[int, ...]
    drills: int
    copying: int
    sums: int = 0
    strange: bool = True


PHASES = (
    Phase(until=900, requests=(1,), drills=0, copying=100),
    Phase(until=1200, requests=(1,), drills=80, copying=5, strange=False),
    Phase(until=1500, requests=(1,), drills=50, copying=5),
    Phase(until=1800, requests=(1, 2), drills=30, copying=5),
)
LAST = Phase(until=0, requests=(1, 2, 3), drills=26, copying=3, sums=4)
"""What every later batch belongs to."""


@dataclass(frozen=True)
class Taught:
    """How far teaching has come.

    Args:
        step: batches done.
        of: batches in all.
        loss: mean loss of what the model said in the last batch.
    """

    step: int
    of: int
    loss: float


def warm_start(
    folder: Path, *, batches: int, seed: int = 0, watch: Callable[[Taught], None] = lambda _: None
) -> None:
    """Make a small model, teach it, and write it to a folder."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(seed)  # 1
    model = make_model(tokenizer, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    done = _taken_up(folder / STATE, model, optimizer, seed, batches)
    with quick(), one_core_each() as workers:
        for step, batch in enumerate(_batches(tokenizer, seed, done, batches), start=done):  # 2
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * rate_at(step, batches)
            loss = learn(model, optimizer, batch, tokenizer.pad_token_id, workers)
            if (step + 1) % KEPT_EVERY == 0 or step + 1 == batches:
                _keep(folder / STATE, model, optimizer, seed, step + 1)
            watch(Taught(step + 1, batches, loss))
    write(folder, model)  # 3
    tokenizer.save_pretrained(folder)


def write(folder: Path, model: Any) -> None:
    """Write a model to a folder that transformers and vLLM load.

    What share of a head turns with the position, transformers reads in one place and vLLM in another: here
    both say the same.
    """
    import torch

    model.to(torch.bfloat16).save_pretrained(folder)
    model.config.dtype = torch.float32
    model.config.partial_rotary_factor = model.config.rope_parameters["partial_rotary_factor"]
    model.config.save_pretrained(folder)


def rate_at(step: int, batches: int) -> float:
    """Return the share of the learning rate that a batch has."""
    falling = max(LEAST_RATE, min(1.0, (1 - step / batches) / (1 - LEVEL)))
    return falling * min(1.0, (step + 1) / WARM_UP)


def phase_at(step: int) -> Phase:
    """Return the phase that a batch belongs to."""
    return next((phase for phase in PHASES if step < phase.until), LAST)


def kind_at(seed: int, step: int) -> str:
    """Return what a batch is: `copying`, `drill`, `sums` or `lesson`."""
    phase = phase_at(step)
    drawn = Stream(derive("warm-start/v1", seed, step)).below(100)
    shares = {"copying": phase.copying, "drill": phase.drills, "sums": phase.sums}
    below = accumulate(shares.values())
    return next((kind for kind, end in zip(shares, below, strict=True) if drawn < end), "lesson")


@contextmanager
def one_core_each() -> Iterator[ThreadPoolExecutor]:
    """Yield threads that compute on one core each: quicker than all cores for one after another."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(PARTS, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(before)


def learn(model: Any, optimizer: Any, batch: list[Lesson], pad: int, workers: ThreadPoolExecutor) -> float:
    """Take one step down the weighted mean loss of a batch."""
    import torch

    parts = [part for part in (batch[at::PARTS] for at in range(PARTS)) if part]
    found = list(workers.map(lambda part: _slope(model, part, pad), parts))
    weight = sum(one.weight for one in found)
    for parameter, *slopes in zip(model.parameters(), *(one.slopes for one in found), strict=True):
        parameter.grad = sum(slopes[1:], slopes[0]) / weight
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPED)
    optimizer.step()
    return sum(one.loss for one in found) / sum(one.said for one in found)


def _batches(tokenizer: Any, seed: int, start: int, stop: int) -> Iterator[list[Lesson]]:
    """Yield the batches from `start` on, each kind numbered by itself."""
    numbers = Counter(kind_at(seed, step) for step in range(start))
    for step in range(start, stop):
        phase, kind = phase_at(step), kind_at(seed, step)
        number = numbers[kind]
        numbers[kind] += 1
        if kind == "copying":
            yield copying_batch(tokenizer, seed, number)
        elif kind == "sums":
            yield sums_batch(tokenizer, seed, number)
        elif kind == "drill":
            yield drill_batch(tokenizer, seed, number, strange=phase.strange)
        else:
            yield lesson_batch(tokenizer, seed, number, phase.requests, strange=phase.strange)


def _tokenizer(seed: int) -> Any:
    from jinja2 import Environment

    # Before there is a tokenizer, its template is rendered by itself.
    template = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page
    talks = sample_conversations(seed, TEXTS)
    return make_tokenizer(template.render(messages=messages) for messages in talks)


def _keep(path: Path, model: Any, optimizer: Any, seed: int, step: int) -> None:
    import torch

    part = path.with_suffix(".part")
    torch.save(
        {"seed": seed, "step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, part
    )
    part.replace(path)


def _taken_up(path: Path, model: Any, optimizer: Any, seed: int, batches: int) -> int:
    import torch

    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    if state["seed"] != seed or state["step"] > batches:
        raise UsageError(
            "another model was begun there",
            expected=f"seed {seed}, and at most {batches} batches",
            found=f"seed {state['seed']}, and {state['step']} batches",
            where=path,
            remedy="give another folder, or what it was begun with",
        )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


class _Slope(NamedTuple):
    """Gradients of the summed weighted loss of lessons, the sum of their weights, and what was said."""

    slopes: tuple[Any, ...]
    weight: float
    loss: float
    said: int


def _slope(model: Any, lessons: list[Lesson], pad: int) -> _Slope:
    import torch

    length = max(len(lesson.tokens) for lesson in lessons)
    tokens = torch.tensor([lesson.tokens + [pad] * (length - len(lesson.tokens)) for lesson in lessons])
    padded = [lesson.weights + [0.0] * (length - len(lesson.weights)) for lesson in lessons]
    weights = torch.tensor(padded)[:, 1:]
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
    each = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    ).view_as(weights)
    slopes = torch.autograd.grad((each * weights).sum(), list(model.parameters()))
    said = each.detach()[weights >= 1]
    return _Slope(slopes, float(weights.sum()), float(said.sum()), said.numel())
