"""Products of score vectors, over blocks of coordinates; blocks of one give the same bits everywhere."""

import math
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, UsageError

Array: TypeAlias = NDArray[np.float64]
Block: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

# Entries of a block in double precision: 2 MB, which a processor's caches hold beside the block itself.
BLOCK_ENTRIES = 2**18
# Many vectors: an N × N product is mirrored and added once a block, which more coordinates are to pay for.
SMALLEST_WIDTH = 4096
# Entries between the rows of a block: a cache line, so that rows a power of two long do not share cache sets.
GAP = 8
FLOATS = ("float32", "float64")
MISMATCHED = "mismatched coordinate sets"


def default_width(rows: int) -> int:
    """Number of coordinates in a block that suits the caches."""
    return max(SMALLEST_WIDTH, BLOCK_ENTRIES // max(rows, 1))


def blocks(scores: Block, width: int | None = None) -> Iterator[Block]:
    """Cut score vectors into blocks of coordinates. Nothing is copied."""
    if scores.ndim < 2:  # noqa: PLR2004 - vectors and coordinates
        raise UsageError("score vectors have two axes or more", expected="(..., N, P)", found=scores.shape)
    wide = default_width(math.prod(scores.shape[:-1])) if width is None else width
    if wide < 1:
        raise UsageError("a block has at least one coordinate", expected="a width >= 1", found=wide)
    for start in range(0, scores.shape[-1], wide):
        yield scores[..., start : start + wide]


def gram(blocks: Iterable[Block], *, count: int | None = None) -> Array:
    """Inner products of score vectors with one another: the sum over blocks of block × blockᵀ."""
    total = _accumulate(blocks, count)
    # Whatever product the BLAS chose, both triangles are the lower one.
    lower = np.tril(total)
    lower += np.tril(total, -1).swapaxes(-1, -2)
    return lower


def _accumulate(blocks: Iterable[Block], count: int | None) -> Array:
    """Add the products of each block, in order, in memory that all of them share."""
    shape: tuple[int, ...] | None = None
    total, done = np.zeros(0), 0
    for number, block in enumerate(blocks):
        if not isinstance(block, np.ndarray) or block.ndim < 2 or block.dtype not in FLOATS or not block.size:  # noqa: PLR2004
            given = f"{block.dtype}, {block.shape}" if isinstance(block, np.ndarray) else type(block).__name__
            expected = f"an array (..., N, b) of {' or '.join(FLOATS)}, not empty"
            raise UsageError("not a block of scores", expected=expected, found=given, where=f"block {number}")
        size = block.shape[:-1]
        if shape is None:
            shape, width = size, default_width(math.prod(size))
            product = np.empty((*shape, shape[-1]))
            total = np.zeros_like(product)
            converted = np.empty((*shape, width + GAP))
        elif size != shape:
            raise DamagedError(
                MISMATCHED,
                expected=f"the vectors of the first block, {shape}",
                found=size,
                where=f"block {number}",
            )
        for begin in range(0, block.shape[-1], width):
            part = block[..., begin : begin + width]
            doubles = converted[..., : part.shape[-1]]
            np.copyto(doubles, part)
            _multiply(doubles, product, done + begin)
            total += product
        done += block.shape[-1]
    if shape is None:
        raise UsageError("no block of scores", expected="at least one block", found="none")
    if count not in {None, done}:
        raise DamagedError(MISMATCHED, expected=f"{count} coordinates", found=f"{done} in all blocks")
    return total


def _multiply(block: Array, product: Array, start: int) -> None:
    """Multiply a block, whose first coordinate is `start`, with itself."""
    with np.errstate(all="ignore"):
        # Of one coordinate every entry is one product, which no BLAS makes faster.
        multiply = np.multiply if block.shape[-1] == 1 else np.matmul
        multiply(block, block.swapaxes(-1, -2), out=product)
    # A sum of squares is finite where all entries are: one number a vector says it.
    if np.isfinite(np.einsum("...ii->...i", product)).all():
        return
    bad = np.argwhere(~np.isfinite(block))
    # Where all are finite, one is too large; the largest is named.
    where = bad[0] if len(bad) else np.unravel_index(np.abs(block).argmax(), block.shape)
    *row, column = (int(index) for index in where)
    raise DamagedError(
        "a score is not finite" if len(bad) else "a score is too large to be squared",
        expected="finite scores, with finite sums of squares",
        found=float(block[(*row, column)]),
        where=f"row {', '.join(map(str, row))}, coordinate {start + column}",
    )
