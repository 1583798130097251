"""One block of scores in double precision, and its product: memory that is used again for the next block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Entries of a block in double precision: 2 MB, which a processor's caches hold beside the block itself.
BLOCK_ENTRIES = 2**18
# Many vectors: an N × N product is mirrored and added once a block, which more coordinates are to pay for.
SMALLEST_WIDTH = 4096
# Entries between the rows of a block: a cache line, so that rows a power of two long do not share cache sets.
GAP = 8
FLOATS = ("float32", "float64")


def default_width(rows: int) -> int:
    """Number of coordinates in a block that suits the caches.

    Args:
        rows: vectors that a block holds a part of; those of all leading axes together.

    Returns:
        Coordinates, at least `SMALLEST_WIDTH`.
    """
    return max(SMALLEST_WIDTH, BLOCK_ENTRIES // max(rows, 1))


def checked_shape(block: Any, number: int) -> tuple[int, ...]:
    """Return the shape of a block without its last axis.

    Raises:
        UsageError: it is no array of floats with two axes or more, or is empty.
    """
    import numpy as np

    if not isinstance(block, np.ndarray) or block.ndim < 2 or block.dtype not in FLOATS or not block.size:  # noqa: PLR2004 - vectors and coordinates
        found = f"{block.dtype}, {block.shape}" if isinstance(block, np.ndarray) else type(block).__name__
        raise UsageError(
            "not a block of scores",
            expected=f"an array (..., N, b) of {' or '.join(FLOATS)}, not empty",
            found=found,
            where=f"block {number}",
        )
    shape: tuple[int, ...] = block.shape[:-1]
    return shape


class Slot:
    """Memory for a block in double precision, and for its product with itself.

    Args:
        shape: shape of the vectors, (..., N).
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        import numpy as np

        self.width = default_width(math.prod(shape))
        self.product: NDArray[np.float64] = np.empty((*shape, shape[-1]))
        # A view: what stands on the diagonal are the vectors' sums of squares.
        self._squares = np.einsum("...ii->...i", self.product)
        self._whole = np.empty((*shape, self.width + GAP))
        self._filled = self._whole
        self._start = 0

    def fill(self, block: NDArray[Any], start: int) -> None:
        """Convert a block, at most `width` wide, whose first coordinate is `start`."""
        import numpy as np

        self._start = start
        self._filled = self._whole[..., : block.shape[-1]]
        np.copyto(self._filled, block)

    def multiply(self) -> None:
        """Multiply the block with itself.

        Raises:
            DamagedError: an entry is not finite, or its square is not.
        """
        import numpy as np

        block = self._filled
        with np.errstate(all="ignore"):
            # Of one coordinate every entry is one product, which no BLAS makes faster.
            multiply = np.multiply if block.shape[-1] == 1 else np.matmul
            multiply(block, block.swapaxes(-1, -2), out=self.product)
        # A sum of squares is finite where all entries are: one number a vector says it.
        if not np.isfinite(self._squares).all():
            self._refuse()

    def _refuse(self) -> None:
        import numpy as np

        entries = self._filled
        bad = np.argwhere(~np.isfinite(entries))
        # Where all are finite, one is too large; the largest is named.
        large = not len(bad)
        where = bad[0] if len(bad) else np.unravel_index(np.abs(entries).argmax(), entries.shape)
        *row, column = (int(index) for index in where)
        raise DamagedError(
            "a score is too large to be squared" if large else "a score is not finite",
            expected="finite scores, with finite sums of squares",
            found=float(entries[(*row, column)]),
            where=f"row {', '.join(map(str, row))}, coordinate {self._start + column}",
        )
