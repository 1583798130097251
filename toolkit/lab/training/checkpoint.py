"""Weights of a policy: steps of Adam, of the plain gradient and of SignSGD, and rows of `checkpoints`."""

import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row
from toolkit.structs import replace

MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
EPSILON = 1e-8
NOTHING = 1e-14
"""A slope without a sign: rounding leaves less of a sum whose terms cancel, and any other is larger."""


@dataclass(frozen=True)
class Weights:
    """A policy's parameters and the optimizer's state."""

    step: int  # steps done
    parameters: tuple[float, ...]  # of the policy
    first_moment: tuple[float, ...]  # Adam's running mean of the gradient; zeros under another optimizer
    second_moment: tuple[float, ...]  # Adam's running mean of the squared gradient; likewise


def start(parameters: Sequence[float]) -> Weights:
    """Return the state before the first step."""
    zeros = (0.0,) * len(parameters)
    return Weights(0, tuple(parameters), zeros, zeros)


def ascend(
    weights: Weights,
    gradient: Sequence[float],
    learning_rate: float,
    optimizer: str = "adam",
    square_decay: float = SQUARE_DECAY,
) -> Weights:
    """Return the state after one step up the gradient."""
    if optimizer == "adam":
        return _adam(weights, gradient, learning_rate, square_decay)
    if optimizer == "gradient":
        moves = [learning_rate * slope for slope in gradient]
    elif optimizer == "sign":
        moves = [learning_rate * ((slope > NOTHING) - (slope < -NOTHING)) for slope in gradient]
    else:
        raise ValueError(f"there is no optimizer {optimizer!r}")
    moved = (parameter + move for parameter, move in zip(weights.parameters, moves, strict=True))
    return replace(weights, step=weights.step + 1, parameters=tuple(moved))


def _adam(weights: Weights, gradient: Sequence[float], learning_rate: float, square_decay: float) -> Weights:
    step = weights.step + 1
    mean_part, square_part = _correction(MEAN_DECAY, step), _correction(square_decay, step)
    parameters, first, second = [], [], []
    for parameter, mean, square, slope in zip(
        weights.parameters, weights.first_moment, weights.second_moment, gradient, strict=True
    ):
        mean = MEAN_DECAY * mean + (1.0 - MEAN_DECAY) * slope  # noqa: PLW2901 - the running mean itself
        square = square_decay * square + (1.0 - square_decay) * slope * slope  # noqa: PLW2901
        first.append(mean)
        second.append(square)
        root = sqrt(square / square_part) + EPSILON
        parameters.append(parameter + learning_rate * (mean / mean_part) / root)
    return Weights(step, tuple(parameters), tuple(first), tuple(second))


def _correction(decay: float, step: int) -> float:
    """Return 1 - β^t, by products: a library's power may differ in the last bit."""
    power = 1.0
    for _ in range(step):
        power *= decay
    return 1.0 - power


PARTS = ("parameters", "first_moment", "second_moment")


def checkpoint_row(run_id: str, weights: Weights) -> Row:
    """Return weights as a row of `checkpoints`."""
    parts = {name: list(getattr(weights, name)) for name in PARTS}
    return {"run_id": run_id, "step": weights.step, **parts, "sha256": checkpoint_sha256(parts)}


def read_checkpoint(row: Mapping[str, Any], run_id: str, size: int) -> Weights:
    """Return the weights of a row."""
    parts = {name: row[name] for name in PARTS}
    if row["run_id"] != run_id:
        raise DamagedError("the checkpoint belongs to another run", expected=run_id, found=row["run_id"])
    lengths = {len(part) for part in parts.values()}
    if lengths != {size}:
        raise DamagedError(
            "the checkpoint belongs to another policy",
            expected=f"{size} parameters",
            found=", ".join(map(str, sorted(lengths))),
            where=f"{run_id} at step {row['step']}",
        )
    if checkpoint_sha256(parts) != row["sha256"]:
        problem = "the checkpoint's numbers are not those that were written"
        where = f"{run_id} at step {row['step']}"
        raise DamagedError(problem, expected=row["sha256"], found=checkpoint_sha256(parts), where=where)
    return Weights(row["step"], *(tuple(parts[name]) for name in PARTS))


def adapter_sha256(row: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the adapter in a row of `adapters`: the named one where it is kept elsewhere."""
    if row["adapter"] is None:
        return str(row["sha256"])
    return hashlib.sha256(base64.b64decode(row["adapter"])).hexdigest()


def checkpoint_sha256(parts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a checkpoint: parameters and both moments, as little-endian doubles."""
    digest = hashlib.sha256()
    for name in PARTS:
        digest.update(struct.pack(f"<{len(parts[name])}d", *parts[name]))
    return digest.hexdigest()
