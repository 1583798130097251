"""The exact condition under one-sided outcome noise: does pairing lower the gradient's covariance trace?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from toolkit.estimators.spurious import check_rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Number: TypeAlias = float | Fraction


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
    import numpy as np

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
    import numpy as np

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
    if group_size < 1 or not 0 <= successes <= group_size:
        raise ValueError(f"expected 0 <= k <= G, found k = {successes}, G = {group_size}")
    unit = squared_norm * Fraction(successes, group_size**3)
    return Condition(unit * (group_size - successes), unit * (group_size - 1))
