"""Theory in closed form: spurious variance, contrasts, the exact condition, the Bernoulli bandit, sizes."""

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

    1 - (1 - q)^G - q^G, q in [0, 1], G >= 1; exact if q is a fraction. Under the paired design the
    probability is zero: a shared flip reaches everybody or nobody.

    Source: paper sec:spurious, P_spurious(q, G).
    """
    check_rate(flip_rate)
    if group_size < 1:
        raise ValueError(f"a group has at least one rollout, found {group_size}")
    return 1 - (1 - flip_rate) ** group_size - flip_rate**group_size


def check_rate(flip_rate: float | Fraction) -> None:
    """Check that a number is a probability."""
    if not 0 <= flip_rate <= 1:
        raise ValueError(f"a rate lies in [0, 1], found {flip_rate}")


@dataclass(frozen=True)
class ContrastVariance:
    """Variance of the difference of two siblings' rewards, in reward², under each design."""

    independent: float
    paired: float


def contrast_variance(between: float, within: float) -> ContrastVariance:
    """Variance of a reward contrast under both designs, from the parts of the reward's variance, in reward².

    Source: paper prop:contrast: 2(σ²_env + σ²_pol) independent, 2σ²_pol paired.
    """
    if not (math.isfinite(between) and math.isfinite(within)) or min(between, within) < 0:
        raise ValueError(f"variances are finite and not negative, found {between}, {within}")
    return ContrastVariance(2 * (between + within), 2 * within)


def reward_contrast(groups: ArrayLike) -> float:
    """Estimate the variance of the difference of two siblings' rewards, in the design of these groups (N, G).

    Twice the sample variance within a group, averaged over groups, in reward²; unbiased.

    Source: paper prop:contrast; the mean of (R_i - R_j)² over pairs of siblings is twice the sample variance.
    """
    r = np.asarray(groups, dtype=float)
    if r.ndim != 2 or not len(r) or r.shape[1] < SMALLEST_GROUP:  # noqa: PLR2004 - a table
        raise ValueError(f"expected groups × rollouts, two rollouts at least, found shape {r.shape}")
    if not np.isfinite(r).all():
        raise ValueError("a reward is not finite")
    return float(2 * r.var(axis=1, ddof=1).mean())


@dataclass(frozen=True)
class Condition:
    """Both sides of the condition for one group, or averaged over groups."""

    left: Number  # ‖g_c‖², the size of the clean group gradient, in score²
    right: Number  # score spread of the true successes over G², in score²

    @property
    def pairing_lowers_trace(self) -> bool:
        """Whether pairing strictly lowers the trace, for any flip rate strictly between 0 and 1."""
        return self.left < self.right

    @property
    def ratio(self) -> Number | None:
        """L/R; None where the right side is zero: flips then change neither design's gradient."""
        return self.left / self.right if self.right else None

    def trace_difference(self, flip_rate: Number) -> Number:
        """Trace under the paired design minus trace under the independent one: q(1 - q)(L - R)."""
        check_rate(flip_rate)
        return flip_rate * (1 - flip_rate) * (self.left - self.right)


def exact_condition(outcomes: ArrayLike, gram: ArrayLike) -> Condition:
    """Both sides of the exact condition for one clean group, in score².

    Outcomes (G,) are true, in {0, 1}; `gram` (G, G) holds the inner products of the scores, symmetric.

    Source: paper eq:condition and app:proofs: left = r'Kr / G² with K the Gram matrix of the centred scores,
    right = Σ_i r_i K_ii / G².
    """
    r, k = np.asarray(outcomes, dtype=float), np.asarray(gram, dtype=float)
    if r.ndim != 1 or k.ndim != 2:  # noqa: PLR2004 - a matrix
        raise ValueError(f"expected outcomes (G,) and a Gram matrix (G, G), found {r.shape} and {k.shape}")
    left, right = exact_conditions(r[None], k[None])
    return Condition(float(left[0]), float(right[0]))


