"""The log-likelihood of what the policy chose in transcripts: a torch scalar to differentiate, or its parts.

Padding is on the right, without an attention mask. A causal model's earlier positions see nothing of it,
neither in attention nor in a linear-attention layer's state, positions count from 0 as without it, and padded
positions get no gradient: what stands there changes no bit. On the left, a linear-attention layer
carries padding into what follows, where no mask removes it (one token of it put scores 16 % off), and a mask
sends attention another way, which differs in the last digits.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import UsageError
from toolkit.lab.probe.adapter import Adapter, Coordinates
from toolkit.lab.probe.recorded import Transcript


def batch_log_likelihood(model: Any, part: Sequence[Transcript], temperature: float) -> Any:
    """Return Σ_i Σ_t m_it log π(y_it) of a padded batch, from logits at the positions of its choices only."""
    return _log_probabilities(model, part, temperature).sum()


def log_probabilities(
    model: Any, transcripts: Sequence[Transcript], temperature: float, batch: int = 8
) -> list[NDArray[np.float64]]:
    """Return log π(y_it) of every token that was chosen in each transcript, in nats; without gradients."""
    import torch

    found: list[NDArray[np.float64]] = []
    for first in range(0, len(transcripts), batch):
        part = transcripts[first : first + batch]
        with torch.no_grad():
            scores = _log_probabilities(model, part, temperature).cpu().numpy().astype(float)
        found += np.split(scores, np.cumsum([len(one.choices) for one in part])[:-1])
    return found


def _log_probabilities(model: Any, part: Sequence[Transcript], temperature: float) -> Any:
    """Return log π(y_it) of a padded batch's choices, transcript by transcript, as a float32 tensor."""
    import torch

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    parameters = signature(base.forward).parameters
    length = max(len(transcript.tokens) for transcript in part)
    device = model.get_input_embeddings().weight.device
    # Any token pads.
    padded = [[*t.tokens, *[0] * (length - len(t.tokens))] for t in part]
    places = sorted({position for transcript in part for position, _ in transcript.choices})
    options = {
        "position_ids": torch.arange(length, device=device)[None],
        "logits_to_keep": torch.tensor(places, device=device),
        "use_cache": False,
    }
    # A model with further keywords hands them on; `use_cache` is often among these.
    open_ended = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    taken = {n: v for n, v in options.items() if n in parameters or (n == "use_cache" and open_ended)}
    logits = model(input_ids=torch.tensor(padded, device=device), **taken).logits
    if "logits_to_keep" not in taken:
        logits = logits[:, places]
    column = {position: at for at, position in enumerate(places)}
    chosen = [(row, column[at], token) for row, t in enumerate(part) for at, token in t.choices]
    rows, columns, targets = torch.tensor(chosen, device=logits.device).T
    logits = logits[rows, columns].float() / temperature
    return -torch.nn.functional.cross_entropy(logits, targets, reduction="none")


# What the hooks add up may differ from the gradient by rounding only, relative to its norm: 2e-7 was measured
# in single precision, and a half-precision tensor rounds its gradient to 2^-8. A weight that is used past its
# module's forward is off by much of its gradient.
SINGLE, HALF, HALF_BYTES = 1e-3, 0.05, 2


@contextmanager
def hooked(adapter: Adapter, rows: Any, coordinates: Coordinates) -> Iterator[set[str]]:
    """Add up each sequence's part of every tensor's gradient while a forward and a backward pass run inside.

    A hook on a module's output tensor gets the same gradient as a full backward hook, without a view of the
    output in between and without a warning where the module's input needs no gradient (the first layer). What
    a hook has taken is freed with the pass's graph.
    """
    import torch

    places, fired = coordinates.places, set[str]()

    def take(name: str, place: slice, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        (entered,) = inputs
        if entered.dim() != 3 or len(entered) != len(rows):  # noqa: PLR2004
            raise UsageError(
                "a module does not keep the sequences of a batch apart",
                expected=f"an input of (sequences, tokens, features) with {len(rows)} sequences",
                found=tuple(entered.shape),
                where=f"{name} ({type(module).__name__})",
                remedy="adapt modules that see whole sequences only, no routed experts",
            )
        kept = entered.detach()

        def add(gradient: Any) -> None:
            part = torch.einsum("sto,sti->soi", gradient.float(), kept.float())
            rows[:, place] += part.flatten(1).to(rows.device)
            fired.add(name)

        if output.requires_grad:
            output.register_hook(add)

    handles = [
        module.register_forward_hook(partial(take, name, places[name]))
        for name, module in adapter.modules
        if name in places
    ]
    try:
        yield fired
    finally:
        for handle in handles:
            handle.remove()


def verify_hooks(adapter: Adapter, row: Any, fired: Collection[str]) -> None:
    """Verify that the hooks account for the gradient that a pass over one transcript left in the tensors."""
    places = adapter.everything().places
    for name in adapter.present().names:
        gradient = adapter.tensors[name].grad.float().flatten()
        apart = (row[places[name]].to(gradient.device) - gradient).norm().item()
        half = adapter.tensors[name].element_size() == HALF_BYTES
        if name not in fired or not apart <= (HALF if half else SINGLE) * gradient.norm().item():
            raise UsageError(
                "the model uses an adapter's weight in another way than as a linear module",
                expected=f"its gradient, of norm {gradient.norm().item():.6g}, from its module's output",
                found=f"one that is {apart:.6g} away" if name in fired else "no gradient at its output",
                where=name,
                remedy="use plain LoRA on linear modules: no DoRA, no fused or expert kernels",
            )
