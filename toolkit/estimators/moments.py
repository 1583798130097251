"""Moments of a group's gradient: over every mask of the grader, exactly, and over groups drawn from a pool.

A clean group's rollouts are fixed. A mask keeps or flips each true success: each on its own under the
independent design, all of them at once under the paired one. Advantages are made anew for every mask.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators.advantages import EPSILON, SMALLEST_GROUP, mean_centred
from toolkit.estimators.advantages import standardized as standard
from toolkit.estimators.theory import check_rate

LARGEST_GROUP = 64
"""Beyond it the binomial weights of masks come near the rounding of a double."""
LARGEST_ENUMERATION = 16


@dataclass(frozen=True)
class GroupMoments:
    """First and second moment of a group's gradient g, over the masks of a group or the groups of a pool."""

    second: NDArray[np.float64]  # E‖g‖², shape (T,), in score² times squared weight
    # c with E[g] = Σ_i c_i S_i over the N rollouts of the group or pool, shape (T, N), in the unit of the
    # weights.
    coefficients: NDArray[np.float64]
    contrast: NDArray[np.float64]  # variance of a reward contrast within a group, shape (T,), in reward²


@dataclass(frozen=True)
class OutcomeMoments:
    """The moments under both designs."""

    paired: GroupMoments
    independent: GroupMoments


@dataclass(frozen=True)
class _Table:
    """What a mask does on average, by the number k of successes; each shape (G + 1,)."""

    kept: NDArray[np.float64]  # E[1/den²], of the diagonal of the successes' weighted inner products
    both: NDArray[np.float64]  # of their off-diagonal sum
    crossed: NDArray[np.float64]  # of the sum between the successes and all
    whole: NDArray[np.float64]  # of the sum over all
    success: NDArray[np.float64]  # mean advantage of a success
    failure: NDArray[np.float64]  # mean advantage of a failure
    contrast: NDArray[np.float64]  # mean of twice the sample variance of the observed rewards


def outcome_moments(
    outcomes: ArrayLike,
    gram: ArrayLike,
    flip_rate: float,
    *,
    weights: ArrayLike | None = None,
    standardized: bool = False,
) -> OutcomeMoments:
    """Moments of group gradients g = Σ_i A_i w_i S_i under grader flips, in closed form.

    Given how many of its k successes a mask keeps, every choice of them is equally likely: an expectation
    over 2^k masks becomes a sum over k + 1 numbers.

    Args:
        outcomes: true outcomes in {0, 1}, shape (T, G): clean group, rollout; 2 <= G <= 64.
        gram: inner products of the scores, shape (T, G, G), in score².
        flip_rate: probability q that a success is reported as a failure, in [0, 1].
        weights: w of each rollout, shape (T, G); 1/G where they are left out (paper eq:g).
        standardized: whether advantages are divided by the group's standard deviation plus ε.

    Source: paper sec:condition and app:probe, "Outcome noise". With s the successes and W = K∘ww', E‖g‖² =
    Σ_m P(m) [P1 tr W_ss + P2 (Σ W_ss - tr W_ss) - 2 (m/G) P1 Σ W_s. + (m/G)² Σ W] / den_m², P1 = m/k, P2 =
    m(m - 1)/(k(k - 1)).
    """
    r, k, w = _checked(outcomes, gram, weights)
    check_rate(flip_rate)
    successes = r.sum(axis=1).astype(int)
    weighted = k * w[:, :, None] * w[:, None, :]
    of_success = weighted * r[:, :, None]
    trace = np.diagonal(of_success, axis1=1, axis2=2).sum(axis=1)
    inner = (of_success * r[:, None, :]).sum(axis=(1, 2)) - trace
    crossed, whole = of_success.sum(axis=(1, 2)), weighted.sum(axis=(1, 2))

    def moments(table: _Table) -> GroupMoments:
        t = successes
        within = table.kept[t] * trace + table.both[t] * inner
        second = within - table.crossed[t] * crossed + table.whole[t] * whole
        advantages = np.where(r == 1, table.success[t][:, None], table.failure[t][:, None])
        return GroupMoments(second, advantages * w, table.contrast[t])

    size = r.shape[1]
    return OutcomeMoments(
        moments(_table(size, flip_rate, standardized, True)),  # noqa: FBT003 - cached by position
        moments(_table(size, flip_rate, standardized, False)),  # noqa: FBT003
    )


@dataclass(frozen=True)
class OutcomeForms:
    """The second moments of a group's gradient as forms in its scores, under both designs; each (T, G, G)."""

    paired: NDArray[np.float64]
    independent: NDArray[np.float64]


