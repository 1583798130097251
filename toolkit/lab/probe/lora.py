"""Score vectors of a torch language model: one a transcript, in the coordinates of its LoRA adapter.

    S_i = ∂/∂θ Σ_t m_it log softmax(logits_{i,t-1} / temperature)[y_it]

A pass over a padded batch is one forward and one backward of Σ_i log-likelihoods; hooks keep the sequences
apart; a test holds them to a loop of single passes without hooks or padding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.lab.probe.adapter import Adapter, Coordinates, verify_presence
from toolkit.lab.probe.gradients import batch_log_likelihood, hooked, verify_hooks
from toolkit.lab.probe.recorded import Transcript

Rows = NDArray[np.float32]


class Scorer:
    """Scores of transcripts under one model with one LoRA adapter, none of which may change meanwhile.

    As a context manager it ends with `finish`. Gradients that the model's tensors hold are put aside during a
    pass and put back. In single precision, leave torch's matrix products at full precision (no TF32).

    Args:
        model: a causal language model of transformers in evaluation mode, with one active LoRA adapter.
        temperature: what the logits were divided by when the transcripts were sampled.

    Attributes:
        adapter: the adapter, with its SHA-256.
        passes: number of backward passes that were verified so far.

    Raises:
        UsageError: the temperature is not a positive number, the model is in training mode or checkpoints its
            gradients, or it has no adapter that scores can be computed for (see `Adapter`).

    Source:
        Paper app:probe, "Scores".
    """

    def __init__(self, model: Any, temperature: float = 1.0) -> None:
        check_temperature(temperature)
        check_checkpointing(model)
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
                "the coordinates are not known before a first pass",
                expected="an identifying pass",
                found="none",
                remedy="call identify with a transcript",
            )
        return self._coordinates

    def identify(self, transcript: Transcript) -> Coordinates:
        """Return the coordinates, from one pass over a transcript: the tensors whose gradient is not None.

        The hooks run too, and have to give the same gradient. Whoever does not call this has it done with the
        first transcript.
        """
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
        """Yield the score of each transcript, in the order given, by hooks: one pass for a padded batch."""
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
            raise UsageError(
                "the scorer is finished",
                expected="a scorer in use",
                found="one whose adapter was verified for the last time",
                remedy="make a new scorer",
            )
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


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that no softmax was sampled at."""
    if not 0 < temperature < float("inf"):
        raise UsageError(
            "the temperature divides the logits",
            expected="a finite number above 0",
            found=temperature,
            remedy="give the temperature that the transcripts were sampled at",
        )


def check_checkpointing(model: Any) -> None:
    """Refuse gradient checkpointing: it runs modules twice, and their hooks with them."""
    name = _first(model, lambda module: getattr(module, "gradient_checkpointing", False) is True)
    if name is not None:
        raise UsageError(
            "the model checkpoints its gradients, which runs modules and their hooks twice",
            expected="gradient checkpointing switched off",
            found="switched on",
            where=name or type(model).__name__,
            remedy="call model.gradient_checkpointing_disable()",
        )


def check_evaluation_mode(model: Any, error: type[UsageError | VerificationError]) -> None:
    """Refuse a model with a module in training mode: dropout would make scores random."""
    name = _first(model, lambda module: module.training)
    if name is not None:
        raise error(
            "the model is in training mode",
            expected="every module in evaluation mode, without dropout",
            found="training mode",
            where=name or type(model).__name__,
            remedy="call model.eval()",
        )


def check_transcripts(transcripts: Sequence[Transcript], batch: int, vocabulary: int) -> None:
    """Refuse what cannot be scored before anything is computed."""
    if not transcripts:
        raise UsageError(
            "there is nothing to score",
            expected="at least one transcript",
            found="none",
            remedy="give the transcripts of some rollouts",
        )
    if batch < 1:
        raise UsageError(
            "a pass needs transcripts",
            expected="a batch of 1 or more",
            found=batch,
            remedy="give a larger batch",
        )
    for at, transcript in enumerate(transcripts):
        if max(transcript.tokens) >= vocabulary:
            raise UsageError(
                "the model does not know a token",
                expected=f"numbers below {vocabulary}",
                found=max(transcript.tokens),
                where=f"transcript {at}",
                remedy="score transcripts of this model's tokenizer",
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


def _first(model: Any, holds: Callable[[Any], bool]) -> str | None:
    """Return the name of the first module of which something holds."""
    return next((name for name, module in model.named_modules() if holds(module)), None)
