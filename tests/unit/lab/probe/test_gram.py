"""Gram matrices: products of score vectors, by block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.probe.designs import draw
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.probe.evidence import blocks, gram


def plain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the products by an einsum over doubles, which calls no BLAS."""
    return np.einsum("...ip,...jp->...ij", a.astype(float), b.astype(float), optimize=False)


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 41), st.integers(0, 99))
def test_any_blocking_gives_the_same_matrix(rows: int, coordinates: int, width: int, seed: int) -> None:
    scores = draw(rows, coordinates, seed=seed)
    found = gram(blocks(scores, width), count=coordinates)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, plain(scores, scores), rtol=1e-12, atol=1e-12)


def test_both_triangles_are_the_lower_one_even_where_a_product_is_not_symmetric(monkeypatch) -> None:
    multiply = np.matmul

    def skewed(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        multiply(a, b, out=out)
        out += np.triu(np.ones(out.shape), 1)

    monkeypatch.setattr(np, "matmul", skewed)
    found = gram([draw(5, 20)])
    np.testing.assert_allclose(found, plain(draw(5, 20), draw(5, 20)), rtol=1e-12, atol=1e-12)
    assert np.array_equal(found, found.T)


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
