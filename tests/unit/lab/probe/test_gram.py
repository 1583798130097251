"""Gram matrices: products of score vectors, by block."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.probe.designs import draw
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.probe.evidence import SMALLEST_WIDTH, blocks, default_width, gram


def plain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the products by an einsum over doubles, which calls no BLAS."""
    return np.einsum("...ip,...jp->...ij", a.astype(float), b.astype(float), optimize=False)


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 41), st.integers(0, 99))
def test_any_blocking_gives_the_same_matrix(rows: int, coordinates: int, width: int, seed: int) -> None:
    scores = draw(rows, coordinates, seed=seed)
    found = gram(blocks(scores, width), count=coordinates)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, plain(scores, scores), rtol=1e-12, atol=1e-12)


@given(st.integers(1, 4), st.integers(1, 30), st.integers(1, 31), st.data())
def test_products_of_small_whole_numbers_are_exact(rows, coordinates, width, data) -> None:
    row = st.lists(st.integers(-100, 100), min_size=coordinates, max_size=coordinates)
    table = data.draw(st.lists(row, min_size=rows, max_size=rows))
    scores = np.array(table, dtype=np.float32) / 8
    exact = [
        [sum((Fraction(x, 8) * Fraction(y, 8) for x, y in zip(a, b, strict=True)), Fraction()) for b in table]
        for a in table
    ]
    assert [[Fraction(x) for x in line] for line in gram(blocks(scores, width)).tolist()] == exact


def test_both_triangles_are_the_lower_one_even_where_a_product_is_not_symmetric(monkeypatch) -> None:
    multiply = np.matmul

    def skewed(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        multiply(a, b, out=out)
        out += np.triu(np.ones(out.shape), 1)

    monkeypatch.setattr(np, "matmul", skewed)
    found = gram([draw(5, 20)])
    np.testing.assert_allclose(found, plain(draw(5, 20), draw(5, 20)), rtol=1e-12, atol=1e-12)
    assert np.array_equal(found, found.T)


def test_blocks_of_one_coordinate_are_added_in_their_order() -> None:
    scores, total = draw(4, 300).astype(float), np.zeros((4, 4))
    for column in scores.T:
        total += np.multiply.outer(column, column)
    assert np.array_equal(gram(blocks(scores.astype(np.float32), 1)), total)


def test_a_block_may_be_overwritten_when_the_next_is_asked_for() -> None:
    scores, memory = draw(3, 500), np.empty((3, 10), np.float32)

    def overwritten() -> Iterator[np.ndarray]:
        for block in blocks(scores, 10):
            memory[...] = block
            yield memory

    assert np.array_equal(gram(overwritten()), gram(blocks(scores, 10)))


def test_a_block_may_be_wider_than_the_caches() -> None:
    wide = default_width(200) + 5
    scores = draw(200, wide)
    assert default_width(200) == SMALLEST_WIDTH
    np.testing.assert_allclose(gram([scores]), plain(scores, scores), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e200])
def test_a_score_that_is_not_finite_or_too_large_to_be_squared_is_named(value: float) -> None:
    scores = draw(2, 3, 20).astype(float)
    scores[1, 2, 17] = value
    with pytest.raises(DamagedError, match="too large" if np.isfinite(value) else "not finite") as caught:
        gram(blocks(scores, 8))
    assert caught.value.where == "row 1, 2, coordinate 17"
    assert caught.value.found == str(value)


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


@pytest.mark.parametrize(
    ("shape", "width", "problem"),
    [
        ((2, 4), 0, "at least one coordinate"),
        ((2, 4), -1, "at least one coordinate"),
        ((4,), None, "two axes"),
    ],
)
def test_vectors_are_not_cut_into_what_is_no_block(shape, width, problem) -> None:
    with pytest.raises(UsageError, match=problem):
        list(blocks(draw(*shape), width))
