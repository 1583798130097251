"""The LoRA adapter of a model: which tensors it trains, and that none of them changes.

Nothing here imports torch before there is a model: whoever has one has imported it.
"""

import hashlib
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.errors import UsageError, VerificationError


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a score vector: the LoRA tensors that take part, end to end, in the model's order.

    Source:
        Paper app:probe: "tensors whose gradient is present (grad is not None), including tensors whose
        gradient values are zero".
    """

    names: tuple[str, ...]  # the tensors' names in the model
    shapes: tuple[tuple[int, ...], ...]  # their shapes, in the same order

    @property
    def places(self) -> dict[str, slice]:
        """Return where each tensor's coordinates are in a score vector."""
        slices, start = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            slices[name] = slice(start, start + math.prod(shape))
            start = slices[name].stop
        return slices

    @property
    def size(self) -> int:
        """Return P, the length of a score vector."""
        return max((part.stop for part in self.places.values()), default=0)

    @property
    def names_sha256(self) -> str:
        """Return the SHA-256 of the coordinates' list, one line "name shape" a tensor, as "… 4,64"."""
        digest = hashlib.sha256()
        for name, shape in zip(self.names, self.shapes, strict=True):
            digest.update(f"{name} {','.join(map(str, shape))}\n".encode())
        return digest.hexdigest()


def verify_presence(expected: Coordinates, found: Coordinates, fired: Collection[str] | None = None) -> None:
    """Verify that the same tensors have a gradient as in the first pass, and that their hooks saw it."""
    seen = [name for name in found.names if fired is None or name in fired]
    stopped = next((name for name in expected.names if name not in seen), None)
    started = next((name for name in found.names if name not in expected.names), None)
    if stopped is not None or started is not None:
        raise VerificationError(
            "not the same LoRA tensors take part as in the first pass",
            expected=f"{len(expected.names)} tensors with a gradient, names_sha256 {expected.names_sha256}",
            found=f"{'no gradient' if stopped else 'a gradient'} at {stopped or started}",
            where=stopped or started,
            remedy="score transcripts of one kind, all text or all with images; change no module meanwhile",
        )


# An odd number: a change of one value changes every multiple by it, modulo 2^64. This one is 2^64 over the
# golden ratio, which spreads neighbouring positions.
STEP = 0x9E3779B97F4A7C15 - 2**64
LOOK = "the adapter is hashed when a scorer is made, summed at every pass, and hashed again at the end"


