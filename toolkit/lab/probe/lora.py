"""Score vectors of a torch language model: one a transcript, in the coordinates of its LoRA adapter.

    S_i = ∂/∂θ Σ_t m_it log softmax(logits_{i,t-1} / temperature)[y_it]

Padding is on the right, without an attention mask: what a causal model computes before it does not depend on
it, and padded positions have no gradient. On the left, a linear-attention layer carries padding into what
follows (one token of it put scores 16 % off), and a mask changes the last digits.
"""

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.lab.probe.recorded import Transcript


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a score: the LoRA tensors with a gradient, zero or not, in the model's order."""

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
    """The one active LoRA adapter of a model, as it was when this object was made."""

    def __init__(self, model: Any) -> None:
        trainable = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        names = {id(tensor): name for name, tensor in trainable.items()}
        linears = list(_active_linears(model))
        self.modules = tuple((names[id(m.weight)], m) for m in linears if id(m.weight) in names)
        held = {name for name, _ in self.modules}
        if not held:
            problem = "no weight of the model's LoRA adapter is trainable"
            found = f"{len(linears)} of them"
            raise UsageError(problem, found=found, remedy="load the adapter with is_trainable=True")
        if strange := next((name for name in trainable if name not in held), None):
            problem = "something is trainable that is not the weight of a linear LoRA module"
            remedy = "freeze it, or use LoRA without biases, magnitudes (DoRA) and saved modules"
            raise UsageError(problem, found=strange, remedy=remedy)
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
                problem = "the adapter is not the one that the scorer was made with"
                remedy = "score with one adapter at a time, and make a new scorer for another"
                raise VerificationError(problem, where=name, remedy=remedy)
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
            problem = "the adapter changed while scores were computed"
            remedy = f"train nothing while scores are computed; {LOOK}"
            raise VerificationError(problem, expected=self.sha256, found=sha256, remedy=remedy)
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
                found="disabled" if layer.disable_adapters else "merged",
                remedy="enable the adapter, or unmerge it with unmerge_adapter",
            )
        for held in (layer.lora_A, layer.lora_B):
            if active[0] in held:
                module = held[active[0]]
                if not isinstance(module, torch.nn.Linear):
                    remedy = "adapt linear modules only, for instance with target_modules='all-linear'"
                    raise UsageError(
                        "an adapter's module is not linear", found=type(module).__name__, remedy=remedy
                    )
                yield module


def _coordinates(tensors: dict[str, Any]) -> Coordinates:
    return Coordinates(tuple(tensors), tuple(tuple(tensor.shape) for tensor in tensors.values()))


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
    """Add up each sequence's part of every tensor's gradient while passes run inside."""
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


Rows = NDArray[np.float32]


