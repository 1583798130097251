"""Noise that models share: every word by its counter, every model its own law, near models alike."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from toolkit.lab.policies.language_model.lockstep import AT_ONCE, Place, SharedNoise, exponentials, sampled

MASK = 2**64 - 1


def block(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """Return four words of Philox4x64-10, as its authors describe it."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
        a, b, c, d = (high >> 64) ^ b ^ k, high & MASK, (low >> 64) ^ d ^ m, low & MASK
        k, m = (k + 0x9E3779B97F4A7C15) & MASK, (m + 0xBB67AE8584CAA73B) & MASK
    return [a, b, c, d]


def place(seed: int, turn: int = 0, position: int = 0) -> Place:
    return Place(SharedNoise(seed), turn, position)


def noise(at: Place, tokens: int) -> np.ndarray:
    return np.concatenate([part.copy() for part in exponentials(at, tokens)])


def test_the_oracle_has_its_authors_answer() -> None:
    """Random123, kat_vectors: philox4x64 10, counter and key of zeros."""
    assert block((0, 0, 0, 0), (0, 0)) == [
        0x16554D9ECA36314C,
        0xDB20FE9D672D0FDC,
        0xD7E772CEE186176B,
        0x7E68B68AEC7BA23B,
    ]


@pytest.mark.parametrize("at", [place(0), place(2**64 - 1, 23, 6143), place(7, 1, 0), place(7, 0, 1)])
def test_the_noise_of_a_token_is_minus_the_logarithm_of_the_number_of_its_counter(at: Place) -> None:
    drawn = noise(at, 3 * AT_ONCE + 1)
    for token in (0, 1, 2, 3, 4, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE):
        counter = (1 + token // 4, at.position, at.turn, 0)
        number = ((block(counter, (at.noise.seed, 0))[token % 4] >> 12) + 0.5) / 2**52
        assert drawn[token] == pytest.approx(-math.log(number), rel=4e-16, abs=0)


def test_the_noise_is_the_same_to_the_last_bit_wherever_it_is_made() -> None:
    found = noise(place(2**63 + 5, 2, 3), AT_ONCE + 2)
    assert [float(found[at]).hex() for at in (0, 1, 2, AT_ONCE + 1)] == [
        "0x1.720d4d0b89616p+1",
        "0x1.0028ffe25f0cep-2",
        "0x1.14c879e365f52p+1",
        "0x1.c96ee2b7bc06bp+0",
    ]
    assert float(noise(place(1), 10**5).min()).hex() == "0x1.50cd99df435b9p-16"


def test_no_two_tokens_positions_turns_or_conversations_share_a_number() -> None:
    places = [place(*at) for at in product((0, 1, 2**63), range(8), range(12))]
    drawn = np.concatenate([noise(at, 50) for at in places])
    assert len(np.unique(drawn)) == drawn.size
    assert stats.kstest(drawn, "expon").pvalue > 1e-4


CHANCES = np.array([0.5, 0.0, 0.26, 0.16, 0.05, 0.02, 0.01])


def test_what_is_sampled_is_the_largest_of_logit_and_gumbel_noise() -> None:
    for at in (place(*key) for key in product(range(20), range(3), range(3))):
        gumbel = [-math.log(value) for value in noise(at, len(CHANCES))]
        scores = [math.log(p) + g if p else -math.inf for p, g in zip(CHANCES, gumbel, strict=True)]
        assert sampled(CHANCES[None], [at]) == sampled(7.0 * CHANCES[None], [at]) == [int(np.argmax(scores))]


@pytest.mark.parametrize("varied", [0, 1, 2], ids=["conversations", "turns", "positions"])
def test_every_token_is_sampled_as_often_as_it_is_likely(varied: int) -> None:
    keys = [[5, 1, 1] for _ in range(6000)]
    for number, key in enumerate(keys):
        key[varied] = number
    tokens = sampled(np.tile(CHANCES, (len(keys), 1)), [place(*key) for key in keys])
    counts = np.bincount(tokens, minlength=len(CHANCES))
    assert counts[1] == 0
    assert stats.chisquare(np.delete(counts, 1), np.delete(CHANCES, 1) * len(keys)).pvalue > 1e-4


def test_a_token_far_down_a_large_vocabulary_is_sampled_as_often_as_it_is_likely() -> None:
    chances = np.full(AT_ONCE + 3, 0.2 / AT_ONCE)
    chances[[2, AT_ONCE + 1]] = 0.5, 0.3
    tokens = np.array(sampled(np.tile(chances, (500, 1)), [place(9, 0, at) for at in range(500)]))
    counts = [(tokens == 2).sum(), (tokens == AT_ONCE + 1).sum()]
    expected = 500 * chances[[2, AT_ONCE + 1]] / chances.sum()
    assert stats.chisquare([*counts, 500 - sum(counts)], [*expected, 500 - expected.sum()]).pvalue > 1e-4
