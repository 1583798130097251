"""What a model, its transcripts and its scores have to be: refused before a pass, or after it."""

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.probe.adapter import Coordinates
from toolkit.probe.recorded import Transcript


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
    """Refuse what cannot be scored before anything is computed.

    Args:
        transcripts: what is to be scored.
        batch: how many share a pass.
        vocabulary: number of tokens that the model knows.

    Raises:
        UsageError: there are none, a batch holds none, or the model does not know a token.
    """
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
    """Refuse scores with a value that is not finite.

    Args:
        rows: (transcripts, P) tensor.
        part: the transcripts.
        first: the number of the first of them.
        coordinates: what the columns are.

    Raises:
        DamagedError: naming the first such transcript, and its first such tensor.
    """
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
