"""Importance weights: how much likelier a rollout is under the trained policy than under its sampler."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

MASK, TRUNCATE = "sequence_mask", "sequence_truncate"
OF_ROLLOUTS = (MASK, TRUNCATE)
"""What becomes of a whole rollout's ratio above the bound."""


def importance_weights(log_ratios: ArrayLike, *, level: str = MASK, most: float = 3.0) -> NDArray[np.float64]:
    """Importance weights w = exp Σ_t (log π(y_t) - log μ(y_t)) of rollouts that μ sampled, bounded above.

    Where no ratio is above the bound, the mean of w f under μ is that of f under π. An advantage compares a
    rollout with siblings that μ sampled, too: w weighs the rollout alone.

    Args:
        log_ratios: each rollout's sum over the tokens that the sampler chose, any shape; nothing is -inf.
        level: what becomes of a ratio above the bound: `sequence_mask` makes it 0, `sequence_truncate` the
            bound.
        most: the bound.

    Returns:
        Weights of that shape, 0 or more.

    Raises:
        ValueError: another level, a bound that is not above zero, or a ratio that is no number.

    Source:
        Paper sec:discussion, "Importance weighting", and app:training: "sequence-level mask, upper bound 3,
        no lower bound"; trl 1.12.0, `GRPOTrainer`.
    """
    logs = np.asarray(log_ratios, dtype=float)
    if level not in OF_ROLLOUTS:
        raise ValueError(f"expected {' or '.join(OF_ROLLOUTS)}, found {level!r}")
    if not most > 0 or np.isnan(logs).any():
        raise ValueError("a bound lies above zero, and a ratio is a number")
    with np.errstate(over="ignore"):
        ratios = np.exp(logs)
    return np.where(ratios > most, 0.0 if level == MASK else most, ratios)
