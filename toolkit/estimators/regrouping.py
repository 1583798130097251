"""Moments of the gradients of groups that are put together from each task's pool of rollouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.estimators.advantages import SMALLEST_GROUP, mean_centred
from toolkit.estimators.advantages import standardized as standard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class RegroupedMoments:
    """What the groups of each task's pool have on average.

    Args:
        second: mean of ‖g‖² over a task's groups, shape (T,), in score² times squared weight.
        coefficients: c with mean g = Σ_i c_i S_i over the pool, shape (T, N).
        contrast: variance of a reward contrast within a group, shape (T,), in reward².
    """

    second: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    contrast: NDArray[np.float64]


def regrouped_moments(
    rewards: ArrayLike,
    gram: ArrayLike,
    groups: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    standardized: bool = False,
) -> RegroupedMoments:
    """Moments of the group gradients g = Σ_i A_i w_i S_i of groups drawn from a task's pool.

    Args:
        rewards: reward of each rollout, shape (T, N): task, rollout of its pool.
        gram: inner products of the scores, shape (T, N, N), in score².
        groups: positions in the pool, shape (T, J, G), G >= 2; no rollout twice in a group.
        weights: w of each rollout, shape (T, N); 1/G where they are left out (paper eq:g).
        standardized: whether advantages are divided by the group's standard deviation plus ε.

    Raises:
        ValueError: shapes that do not fit, fewer rollouts than a group has, a position outside the pool or
            twice in a group, or a value that is not finite.

    Source:
        Paper app:probe, "Transition noise": ‖g_j‖² = a'Ka; contrasts are twice the mean sample variance.
    """
    import numpy as np

    r, k, listed, w = _checked(rewards, gram, groups, weights)
    tasks, number, _ = listed.shape
    at = np.arange(tasks)[:, None, None]
    observed = r[at, listed]
    advantages = (standard(observed) if standardized else mean_centred(observed)) * w[at, listed]
    products = k[at[..., None], listed[..., :, None], listed[..., None, :]]
    squares = (products * advantages[..., :, None] * advantages[..., None, :]).reshape(tasks, number, -1)
    places = (listed + at * r.shape[1]).ravel()
    summed = np.bincount(places, weights=advantages.ravel(), minlength=r.size).reshape(r.shape)
    contrast = 2 * observed.var(axis=2, ddof=1).mean(axis=1)
    return RegroupedMoments(squares.sum(axis=2).mean(axis=1), summed / number, contrast)


def _checked(
    rewards: ArrayLike, gram: ArrayLike, groups: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    import numpy as np

    r, k = np.asarray(rewards, dtype=float), np.asarray(gram, dtype=float)
    listed = np.asarray(groups)
    if r.ndim != 2 or k.shape != (*r.shape, r.shape[1]):  # noqa: PLR2004 - a table
        raise ValueError(f"expected rewards (T, N) and a Gram matrix a task, found {r.shape}, {k.shape}")
    if listed.ndim != 3 or len(listed) != len(r) or not np.issubdtype(listed.dtype, np.integer):  # noqa: PLR2004
        raise ValueError(f"expected groups ({len(r)}, J, G) of positions, found {listed.shape}")
    number, size = listed.shape[1:]
    if not number or not SMALLEST_GROUP <= size <= r.shape[1]:
        raise ValueError(f"{number} groups of {size} cannot be drawn from {r.shape[1]} rollouts")
    w = np.full(r.shape, 1 / size) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != r.shape or not all(np.isfinite(part).all() for part in (r, k, w)):
        raise ValueError(f"expected a finite weight, reward and inner product a rollout, found {w.shape}")
    inside = listed.min() >= 0 and listed.max() < r.shape[1]
    if not inside or (np.diff(np.sort(listed, axis=2)) == 0).any():
        raise ValueError("a group names a rollout that the pool does not have, or one twice")
    return r, k, listed, w
