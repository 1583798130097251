"""Merging an adapter for an engine, and taking it out again without a trace.

TRL gives vLLM the weights of every step by merging the adapter into the base and subtracting it afterwards.
In half precision that does not give the base back: it drifts from step to step, and a run that was resumed,
with the base as it was published, would train another one.
"""

from collections.abc import Iterator
from typing import Any


def restore_base(model: Any) -> None:
    """Have a model give its base weights back to the bit whenever its adapter was merged.

    While it is merged, a copy of the merged layers' base weights lies beside them.
    """
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