def outcome_forms(
    outcomes: ArrayLike, flip_rate: float, *, weights: ArrayLike | None = None, standardized: bool = False
) -> OutcomeForms:
    """Second moments of group gradients under grader flips, whatever their scores are: as `outcome_moments`.

    Returns F with E[g_k²] = Σ_ij F_ij S_ik S_jk for every coordinate k; E‖g‖² is the sum of F times the inner
    products.

    Source: as `outcome_moments`, before inner products are taken.
    """
    r = np.asarray(outcomes, dtype=float)
    r, _, w = _checked(r, np.zeros((*r.shape, r.shape[-1])), weights)
    check_rate(flip_rate)
    successes, size = r.sum(axis=1).astype(int), r.shape[1]
    success = r[:, :, None] * r[:, None, :]
    own = success * np.eye(size)
    either = (r[:, :, None] + r[:, None, :]) / 2

    def form(table: _Table) -> NDArray[np.float64]:
        kept, both, crossed, whole = (
            column[successes][:, None, None]
            for column in (table.kept, table.both, table.crossed, table.whole)
        )
        inner = kept * own + both * (success - own) - crossed * either + whole
        found: NDArray[np.float64] = inner * w[:, :, None] * w[:, None, :]
        return found

    paired, independent = (_table(size, flip_rate, standardized, together) for together in (True, False))
    return OutcomeForms(form(paired), form(independent))


def enumerated_outcome_moments(
    outcomes: ArrayLike,
    gram: ArrayLike,
    flip_rate: float,
    *,
    weights: ArrayLike | None = None,
    standardized: bool = False,
) -> OutcomeMoments:
    """The moments of `outcome_moments`, mask by mask: its check, for groups of at most 16.

    Source: paper app:probe: independent masks have probability (1 - q)^kept q^flipped, paired ones keep or
    flip all successes.
    """
    r, k, w = _checked(outcomes, gram, weights)
    check_rate(flip_rate)
    if (size := r.shape[1]) > LARGEST_ENUMERATION:
        raise ValueError(f"2^{size} masks are too many: at most {LARGEST_ENUMERATION} rollouts a group")
    listed = [_listed(tuple(outcome), flip_rate, standardized) for outcome in r]

    def moments(design: int) -> GroupMoments:
        outer, means, contrasts = (np.array([each[design][part] for each in listed]) for part in range(3))
        second = (outer * k * w[:, :, None] * w[:, None, :]).sum(axis=(1, 2))
        return GroupMoments(second, means * w, contrasts)

    return OutcomeMoments(moments(0), moments(1))


_Listed: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], float]


@lru_cache(maxsize=1024)
def _listed(outcome: tuple[float, ...], flip_rate: float, standardized: bool) -> tuple[_Listed, _Listed]:  # noqa: FBT001
    """List a group's masks; return E[AA'], E[A] and the mean contrast, paired and independent."""
    successes = np.flatnonzero(outcome)
    # A mask over failures does nothing: each set of kept successes is listed once.
    subsets = np.zeros((2 ** len(successes), len(outcome)))
    subsets[:, successes] = (np.arange(len(subsets))[:, None] >> np.arange(len(successes))) & 1
    kept = subsets.sum(axis=1)
    alone = (1 - flip_rate) ** kept * flip_rate ** (len(successes) - kept)
    together = np.where(kept == len(successes), 1 - flip_rate, 0.0) + np.where(kept == 0, flip_rate, 0.0)
    advantages = standard(subsets) if standardized else mean_centred(subsets)
    contrasts = 2 * subsets.var(axis=1, ddof=1)

    def expected(chances: NDArray[np.float64]) -> _Listed:
        return (advantages.T * chances) @ advantages, chances @ advantages, float(chances @ contrasts)

    return expected(together), expected(alone)


@lru_cache(maxsize=64)
def _table(size: int, flip_rate: float, standardized: bool, paired: bool) -> _Table:  # noqa: FBT001
    """Sum over the numbers of kept successes, once for a group size and rate."""
    columns = np.zeros((7, size + 1))
    for k in range(1, size + 1):
        for m, chance in _kept(k, flip_rate, paired=paired):
            if m in (0, size):  # a constant group has no gradient
                continue
            spread = math.sqrt(m * (size - m) / (size * (size - 1))) + EPSILON if standardized else 1.0
            single, double, share = m / k, m * (m - 1) / (k * (k - 1)) if k > 1 else 0.0, m / size
            columns[:4, k] += np.array([single, double, 2 * share * single, share * share]) * (
                chance / (spread * spread)
            )
            columns[4:6, k] += np.array([single - share, -share]) * (chance / spread)
            columns[6, k] += 2 * m * (size - m) / (size * (size - 1)) * chance
    return _Table(*columns)


def _kept(successes: int, flip_rate: float, *, paired: bool) -> list[tuple[int, float]]:
    """Return how many successes are kept, with what probability: exact, then rounded once.

    Powers of doubles differ between machines in the last bit; those of fractions do not.
    """
    q = Fraction(flip_rate)
    if paired:
        return [(successes, float(1 - q)), (0, float(q))]
    return [
        (m, float(math.comb(successes, m) * (1 - q) ** m * q ** (successes - m)))
        for m in range(successes + 1)
    ]


