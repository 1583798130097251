"""The one-step Bernoulli bandit: reward contrasts improve under pairing while the gradient need not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from toolkit.estimators.advantages import EPSILON, SMALLEST_GROUP
from toolkit.estimators.spurious import check_rate

Number: TypeAlias = float | Fraction
Pairing: TypeAlias = Callable[[int], Iterator[tuple[int, Number]]]

# Beyond it a binomial coefficient no longer fits a double.
LARGEST_GROUP = 1000


@dataclass(frozen=True)
class ByDesign:
    """A quantity under both designs."""

    independent: Number
    paired: Number


@dataclass(frozen=True)
class Bandit:
    """The bandit, enumerated.

    Args:
        contrast_variance: variance of the reward difference of two siblings, reward².
        mean_centred_trace, mean_centred_norm: variance and absolute mean of the mean-centred group gradient.
        standardized_trace, standardized_norm: the same with standardized advantages (double precision).
        clean_norm_squared: E‖g_c‖², the left side of the exact condition.
        score_spread: its right side.
    """

    contrast_variance: ByDesign
    mean_centred_trace: ByDesign
    mean_centred_norm: ByDesign
    standardized_trace: ByDesign
    standardized_norm: ByDesign
    clean_norm_squared: Number
    score_spread: Number


def success_probability(logit: float) -> Number:
    """Success probability of the bandit's policy, σ(logit); exactly one half at zero.

    Raises:
        ValueError: the logit is not finite.

    Source:
        Paper sec:condition, a ~ Bernoulli(σ(θ)).
    """
    if not math.isfinite(logit):
        raise ValueError(f"a logit is finite, found {logit}")
    if logit == 0:
        return Fraction(1, 2)
    return 1 / (1 + math.exp(-logit)) if logit > 0 else math.exp(logit) / (1 + math.exp(logit))


def bandit(success: Number, group_size: int, flip_rate: Number) -> Bandit:
    """Enumerate the bandit for one group.

    The action is a success with probability p and scores a - p; the true reward is a; a success is observed
    as a failure with probability q, for each rollout on its own or for the whole group. Everything depends on
    the number of successes k and of those kept, m, only: G² steps enumerate a group of any size. Rational p
    and q give rational results, the standardized ones excepted, which hold a square root.

    Args:
        success: success probability p, in [0, 1].
        group_size: rollouts in the group, G >= 2.
        flip_rate: flip probability q, in [0, 1].

    Raises:
        ValueError: a probability outside [0, 1], a group without siblings, or one of more than 1,000.

    Source:
        Paper app:bandit; sample standard deviation and ε = 1e-4, without importance weights.
    """
    check_rate(success)
    check_rate(flip_rate)
    if not SMALLEST_GROUP <= group_size <= LARGEST_GROUP:
        raise ValueError(f"expected 2 to {LARGEST_GROUP} rollouts, found {group_size}")
    p, q, size = success, flip_rate, group_size

    def alone(k: int) -> Iterator[tuple[int, Number]]:
        yield from _binomial(k, 1 - q)

    def together(k: int) -> Iterator[tuple[int, Number]]:
        yield from ((k, 1 - q), (0, q)) if k else ((0, 1),)

    def both(denominator: Callable[[int], Number]) -> tuple[ByDesign, ByDesign]:
        one, other = (_moments(p, size, pairing, denominator) for pairing in (alone, together))
        return ByDesign(one[0], other[0]), ByDesign(one[1], other[1])

    centred_trace, centred_norm = both(lambda _: 1)
    scaled_trace, scaled_norm = both(lambda m: math.sqrt(m * (size - m) / (size * (size - 1))) + EPSILON)
    kept = p * (1 - q)
    return Bandit(
        contrast_variance=ByDesign(2 * kept * (1 - kept), 2 * kept * (1 - p)),
        mean_centred_trace=centred_trace,
        mean_centred_norm=centred_norm,
        standardized_trace=scaled_trace,
        standardized_norm=scaled_norm,
        clean_norm_squared=sum(w * _gradient(p, size, k, k) ** 2 for k, w in _binomial(size, p)),
        score_spread=sum(w * k * (1 - Fraction(k, size)) ** 2 for k, w in _binomial(size, p)) / size**2,
    )


def _binomial(trials: int, chance: Number) -> Iterator[tuple[int, Number]]:
    for k in range(trials + 1):
        yield k, math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)


def _gradient(p: Number, size: int, k: int, m: int) -> Number:
    """Return the mean-centred group gradient with k successes, m of them observed."""
    share = Fraction(m, size)
    return (m * (1 - share) * (1 - p) - (k - m) * share * (1 - p) + (size - k) * share * p) / size


def _moments(
    p: Number, size: int, pairing: Pairing, denominator: Callable[[int], Number]
) -> tuple[Number, Number]:
    """Return variance and absolute mean of the group gradient; every advantage over one denominator."""
    mean: Any = 0
    square: Any = 0
    for k, chance in _binomial(size, p):
        for m, kept in pairing(k):
            value = _gradient(p, size, k, m) / denominator(m)
            mean += chance * kept * value
            square += chance * kept * value * value
    return square - mean * mean, abs(mean)
