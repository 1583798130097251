"""Advantages: a rollout's reward against its siblings'."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Added to a group's sample standard deviation, as the trainer does; only this reproduces app:bandit.
EPSILON = 1e-4
SMALLEST_GROUP = 2


def mean_centred(rewards: ArrayLike) -> NDArray[np.float64]:
    """Reward minus the group's mean, own reward included.

    Args:
        rewards: shape (..., G), G >= 2; a group along the last axis.

    Returns:
        Advantages, shape (..., G).

    Raises:
        ValueError: a group of one, or a reward that is not finite.

    Source:
        Paper eq:advantages, left. The expected group gradient is (G - 1)/G of the true one (prop:unbiased).
    """
    r = _groups(rewards)
    centred: NDArray[np.float64] = r - r.mean(axis=-1, keepdims=True)
    return centred


def leave_one_out(rewards: ArrayLike) -> NDArray[np.float64]:
    """Reward minus the mean of the siblings; unbiased under both designs.

    Args:
        rewards: shape (..., G), G >= 2.

    Returns:
        Advantages, shape (..., G): G/(G - 1) times the mean-centred ones.

    Raises:
        ValueError: as `mean_centred`.

    Source:
        Paper prop:unbiased.
    """
    r = _groups(rewards)
    size = r.shape[-1]
    advantages: NDArray[np.float64] = mean_centred(r) * (size / (size - 1))
    return advantages


def standardized(rewards: ArrayLike, epsilon: float = EPSILON) -> NDArray[np.float64]:
    """Mean-centred reward over the group's sample standard deviation plus epsilon.

    Args:
        rewards: shape (..., G), G >= 2.
        epsilon: added to the standard deviation, > 0; a constant group has advantages of zero.

    Returns:
        Advantages, shape (..., G).

    Raises:
        ValueError: as `mean_centred`, or an epsilon that is not positive.

    Source:
        Paper eq:advantages, right; sample deviation (ddof 1) and ε = 1e-4, as in sec:spurious.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon is positive, found {epsilon}")
    r = _groups(rewards)
    centred = mean_centred(r)
    constant = (r == r[..., :1]).all(axis=-1, keepdims=True)
    deviation = r.std(axis=-1, ddof=1, keepdims=True)
    scaled: NDArray[np.float64] = np.where(constant, 0.0, centred / (deviation + epsilon))
    return scaled


def group_gradient(advantages: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """A group's gradient estimate, the mean of advantage times score.

    Args:
        advantages: shape (G,).
        scores: ∇ log π of each rollout, shape (G, P).

    Returns:
        Gradient, shape (P,), in the unit of the scores.

    Raises:
        ValueError: shapes that do not fit.

    Source:
        Paper eq:g.
    """
    a, s = np.asarray(advantages, dtype=float), np.asarray(scores, dtype=float)
    if a.ndim != 1 or s.ndim != 2 or len(a) != len(s) or not len(a):  # noqa: PLR2004 - a matrix
        raise ValueError(f"expected advantages (G,) and scores (G, P), found {a.shape} and {s.shape}")
    gradient: NDArray[np.float64] = a @ s / len(a)
    return gradient


def _groups(rewards: ArrayLike) -> NDArray[np.float64]:
    r = np.asarray(rewards, dtype=float)
    if r.ndim < 1 or r.shape[-1] < SMALLEST_GROUP:
        raise ValueError(f"a group has at least two rollouts, found shape {r.shape}")
    if not np.isfinite(r).all():
        raise ValueError("a reward is not finite")
    return r