def _checked(
    outcomes: ArrayLike, gram: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r, k = np.asarray(outcomes, dtype=float), np.asarray(gram, dtype=float)
    if r.ndim != 2 or not len(r) or not SMALLEST_GROUP <= r.shape[1] <= LARGEST_GROUP:  # noqa: PLR2004
        raise ValueError(f"expected outcomes (T, G) with 2 <= G <= {LARGEST_GROUP}, found shape {r.shape}")
    w = np.full(r.shape, 1 / r.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    if k.shape != (*r.shape, r.shape[1]) or w.shape != r.shape:
        raise ValueError(f"expected a Gram matrix a group and a weight a rollout, found {k.shape}, {w.shape}")
    if not np.isin(r, (0.0, 1.0)).all():
        raise ValueError("outcomes are 0 or 1")
    if not (np.isfinite(k).all() and np.isfinite(w).all()):
        raise ValueError("an inner product or a weight is not finite")
    return r, k, w


def regrouped_moments(
    rewards: ArrayLike,
    gram: ArrayLike,
    groups: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    standardized: bool = False,
) -> GroupMoments:
    """Moments of the group gradients g = Σ_i A_i w_i S_i of groups drawn from a task's pool.

    Args:
        rewards: reward of each rollout, shape (T, N): task, rollout of its pool.
        gram: inner products of the scores, shape (T, N, N), in score².
        groups: positions in the pool, shape (T, J, G), G >= 2; no rollout twice in a group.
        weights: w of each rollout, shape (T, N); 1/G where they are left out (paper eq:g).
        standardized: whether advantages are divided by the group's standard deviation plus ε.

    Source: paper app:probe, "Transition noise": ‖g_j‖² = a'Ka; contrasts are twice the mean sample variance.
    """
    r, k, members, w = _checked_pool(rewards, gram, groups, weights)
    tasks, number, _ = members.shape
    at, observed, advantages = _regrouped(r, members, w, standardized)
    products = k[at[..., None], members[..., :, None], members[..., None, :]]
    squares = (products * advantages[..., :, None] * advantages[..., None, :]).reshape(tasks, number, -1)
    positions = (members + at * r.shape[1]).ravel()
    summed = np.bincount(positions, weights=advantages.ravel(), minlength=r.size).reshape(r.shape)
    contrast = 2 * observed.var(axis=2, ddof=1).mean(axis=1)
    return GroupMoments(squares.sum(axis=2).mean(axis=1), summed / number, contrast)


def regrouped_forms(
    rewards: ArrayLike, groups: ArrayLike, *, weights: ArrayLike | None = None, standardized: bool = False
) -> NDArray[np.float64]:
    """Second moments of the gradients of groups drawn from a task's pool, as `regrouped_moments`.

    Returns F with E[g_k²] = Σ_ij F_ij S_ik S_jk for every coordinate k, shape (T, N, N), whatever the scores.

    Source: as `regrouped_moments`, before inner products are taken.
    """
    r = np.asarray(rewards, dtype=float)
    r, form, members, w = _checked_pool(r, np.zeros((*r.shape, r.shape[-1])), groups, weights)
    at, _, advantages = _regrouped(r, members, w, standardized)
    products = advantages[..., :, None] * advantages[..., None, :]
    np.add.at(form, (at[..., None], members[..., :, None], members[..., None, :]), products)
    form /= members.shape[1]
    return form


def _regrouped(
    rewards: NDArray[np.float64],
    members: NDArray[np.int64],
    weights: NDArray[np.float64],
    standardized: bool,  # noqa: FBT001
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the tasks' numbers, and rewards and weighted advantages of every group's members."""
    at = np.arange(len(members))[:, None, None]
    observed = rewards[at, members]
    advantages = standard(observed) if standardized else mean_centred(observed)
    return at, observed, advantages * weights[at, members]


def _checked_pool(
    rewards: ArrayLike, gram: ArrayLike, groups: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    r, k = np.asarray(rewards, dtype=float), np.asarray(gram, dtype=float)
    members = np.asarray(groups)
    if r.ndim != 2 or k.shape != (*r.shape, r.shape[1]):  # noqa: PLR2004 - a table
        raise ValueError(f"expected rewards (T, N) and a Gram matrix a task, found {r.shape}, {k.shape}")
    if members.ndim != 3 or len(members) != len(r) or not np.issubdtype(members.dtype, np.integer):  # noqa: PLR2004
        raise ValueError(f"expected groups ({len(r)}, J, G) of positions, found {members.shape}")
    number, size = members.shape[1:]
    if not number or not SMALLEST_GROUP <= size <= r.shape[1]:
        raise ValueError(f"{number} groups of {size} cannot be drawn from {r.shape[1]} rollouts")
    w = np.full(r.shape, 1 / size) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != r.shape or not all(np.isfinite(part).all() for part in (r, k, w)):
        raise ValueError(f"expected a finite weight, reward and inner product a rollout, found {w.shape}")
    inside = members.min() >= 0 and members.max() < r.shape[1]
    if not inside or (np.diff(np.sort(members, axis=2)) == 0).any():
        raise ValueError("a group names a rollout that the pool does not have, or one twice")
    return r, k, members, w
