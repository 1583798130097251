"""The coordinates of a score vector: which tensors take part, in which order, and that they stay the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a score vector: the LoRA tensors that take part, end to end, in the model's order.

    Args:
        names: the tensors' names in the model.
        shapes: their shapes, in the same order.

    Source:
        Paper app:probe: "tensors whose gradient is present (grad is not None), including tensors whose
        gradient values are zero".
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def places(self) -> dict[str, slice]:
        """Return where each tensor's coordinates are in a score vector."""
        found, start = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            size = 1
            for length in shape:
                size *= length
            found[name] = slice(start, start + size)
            start += size
        return found

    @property
    def size(self) -> int:
        """Return P, the length of a score vector."""
        return max((place.stop for place in self.places.values()), default=0)

    @property
    def names_sha256(self) -> str:
        """Return the SHA-256 of the coordinates' list, one line "name shape" a tensor, as "… 4,64"."""
        digest = hashlib.sha256()
        for name, shape in zip(self.names, self.shapes, strict=True):
            digest.update(f"{name} {','.join(map(str, shape))}\n".encode())
        return digest.hexdigest()


def verify_presence(expected: Coordinates, found: Coordinates, fired: Collection[str] | None = None) -> None:
    """Verify that the same tensors have a gradient as in the first pass, and that their hooks saw it.

    Args:
        expected: the coordinates of the first pass.
        found: those that have a gradient now.
        fired: the tensors whose hooks ran, or None where there were none.

    Raises:
        VerificationError: a tensor stopped or started taking part.
    """
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
