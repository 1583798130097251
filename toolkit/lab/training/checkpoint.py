"""Checkpoints: weights as a row of a register, bit for bit, and back."""

import base64
import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from toolkit.errors import DamagedError
from toolkit.lab.training.optimizer import Weights
from toolkit.registers.arrow import Row

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
