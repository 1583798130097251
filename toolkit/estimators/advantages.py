"""Advantages: a rollout's reward against its siblings'; and what a rollout of another policy weighs."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Added to a group's sample standard deviation, as the trainer does; only this reproduces app:bandit.
EPSILON = 1e-4
SMALLEST_GROUP = 2


def mean_centred(rewards: ArrayLike) -> NDArray[np.float64]:
    """Rewards (..., G), G >= 2, a group along the last axis, minus the group's mean, own reward included.

    Source: paper eq:advantages, left. The expected group gradient is (G - 1)/G of the true one
    (prop:unbiased).
    """
    r = _groups(rewards)
    centred: NDArray[np.float64] = r - r.mean(axis=-1, keepdims=True)
    return centred


def leave_one_out(rewards: ArrayLike) -> NDArray[np.float64]:
    """Rewards (..., G), G >= 2, minus the mean of the siblings: G/(G - 1) times the mean-centred ones.

    Source: paper prop:unbiased, under both designs.
    """
    r = _groups(rewards)
    size = r.shape[-1]
    advantages: NDArray[np.float64] = mean_centred(r) * (size / (size - 1))
    return advantages


def standardized(rewards: ArrayLike, epsilon: float = EPSILON) -> NDArray[np.float64]:
    """Mean-centred rewards (..., G), G >= 2, over the group's sample standard deviation plus `epsilon` > 0.

    A constant group has advantages of zero.

    Source: paper eq:advantages, right; sample deviation (ddof 1) and ε = 1e-4, as in sec:spurious.
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
    """A group's gradient (P,): the mean of advantages (G,) times scores ∇ log π (G, P), in their unit.

    Source: paper eq:g.
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


MASK, TRUNCATE = "sequence_mask", "sequence_truncate"
OF_ROLLOUTS = (MASK, TRUNCATE)
"""What becomes of a whole rollout's ratio above the bound."""


def importance_weights(log_ratios: ArrayLike, *, level: str = MASK, most: float = 3.0) -> NDArray[np.float64]:
    """Importance weights w = exp Σ_t (log π(y_t) - log μ(y_t)) of rollouts that μ sampled, bounded above.

    Where no ratio is above the bound, the mean of w f under μ is that of f under π. An advantage compares a
    rollout with siblings that μ sampled, too: w weighs the rollout alone.

    Args:
        log_ratios: each rollout's sum over the tokens that the sampler chose, any shape; nothing is -inf.
        level: `sequence_mask` makes a ratio above the bound 0, `sequence_truncate` makes it the bound.
        most: the bound, > 0.

    Source: paper sec:discussion, "Importance weighting", and app:training: "sequence-level mask, upper bound
    3, no lower bound"; trl 1.12.0, `GRPOTrainer`.
    """
    logs = np.asarray(log_ratios, dtype=float)
    if level not in OF_ROLLOUTS:
        raise ValueError(f"expected {' or '.join(OF_ROLLOUTS)}, found {level!r}")
    if not most > 0 or np.isnan(logs).any():
        raise ValueError("a bound lies above zero, and a ratio is a number")
    with np.errstate(over="ignore"):
        ratios = np.exp(logs)
    return np.where(ratios > most, 0.0 if level == MASK else most, ratios)