def exact_conditions(outcomes: ArrayLike, gram: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Left and right sides, shape (T,) each, of `exact_condition` for outcomes (T, G) and `gram` (T, G, G).

    Source: as `exact_condition`.
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

    Exactly s² k(G - k)/G³ and s² k(G - 1)/G³ for k of G successes and scores of squared length s².

    Source: paper sec:condition, "Orthogonal scores of equal norm".
    """
    _check_successes(successes, group_size)
    unit = squared_norm * Fraction(successes, group_size**3)
    return Condition(unit * (group_size - successes), unit * (group_size - 1))


def silent_condition(successes: int, group_size: int, squared_norm: Number = 1) -> Condition:
    """Both sides where successes hardly move the policy: their score is zero, whatever the failures' are.

    Here the failures' scores are orthogonal and of squared length s²; the ratio of the sides is k for any
    others that do not add up to zero. The sides are k² ‖S̄‖²/G² and k ‖S̄‖²/G² with ‖S̄‖² = s² (G - k)/G²,
    exactly: L/R = k, so that pairing raises the trace from two successes on.

    Source: paper eq:condition with S_i = 0 for every success: g_c = -(k/G) S̄, and each success is ‖S̄‖ from
    the mean.
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
    """The bandit, enumerated."""

    contrast_variance: ByDesign  # variance of the reward difference of two siblings, reward²
    # Variance and absolute mean of the mean-centred group gradient.
    mean_centred_trace: ByDesign
    mean_centred_norm: ByDesign
    # The same with standardized advantages (double precision).
    standardized_trace: ByDesign
    standardized_norm: ByDesign
    clean_norm_squared: Number  # E‖g_c‖², the left side of the exact condition
    score_spread: Number  # its right side


def success_probability(logit: float) -> Number:
    """Success probability of the bandit's policy, σ(logit); exactly one half at zero.

    Source: paper sec:condition, a ~ Bernoulli(σ(θ)).
    """
    if not math.isfinite(logit):
        raise ValueError(f"a logit is finite, found {logit}")
    if logit == 0:
        return Fraction(1, 2)
    return 1 / (1 + math.exp(-logit)) if logit > 0 else math.exp(logit) / (1 + math.exp(logit))


def bandit(success: Number, group_size: int, flip_rate: Number) -> Bandit:
    """Enumerate the bandit for one group of 2 <= G <= 1000 rollouts.

    The action is a success with probability p and scores a - p; the true reward is a; a success is observed
    as a failure with probability q, for each rollout on its own or for the whole group. Everything depends on
    the number of successes k and of those kept, m, only: G² steps enumerate a group of any size. Rational p
    and q give rational results, the standardized ones excepted, which hold a square root.

    Source: paper app:bandit; sample standard deviation and ε = 1e-4, without importance weights.
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


def effective_group_size(group_size: int, luck_share: ExactOrNot) -> ExactOrNot:
    """Independent rollouts whose mean reward varies as that of a paired group, G >= 1: G/(1 + (G - 1)λ).

    From G, where luck λ in [0, 1] explains nothing, to 1, where it explains all; exact if λ is a fraction.

    Source: paper sec:contrast: exchangeable rewards with correlation λ. It speaks of the mean reward alone,
    not of contrasts or gradients.
    """
    check_rate(luck_share)
    if group_size < 1:
        raise ValueError(f"a group has at least one rollout, found {group_size}")
    return group_size / (1 + (group_size - 1) * luck_share)


def contrast_replicates(luck_share: ExactOrNot) -> ExactOrNot | None:
    """Independent contrasts that average to the variance of a single paired one: 1/(1 - λ), λ in [0, 1].

    Exact if λ is a fraction; None at a share of one, where no number is enough.

    Source: paper sec:contrast, after prop:contrast: the variance ratio of a contrast is 1 - λ.
    """
    check_rate(luck_share)
    return None if luck_share == 1 else 1 / (1 - luck_share)


def equal_variance_batch(groups: int, trace_ratio: ExactOrNot) -> ExactOrNot:
    """Independent groups whose mean gradient varies as that of B >= 1 paired groups: B/r, not rounded.

    r > 0 is the covariance trace of a paired group's gradient over an independent one's; exact if a fraction.

    Source: the trace of a mean of n independent groups is tr Σ/n: r tr Σ/B = tr Σ/n. Of the trace alone:
    another optimizer than plain ascent is not indifferent to where the variance lies (see `exact_drift`).
    """
    if groups < 1:
        raise ValueError(f"a step has at least one group, found {groups}")
    if not 0 < trace_ratio < math.inf:
        raise ValueError(f"a ratio of traces is positive and finite, found {trace_ratio}")
    return groups / trace_ratio
