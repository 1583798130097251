"""One block of scores in double precision, and its product: memory that is used again for the next block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Memory for a block in double precision, of one set of vectors or of two, and for its product.

    Args:
        shapes: shape of the vectors of each set, (..., N).
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        import numpy as np

        self.width = default_width(sum(math.prod(shape) for shape in shapes))
        self.product: NDArray[np.float64] = np.empty((*shapes[0], shapes[-1][-1]))
        # A view: what a set's own products have on the diagonal are its vectors' sums of squares.
        self._diagonal = np.einsum("...ii->...i", self.product) if len(shapes) == 1 else None
        self._whole = [np.empty((*shape, self.width + GAP)) for shape in shapes]
        self._filled = self._whole
        self._start = 0

    def fill(self, pieces: Sequence[NDArray[Any]], start: int) -> None:
        """Convert a block, one piece a set, at most `width` wide, whose first coordinate is `start`."""
        import numpy as np

        self._start = start
        self._filled = [
            whole[..., : piece.shape[-1]] for whole, piece in zip(self._whole, pieces, strict=True)
        ]
        for target, piece in zip(self._filled, pieces, strict=True):
            np.copyto(target, piece)

    def multiply(self) -> None:
        """Multiply the set with itself, or the first set with the second.

        Raises:
            DamagedError: an entry is not finite, or its square is not.
        """
        import numpy as np

        a, b = self._filled[0], self._filled[-1]
        with np.errstate(all="ignore"):
            # Of one coordinate every entry is one product, which no BLAS makes faster.
            multiply = np.multiply if a.shape[-1] == 1 else np.matmul
            multiply(a, b.swapaxes(-1, -2), out=self.product)
            # A sum of squares is finite where all entries are: one number a vector says it.
            squares = (
                [np.vecdot(side, side) for side in self._filled]
                if self._diagonal is None
                else [self._diagonal]
            )
        for number, sums in enumerate(squares):
            if not np.isfinite(sums).all():
                self._refuse(number)

    def _refuse(self, number: int) -> None:
        import numpy as np

        entries = self._filled[number]
        bad = np.argwhere(~np.isfinite(entries))
        # Where all are finite, one is too large; the largest is named.
        large = not len(bad)
        where = bad[0] if len(bad) else np.unravel_index(np.abs(entries).argmax(), entries.shape)
        *row, column = (int(index) for index in where)
        which = "" if len(self._filled) == 1 else f"{('first', 'second')[number]} set, "
        raise DamagedError(
            "a score is too large to be squared" if large else "a score is not finite",
            expected="finite scores, with finite sums of squares",
            found=float(entries[(*row, column)]),
            where=f"{which}row {', '.join(map(str, row))}, coordinate {self._start + column}",
        )
