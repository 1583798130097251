"""Gram matrices: what is refused, and how it is named."""

import numpy as np
import pytest

from tests.unit.probe.scores import draw
from toolkit.errors import DamagedError, UsageError
from toolkit.probe.gram import blocks, gram


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_named(value: float) -> None:
    scores = draw(2, 3, 20)
    scores[1, 2, 17] = value
    with pytest.raises(DamagedError, match="not finite") as caught:
        gram(blocks(scores, 8))
    assert caught.value.where == "row 1, 2, coordinate 17"
    assert caught.value.found == str(value)


def test_a_score_too_large_to_be_squared_is_named() -> None:
    scores = draw(3, 20).astype(float)
    scores[2, 5] = -1e200
    with pytest.raises(DamagedError, match="too large") as caught:
        gram(blocks(scores, 8))
    assert caught.value.where == "row 2, coordinate 5"


@pytest.mark.parametrize(
    "given_blocks",
    [
        [],
        [np.zeros(5, np.float32)],
        [np.zeros((2, 5), np.int64)],
        [np.zeros((2, 5), np.float16)],
        [np.zeros((2, 5), complex)],
        [[[1.0, 2.0]]],
        [None],
        [np.zeros((2, 0), np.float32)],
        [np.zeros((0, 2), np.float32)],
    ],
    ids=["none", "one axis", "whole", "half", "complex", "list", "nothing", "no coordinate", "no vector"],
)
def test_what_is_no_block_is_refused(given_blocks: list) -> None:
    with pytest.raises(UsageError, match="block"):
        gram(given_blocks)


def test_blocks_of_other_vectors_than_the_first_are_refused() -> None:
    with pytest.raises(DamagedError, match="mismatched coordinate sets") as caught:
        gram([draw(3, 4), draw(3, 4), draw(2, 4)])
    assert caught.value.where == "block 2"


def test_coordinates_are_counted() -> None:
    assert gram([draw(3, 4), draw(3, 5)], count=9).shape == (3, 3)
    with pytest.raises(DamagedError, match="mismatched coordinate sets"):
        gram([draw(3, 4)], count=9)


@pytest.mark.parametrize("width", [0, -1])
def test_a_block_without_coordinates_is_refused(width: int) -> None:
    with pytest.raises(UsageError, match="at least one coordinate"):
        list(blocks(draw(2, 4), width))


def test_vectors_without_a_second_axis_are_refused() -> None:
    with pytest.raises(UsageError, match="two axes"):
        list(blocks(draw(4)))