class Adapter:
    """The one active LoRA adapter of a model, as it was when this object was made.

    Args:
        model: a torch model that peft has put LoRA adapters into, one of them active and trainable.

    Attributes:
        tensors: the adapter's trainable weights by name, in the model's order; disconnected ones too.
        modules: the `torch.nn.Linear` modules that hold them, each with its weight's name.
        sha256: SHA-256 of the tensors' values in that order, as they lie in memory.

    Raises:
        UsageError: no adapter, several active ones, an adapter that is merged, switched off, quantized or not
            trainable, or something trainable that is not a LoRA weight.
    """

    def __init__(self, model: Any) -> None:
        trainable = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        names = {id(tensor): name for name, tensor in trainable.items()}
        linears = list(_active_linears(model))
        self.modules = tuple((names[id(m.weight)], m) for m in linears if id(m.weight) in names)
        held = {name for name, _ in self.modules}
        if not held:
            raise UsageError(
                "no weight of the model's LoRA adapter is trainable",
                expected="lora_A and lora_B weights with requires_grad",
                found=f"{len(linears)} of them, none trainable",
                remedy="load the adapter with is_trainable=True",
            )
        strange = next((name for name in trainable if name not in held), None)
        if strange is not None:
            raise UsageError(
                "something is trainable that is not the weight of a linear LoRA module",
                expected="requires_grad only for the weights of lora_A and lora_B",
                found=strange,
                remedy="freeze it, or use LoRA without biases, magnitudes (DoRA) and saved modules",
            )
        self.tensors = {name: tensor for name, tensor in trainable.items() if name in held}
        self.sha256 = self._sha256()
        self._sums = self._checksums()
        self._frozen = [(n, t, t._version) for n, t in model.named_parameters() if not t.requires_grad]  # noqa: SLF001
        self._model = model

    def verify(self) -> None:
        """Verify that adapter and base are what they were, by sums on the device and by torch's versions."""
        trainable = {name: tensor for name, tensor in self._model.named_parameters() if tensor.requires_grad}
        for name in [*self.tensors, *trainable]:
            if self.tensors.get(name) is not trainable.get(name):
                raise VerificationError(
                    "the adapter is not the one that the scorer was made with",
                    expected="the same trainable tensors",
                    found="one was replaced, frozen or added",
                    where=name,
                    remedy="score with one adapter at a time, and make a new scorer for another",
                )
        for name, before, after in zip(self.tensors, self._sums, self._checksums(), strict=True):
            if before != after:
                raise VerificationError(
                    "the adapter changed between two passes",
                    expected=f"the values that sum to {before}",
                    found=f"values that sum to {after}",
                    where=name,
                    remedy=f"train nothing while scores are computed; {LOOK}",
                )
        now = dict(self._model.named_parameters())
        for name, tensor, before in self._frozen:
            same, version = now.get(name) is tensor, tensor._version  # noqa: SLF001
            if not same or version != before:
                raise VerificationError(
                    "a frozen weight of the model changed between two passes",
                    expected=f"the same tensor, version {before}",
                    found=f"version {version}" if same else "another tensor",
                    where=name,
                    remedy="change nothing in the model while scores are computed",
                )

    def verify_sha256(self) -> str:
        """Return the adapter's SHA-256, computed again from its values."""
        sha256 = self._sha256()
        if sha256 != self.sha256:
            raise VerificationError(
                "the adapter changed while scores were computed",
                expected=self.sha256,
                found=sha256,
                remedy=f"train nothing while scores are computed; {LOOK}",
            )
        return sha256

    def everything(self) -> Coordinates:
        """Return all its tensors, also those that take no part."""
        return _coordinates(self.tensors)

    def present(self) -> Coordinates:
        """Return the tensors that have a gradient now, zero or not."""
        return _coordinates({name: t for name, t in self.tensors.items() if t.grad is not None})

    def _sha256(self) -> str:
        import torch

        digest = hashlib.sha256()
        for tensor in self.tensors.values():
            digest.update(tensor.detach().contiguous().view(torch.uint8).cpu().numpy().tobytes())
        return digest.hexdigest()

    def _checksums(self) -> list[int]:
        """Return one 64-bit sum a tensor: its bits as integers, each times an odd number of its place's."""
        import torch

        integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        sums: list[Any] = []
        odd: dict[Any, Any] = {}
        for tensor in self.tensors.values():
            bits = (
                tensor.detach().contiguous().view(integers[tensor.element_size()]).flatten().to(torch.int64)
            )
            key = (bits.device, len(bits))
            if key not in odd:
                odd[key] = torch.arange(len(bits), device=bits.device) * STEP * 2 + 1
            sums.append((bits * odd[key]).sum().to(sums[0].device if sums else bits.device))
        return [int(total) for total in torch.stack(sums).tolist()]


def _active_linears(model: Any) -> Iterator[Any]:
    """Yield the linear modules of the one active adapter, in the model's order."""
    import torch
    from peft.tuners.lora import LoraLayer

    layers = [module for module in model.modules() if isinstance(module, LoraLayer)]
    active = sorted({name for layer in layers for name in layer.active_adapters if name in layer.lora_A})
    if len(active) != 1:
        raise UsageError(
            "a score needs one active LoRA adapter",
            expected="one adapter",
            found=", ".join(active) or f"none in {len(layers)} LoRA layers",
            remedy="add one with peft.get_peft_model, or choose one with set_adapter",
        )
    for layer in layers:
        if layer.disable_adapters or layer.merged:
            raise UsageError(
                "the adapter is not applied on its own",
                expected="an adapter that is neither disabled nor merged into the model",
                found="disabled" if layer.disable_adapters else "merged",
                remedy="enable the adapter, or unmerge it with unmerge_adapter",
            )
        for held in (layer.lora_A, layer.lora_B):
            if active[0] in held:
                module = held[active[0]]
                if not isinstance(module, torch.nn.Linear):
                    raise UsageError(
                        "an adapter's module is not linear",
                        expected="torch.nn.Linear",
                        found=type(module).__name__,
                        remedy="adapt linear modules only, for instance with target_modules='all-linear'",
                    )
                yield module


def _coordinates(tensors: dict[str, Any]) -> Coordinates:
    return Coordinates(tuple(tensors), tuple(tuple(tensor.shape) for tensor in tensors.values()))
