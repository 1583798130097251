"""The log-likelihood of what the policy chose in transcripts, as a torch scalar to differentiate.

Padding is on the right, without an attention mask. A causal model's earlier positions see nothing of it,
neither in attention nor in a linear-attention layer's state, positions count from 0 as without it, and padded
positions get no gradient: what stands there changes no bit. On the left, a linear-attention layer
carries padding into what follows, where no mask removes it (one token of it put scores 16 % off), and a mask
sends attention another way, which differs in the last digits.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.probe.transcript import Transcript


def batch_log_likelihood(model: Any, part: Sequence[Transcript], temperature: float) -> Any:
    """Return Σ_i Σ_t m_it log π(y_it) of a padded batch, from logits at the positions of its choices only.

    Args:
        model: a causal language model.
        part: the transcripts that share the pass.
        temperature: divides the logits; the softmax is in single precision.

    Returns:
        A scalar float32 tensor. Each sequence's tokens enter its own summand only.
    """
    import torch

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    parameters = signature(base.forward).parameters
    length = max(len(transcript.tokens) for transcript in part)
    device = model.get_input_embeddings().weight.device
    # Any token pads.
    padded = [[*t.tokens, *[0] * (length - len(t.tokens))] for t in part]
    places = sorted({place for transcript in part for place, _ in transcript.choices})
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
    column = {place: at for at, place in enumerate(places)}
    chosen = [(row, column[at], token) for row, t in enumerate(part) for at, token in t.choices]
    rows, columns, targets = torch.tensor(chosen, device=logits.device).T
    logits = logits[rows, columns].float() / temperature
    return -torch.nn.functional.cross_entropy(logits, targets, reduction="sum")


def single_log_likelihood(model: Any, transcript: Transcript, temperature: float) -> Any:
    """Return Σ_t m_t log π(y_t) of one transcript as its definition says it: no padding, all logits.

    Args:
        model: a causal language model.
        transcript: the one transcript.
        temperature: divides the logits; the softmax is in single precision.

    Returns:
        A scalar float32 tensor.
    """
    import torch

    tokens = torch.tensor([transcript.tokens], device=model.get_input_embeddings().weight.device)
    logits = model(input_ids=tokens).logits[0].float() / temperature
    places, targets = map(list, zip(*transcript.choices, strict=True))
    return torch.log_softmax(logits, dim=-1)[places, targets].sum()
