"""Hooks on an adapter's modules: each sequence's own gradient out of one backward pass over a batch.

For a module y = x Wᵀ, sequence i's part of the gradient of W is Σ_t g_it x_itᵀ, where g is the gradient at y.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from toolkit.probe.adapter import Adapter
    from toolkit.probe.coordinates import Coordinates


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

    Args:
        adapter: whose modules to hook.
        rows: (sequences, P) float32 tensor of zeros, which the parts are added to.
        coordinates: where each tensor's part goes; tensors that are not among them are left out.

    Yields:
        The names of the tensors whose hooks ran in the backward pass so far.

    Raises:
        UsageError: a module sees something else than (sequences, tokens, features).
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
    """Verify that the hooks account for the gradient that a pass over one transcript left in the tensors.

    Args:
        adapter: whose tensors hold the gradient.
        row: what the hooks added up, over all of the adapter's tensors.
        fired: the tensors whose hooks ran.

    Raises:
        UsageError: the model uses a weight past its module, which the hooks cannot see.
    """
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
