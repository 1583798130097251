"""Samples that language models share: noise for every token of every position, from counters.

A model samples the token for which logit / temperature + Gumbel noise is largest. That token has the model's
own distribution; and two models that are near each other mostly take the same one where they meet the same
noise.

The noise -log(-log u) is largest where E / p is least, with E = -log u and p the token's probability: the
same choice with one logarithm less. u is (n + 1/2) / 2⁵², n the first 52 bits of the token's word. Four
tokens in a row have the four words of a block of Philox4x64-10, whose key is (seed, 0) and whose counter is
(1 + token // 4, position, turn, 0). What stood before, who else samples and which model it is do not enter.
The logarithm is made of products, sums and quotients of doubles alone: a library's may differ in its last
digit from one machine to the next.

Source:
    Corvelo Benz et al. 2025, "Evaluation of Large Language Models via Coupled Token Generation", arXiv
    2502.01754. Gumbel-max: Maddison, Tarlow and Minka 2014, "A* sampling". Philox: Salmon et al. 2011,
    "Parallel random numbers: as easy as 1, 2, 3". Logarithm: fdlibm, e_log.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class SharedNoise:
    """The noise of a conversation whose samples are shared."""

    seed: int  # of the shared sample, as `toolkit.seeds.shared_seed` gives it


class Place(NamedTuple):
    """Where a token is sampled."""

    noise: SharedNoise  # of the conversation
    turn: int  # turns of the conversation before
    position: int  # tokens of this turn before


AT_ONCE = 8192
"""Tokens whose noise is made at once, a multiple of four: it stays in a processor's cache."""
_DROPPED_BITS = 12
_UNIT = 2.0**-52
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of √½: numbers are brought to between it and √2."""
_MANTISSA_BITS = 52
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts; the first has so few digits that its product with an exponent is exact."""
_SERIES = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
"""(log(1 + f) - 2s) / s as a polynomial in s², s = f / (2 + f), from its highest power down."""


def sampled(weights: NDArray[np.float64], places: Sequence[Place]) -> list[int]:
    """Return the token that is sampled at each place."""
    return [_first_to_ring(row, place) for row, place in zip(weights, places, strict=True)]


def _first_to_ring(weights: NDArray[np.float64], place: Place) -> int:
    """Return the token with the largest p / E: of clocks that ring at rate p, the first to ring."""
    best, token, start = -1.0, 0, 0
    for part in exponentials(place, len(weights)):
        rates = weights[start : start + len(part)] / part
        at = int(rates.argmax())
        if rates[at] > best:
            best, token = rates[at], start + at
        start += len(part)
    return token


def exponentials(place: Place, tokens: int) -> Iterator[NDArray[np.float64]]:
    """Yield E = -log u of every token at a place, in order, in parts that may be overwritten by the next."""
    import numpy as np

    noise, turn, position = place
    counter = np.array([0, position, turn, 0], dtype=np.uint64)
    generator = np.random.Philox(counter=counter, key=np.array([noise.seed, 0], dtype=np.uint64))
    numbers, scratch = np.empty(AT_ONCE), np.empty((3, AT_ONCE))
    for start in range(0, tokens, AT_ONCE):
        size = min(AT_ONCE, tokens - start)
        part = numbers[:size]
        # As signed numbers: they convert faster, and none is so large.
        part[:] = (generator.random_raw(size) >> _DROPPED_BITS).view(np.int64)
        part += 0.5
        part *= _UNIT
        _minus_log(part, scratch[:, :size])
        yield part


def _minus_log(numbers: NDArray[np.float64], scratch: NDArray[np.float64]) -> None:
    """Turn numbers x in (0, 1) into -log x, within a unit in the last place, the same on every machine.

    x is 2^k (1 + f). With s = f / (2 + f), log(1 + f) is f - f²/2 + s (f²/2 + series in s²).
    """
    import numpy as np

    s, square, series = scratch
    bits = numbers.view(np.int64)
    whole = (bits - _ROOT_HALF) >> _MANTISSA_BITS
    bits -= whole << _MANTISSA_BITS
    k, f = whole.astype(np.float64), numbers
    f -= 1.0
    np.add(f, 2.0, out=s)
    np.divide(f, s, out=s)
    np.multiply(s, s, out=square)
    series[:] = 0.0
    for coefficient in _SERIES:
        series += coefficient
        series *= square
    half = np.multiply(f, 0.5, out=square)
    half *= f
    series += half
    series *= s
    series += np.multiply(k, _LN2_LOW, out=s)
    half -= series
    half -= f
    k *= _LN2_HIGH
    np.subtract(half, k, out=numbers)
