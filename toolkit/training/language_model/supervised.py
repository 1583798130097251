"""One step of supervised learning: the parts of a batch are computed side by side, each on one core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.training.language_model.lessons import Lesson

PARTS = 2
"""Of a batch; how many it is decides the last digits, how many cores there are does not."""
CLIPPED = 1.0
"""Largest length of a gradient."""


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
    """Take one step down the weighted mean loss of a batch.

    Args:
        model: a causal language model of transformers.
        optimizer: of its parameters.
        batch: lessons.
        pad: token that fills shorter lessons up.
        workers: who computes the parts.

    Returns:
        The mean loss of what the model said: of tokens with a weight of at least 1.
    """
    import torch

    parts = [part for part in (batch[at::PARTS] for at in range(PARTS)) if part]
    found = list(workers.map(lambda part: _slope(model, part, pad), parts))
    weight = sum(one.weight for one in found)
    for parameter, *slopes in zip(model.parameters(), *(one.slopes for one in found), strict=True):
        parameter.grad = sum(slopes[1:], slopes[0]) / weight
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPED)
    optimizer.step()
    return sum(one.loss for one in found) / sum(one.said for one in found)


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