class Scorer:
    """Scores of transcripts under one model with one LoRA adapter, none of which may change meanwhile."""

    def __init__(self, model: Any, temperature: float = 1.0) -> None:
        if not 0 < temperature < float("inf"):
            remedy = "give the temperature that the transcripts were sampled at, a finite number above 0"
            raise UsageError("the temperature divides the logits", found=temperature, remedy=remedy)
        for name, module in model.named_modules():
            if getattr(module, "gradient_checkpointing", False) is True:
                problem = "the model checkpoints its gradients, which runs modules and their hooks twice"
                where = name or type(model).__name__
                raise UsageError(problem, where=where, remedy="call model.gradient_checkpointing_disable()")
        check_evaluation_mode(model, UsageError)
        self.adapter = Adapter(model)
        self.temperature = temperature
        self.passes = 0
        self._model = model
        self._embedding = model.get_input_embeddings().weight
        self._coordinates: Coordinates | None = None
        self._finished = False

    @property
    def coordinates(self) -> Coordinates:
        """Return the coordinates of the scores."""
        if self._coordinates is None:
            raise UsageError(
                "the coordinates are not known before a first pass", remedy="call identify with a transcript"
            )
        return self._coordinates

    def identify(self, transcript: Transcript) -> Coordinates:
        """Return the coordinates, from one pass over a transcript: the tensors whose gradient is not None."""
        self._check([transcript])
        everything = self.adapter.everything()
        with self._pass():
            rows = self._empty(1, everything)
            with hooked(self.adapter, rows, everything) as fired:
                batch_log_likelihood(self._model, [transcript], self.temperature).backward()
            check_finite(rows, [transcript], 0, everything)
            verify_hooks(self.adapter, rows[0], fired)
            present = self.adapter.present()
            if self._coordinates is not None:
                verify_presence(self._coordinates, present)
        self._coordinates = present
        return present

    def scores(self, transcripts: Sequence[Transcript], batch: int = 8) -> Iterator[Rows]:
        """Yield the score of each transcript, in the order given: one pass for a padded batch."""
        self._check(transcripts, batch)
        return self._batches(transcripts, batch)

    def finish(self) -> str:
        """Verify a last time that nothing changed, end the scorer, and return the adapter's SHA-256."""
        self._finished = True
        self.adapter.verify()
        return self.adapter.verify_sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def _batches(self, transcripts: Sequence[Transcript], batch: int) -> Iterator[Rows]:
        coordinates = self._coordinates or self.identify(transcripts[0])
        for first in range(0, len(transcripts), batch):
            part = transcripts[first : first + batch]
            with self._pass():
                rows = self._empty(len(part), coordinates)
                with hooked(self.adapter, rows, coordinates) as fired:
                    batch_log_likelihood(self._model, part, self.temperature).backward()
                verify_presence(coordinates, self.adapter.present(), fired)
            check_finite(rows, part, first, coordinates)
            yield from rows.cpu().numpy()

    def _check(self, transcripts: Sequence[Transcript], batch: int = 1) -> None:
        """Refuse what cannot be scored, and a scorer that is finished, before anything is computed."""
        if self._finished:
            raise UsageError("the scorer is finished", remedy="make a new scorer")
        check_transcripts(transcripts, batch, len(self._embedding))

    @contextmanager
    def _pass(self) -> Iterator[None]:
        """Verify what a pass rests on, run it with gradients of its own, and leave those there were."""
        import torch

        check_evaluation_mode(self._model, VerificationError)
        self.adapter.verify()
        before = {name: tensor.grad for name, tensor in self.adapter.tensors.items()}
        try:
            for tensor in self.adapter.tensors.values():
                tensor.grad = None
            with torch.enable_grad():
                yield
        finally:
            for name, tensor in self.adapter.tensors.items():
                tensor.grad = before[name]
        self.passes += 1

    def _empty(self, rows: int, coordinates: Coordinates) -> Any:
        import torch

        return torch.zeros((rows, coordinates.size), dtype=torch.float32, device=self._embedding.device)


def check_evaluation_mode(model: Any, error: type[UsageError | VerificationError]) -> None:
    """Refuse a model with a module in training mode: dropout would make scores random."""
    name = next((name for name, module in model.named_modules() if module.training), None)
    if name is not None:
        where = name or type(model).__name__
        raise error("the model is in training mode", where=where, remedy="call model.eval()")


def check_transcripts(transcripts: Sequence[Transcript], batch: int, vocabulary: int) -> None:
    """Refuse what cannot be scored before anything is computed."""
    if not transcripts:
        raise UsageError("there is nothing to score", remedy="give the transcripts of some rollouts")
    if batch < 1:
        raise UsageError("a pass needs transcripts", found=batch, remedy="give a batch of 1 or more")
    for at, transcript in enumerate(transcripts):
        if max(transcript.tokens) >= vocabulary:
            problem, expected = "the model does not know a token", f"numbers below {vocabulary}"
            where, remedy = f"transcript {at}", "score transcripts of this model's tokenizer"
            raise UsageError(
                problem, expected=expected, found=max(transcript.tokens), where=where, remedy=remedy
            )


def check_finite(rows: Any, part: Sequence[Transcript], first: int, coordinates: Coordinates) -> None:
    """Refuse scores with a value that is not finite."""
    good = rows.isfinite()
    if good.all():
        return
    row, column = (~good).nonzero()[0].tolist()
    name = next(name for name, columns in coordinates.places.items() if column < columns.stop)
    raise DamagedError(
        "a score has a value that is not finite",
        expected="finite numbers",
        found=rows[row, column].item(),
        where=f"transcript {first + row} ({len(part[row].tokens)} tokens), {name}",
        remedy="look at the model's weights and at this transcript; a half-precision model can overflow",
    )
