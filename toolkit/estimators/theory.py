"""Theory in closed form: spurious variance, reward contrasts, the exact condition, the Bernoulli bandit."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.advantages import EPSILON, SMALLEST_GROUP

Number: TypeAlias = float | Fraction
ExactOrNot = TypeVar("ExactOrNot", float, Fraction)


def spurious_rate(flip_rate: ExactOrNot, group_size: int) -> ExactOrNot:
    """Probability that independent flips give an all-correct group non-zero observed variance.

    Under the paired design the probability is zero: a shared flip reaches everybody or nobody.

    Args:
        flip_rate: probability q that a success is graded a failure, in [0, 1]; exact if a fraction.
        group_size: rollouts in the group, G >= 1.

    Returns:
        1 - (1 - q)^G - q^G, of the type of `flip_rate`; 0 for a group of one.

    Raises:
        ValueError: a rate outside [0, 1], or an empty group.

    Source:
        Paper sec:spurious, P_spurious(q, G).
    """
    check_rate(flip_rate)
    if group_size < 1:
        raise ValueError(f"a group has at least one rollout, found {group_size}")
    return 1 - (1 - flip_rate) ** group_size - flip_rate**group_size


def check_rate(flip_rate: float | Fraction) -> None:
    """Check that a number is a probability.

    Raises:
        ValueError: it is not in [0, 1].
    """
    if not 0 <= flip_rate <= 1:
        raise ValueError(f"a rate lies in [0, 1], found {flip_rate}")


@dataclass(frozen=True)
class ContrastVariance:
    """Variance of the difference of two siblings' rewards, in reward², under each design."""

    independent: float
    paired: float


def contrast_variance(between: float, within: float) -> ContrastVariance:
    """Variance of a reward contrast under both designs, from the parts of the reward's variance.

    Args:
        between: variance of the schedules' means, σ²_env, in reward², >= 0.
        within: mean variance within a schedule, σ²_pol, in reward², >= 0.

    Raises:
        ValueError: a variance is negative or not finite.

    Source:
        Paper prop:contrast: 2(σ²_env + σ²_pol) independent, 2σ²_pol paired.
    """
    if not (math.isfinite(between) and math.isfinite(within)) or min(between, within) < 0:
        raise ValueError(f"variances are finite and not negative, found {between}, {within}")
    return ContrastVariance(2 * (between + within), 2 * within)


def reward_contrast(groups: ArrayLike) -> float:
    """Estimate the variance of the difference of two siblings' rewards, in the design the groups came from.

    Args:
        groups: rewards, shape (N, G): group, rollout.

    Returns:
        Twice the sample variance within a group, averaged over groups, in reward²; unbiased.

    Raises:
        ValueError: no group, fewer than two rollouts, or a reward that is not finite.

    Source:
        Paper prop:contrast; the mean of (R_i - R_j)² over pairs of siblings is twice the sample variance.
    """
    r = np.asarray(groups, dtype=float)
    if r.ndim != 2 or not len(r) or r.shape[1] < SMALLEST_GROUP:  # noqa: PLR2004 - a table
        raise ValueError(f"expected groups × rollouts, two rollouts at least, found shape {r.shape}")
    if not np.isfinite(r).all():
        raise ValueError("a reward is not finite")
    return float(2 * r.var(axis=1, ddof=1).mean())


@dataclass(frozen=True)
class Condition:
    """Both sides of the condition for one group, or averaged over groups.

    Args:
        left: ‖g_c‖², the size of the clean group gradient, in score².
        right: score spread of the true successes over G², in score².
    """

    left: Number
    right: Number

    @property
    def pairing_lowers_trace(self) -> bool:
        """Whether pairing strictly lowers the trace, for any flip rate strictly between 0 and 1."""
        return self.left < self.right

    @property
    def ratio(self) -> Number | None:
        """L/R; None where the right side is zero: flips then change neither design's gradient."""
        return self.left / self.right if self.right else None

    def trace_difference(self, flip_rate: Number) -> Number:
        """Trace under the paired design minus trace under the independent one: q(1 - q)(L - R).

        Raises:
            ValueError: a rate outside [0, 1].
        """
        check_rate(flip_rate)
        return flip_rate * (1 - flip_rate) * (self.left - self.right)


