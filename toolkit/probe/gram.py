"""Products of score vectors, accumulated over blocks of coordinates: memory does not grow with their number.

Scores are single precision, products and sums double precision. Over blocks of one coordinate the result has
the same bits on every machine and with every BLAS: a product of two single-precision
numbers fits in a double without rounding, and the additions happen in the order of the coordinates. Over
wider blocks the last bits are those of the machine's matrix product.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from toolkit.errors import DamagedError, UsageError
from toolkit.probe.slot import Slot, checked_shape, default_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    Block: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

MISMATCHED = "mismatched coordinate sets"


def blocks(scores: Block, width: int | None = None) -> Iterator[Block]:
    """Cut score vectors into blocks of coordinates. Nothing is copied.

    Args:
        scores: shape (..., N, P): vectors along the last axis; an array, or one mapped from a file.
        width: coordinates in a block, >= 1; `default_width` where it is not given.

    Yields:
        Views of shape (..., N, width), in the order of the coordinates; the last may be narrower.

    Raises:
        UsageError: a width below one, or fewer than two axes.
    """
    if scores.ndim < 2:  # noqa: PLR2004 - vectors and coordinates
        raise UsageError("score vectors have two axes or more", expected="(..., N, P)", found=scores.shape)
    wide = default_width(math.prod(scores.shape[:-1])) if width is None else width
    if wide < 1:
        raise UsageError("a block has at least one coordinate", expected="a width >= 1", found=wide)
    for start in range(0, scores.shape[-1], wide):
        yield scores[..., start : start + wide]


def gram(blocks: Iterable[Block], *, count: int | None = None) -> NDArray[np.float64]:
    """Inner products of score vectors with one another: the sum over blocks of block × blockᵀ.

    A block is converted before the next one is asked for, so that the caller may use its memory again. Blocks
    wider than `default_width` are cut. Over blocks of one coordinate the bits do not depend on the machine
    (see the module).

    Args:
        blocks: shape (..., N, b) each, single or double precision; b may differ between blocks, the other
            axes may not.
        count: coordinates that the blocks hold together, P; checked where it is given.

    Returns:
        Shape (..., N, N), score²; exactly symmetric.

    Raises:
        UsageError: no block, or a block that is no array of floats with two axes or more.
        DamagedError: an entry is not finite, or too large to be squared; blocks with other vectors than the
            first; blocks that do not hold `count` coordinates.
    """
    import numpy as np

    total = _accumulate(blocks, count)
    # Whatever product the BLAS chose, both triangles are the lower one.
    lower = np.tril(total)
    lower += np.tril(total, -1).swapaxes(-1, -2)
    return lower


def _accumulate(blocks: Iterable[Block], count: int | None) -> NDArray[np.float64]:
    """Add the products of each block, in order."""
    import numpy as np

    slot: Slot | None = None
    shape: tuple[int, ...] = ()
    total, done = np.zeros(0), 0
    for number, block in enumerate(blocks):
        found = checked_shape(block, number)
        if slot is None:
            shape, slot = found, Slot(found)
            total = np.zeros(slot.product.shape)
        elif found != shape:
            raise DamagedError(
                MISMATCHED,
                expected=f"the vectors of the first block, {shape}",
                found=found,
                where=f"block {number}",
            )
        for begin in range(0, block.shape[-1], slot.width):
            slot.fill(block[..., begin : begin + slot.width], done + begin)
            slot.multiply()
            total += slot.product
        done += block.shape[-1]
    if slot is None:
        raise UsageError("no block of scores", expected="at least one block", found="none")
    if count not in {None, done}:
        raise DamagedError(MISMATCHED, expected=f"{count} coordinates", found=f"{done} in all blocks")
    return total