def exact_condition(outcomes: ArrayLike, gram: ArrayLike) -> Condition:
    """Both sides of the exact condition for one clean group.

    Args:
        outcomes: true outcomes r in {0, 1}, shape (G,).
        gram: inner products of the scores, shape (G, G); symmetric.

    Returns:
        Sides in score².

    Raises:
        ValueError: other shapes, outcomes that are not 0 or 1, or values that are not finite.

    Source:
        Paper eq:condition and app:proofs: left = r'Kr / G² with K the Gram matrix of the centred scores,
        right = Σ_i r_i K_ii / G².
    """
    r, k = np.asarray(outcomes, dtype=float), np.asarray(gram, dtype=float)
    if r.ndim != 1 or k.ndim != 2:  # noqa: PLR2004 - a matrix
        raise ValueError(f"expected outcomes (G,) and a Gram matrix (G, G), found {r.shape} and {k.shape}")
    left, right = exact_conditions(r[None], k[None])
    return Condition(float(left[0]), float(right[0]))


def exact_conditions(outcomes: ArrayLike, gram: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides of the exact condition, clean group by clean group.

    Args:
        outcomes: true outcomes r in {0, 1}, shape (T, G).
        gram: inner products of the scores, shape (T, G, G); symmetric.

    Returns:
        Left and right sides, shape (T,) each, in score².

    Raises:
        ValueError: as `exact_condition`.

    Source:
        As `exact_condition`.
    """
    r, k = np.asarray(outcomes, dtype=float), np.asarray(gram, dtype=float)
    if r.ndim != 2 or not r.size or k.shape != (*r.shape, r.shape[1]):  # noqa: PLR2004 - a table
        raise ValueError(f"expected outcomes (G,) and a Gram matrix (G, G), found {r.shape} and {k.shape}")
    if not (np.isin(r, (0.0, 1.0)).all() and np.isfinite(k).all()):
        raise ValueError("outcomes are 0 or 1 and inner products are finite")
    rows, columns = k.mean(axis=2, keepdims=True), k.mean(axis=1, keepdims=True)
    centred = k - rows - columns + rows.mean(axis=1, keepdims=True)
    size = r.shape[1] ** 2
    left = (centred * r[:, :, None] * r[:, None, :]).sum(axis=(1, 2)) / size
    return left, (r * np.diagonal(centred, axis1=1, axis2=2)).sum(axis=1) / size


def orthogonal_condition(successes: int, group_size: int, squared_norm: Number = 1) -> Condition:
    """Both sides where all scores are orthogonal and of one length: pairing helps from two successes on.

    Args:
        successes: true successes k in the group, 0 <= k <= G.
        group_size: rollouts in the group, G >= 1.
        squared_norm: s², the squared length of every score.

    Returns:
        Exact sides, s² k(G - k)/G³ and s² k(G - 1)/G³.

    Raises:
        ValueError: more successes than rollouts, or an empty group.

    Source:
        Paper sec:condition, "Orthogonal scores of equal norm".
    """
    _check_successes(successes, group_size)
    unit = squared_norm * Fraction(successes, group_size**3)
    return Condition(unit * (group_size - successes), unit * (group_size - 1))


def silent_condition(successes: int, group_size: int, squared_norm: Number = 1) -> Condition:
    """Both sides where successes hardly move the policy: their score is zero, whatever the failures' are.

    Here the failures' scores are orthogonal and of one length; the ratio of the sides is k for any others
    that do not add up to zero.

    Args:
        successes: true successes k in the group, 0 <= k <= G.
        group_size: rollouts in the group, G >= 1.
        squared_norm: s², the squared length of a failure's score.

    Returns:
        Exact sides, k² ‖S̄‖²/G² and k ‖S̄‖²/G² with ‖S̄‖² = s² (G - k)/G²: L/R = k, so that pairing raises the
        trace from two successes on.

    Raises:
        ValueError: more successes than rollouts, or an empty group.

    Source:
        Paper eq:condition with S_i = 0 for every success: g_c = -(k/G) S̄, and each success is ‖S̄‖ from the
        mean.
    """
    _check_successes(successes, group_size)
    unit = squared_norm * Fraction(successes * (group_size - successes), group_size**4)
    return Condition(unit * successes, unit)


def _check_successes(successes: int, group_size: int) -> None:
    if group_size < 1 or not 0 <= successes <= group_size:
        raise ValueError(f"expected 0 <= k <= G, found k = {successes}, G = {group_size}")


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
        apart, shared = (_moments(p, size, pairing, denominator) for pairing in (alone, together))
        return ByDesign(apart[0], shared[0]), ByDesign(apart[1], shared[1])

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
