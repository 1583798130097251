"""Effective sizes: how many independent rollouts, contrasts or groups the paired ones are worth."""

import math

from toolkit.estimators.theory import ExactOrNot, check_rate


def effective_group_size(group_size: int, luck_share: ExactOrNot) -> ExactOrNot:
    """Independent rollouts whose mean reward varies as that of a paired group: G/(1 + (G - 1)λ).

    Args:
        group_size: rollouts in the group, G >= 1.
        luck_share: λ, in [0, 1]; exact if a fraction.

    Returns:
        From G, where luck explains nothing, to 1, where it explains all; of the type of `luck_share`.

    Raises:
        ValueError: a share outside [0, 1], or an empty group.

    Source:
        Paper sec:contrast: exchangeable rewards with correlation λ. It speaks of the mean reward alone, not
        of contrasts or gradients.
    """
    check_rate(luck_share)
    if group_size < 1:
        raise ValueError(f"a group has at least one rollout, found {group_size}")
    return group_size / (1 + (group_size - 1) * luck_share)


def contrast_replicates(luck_share: ExactOrNot) -> ExactOrNot | None:
    """Independent contrasts that average to the variance of a single paired one: 1/(1 - λ).

    Args:
        luck_share: λ, in [0, 1]; exact if a fraction.

    Returns:
        The factor, of the type of `luck_share`; None at a share of one, where no number is enough.

    Raises:
        ValueError: a share outside [0, 1].

    Source:
        Paper sec:contrast, after prop:contrast: the variance ratio of a contrast is 1 - λ.
    """
    check_rate(luck_share)
    return None if luck_share == 1 else 1 / (1 - luck_share)


def equal_variance_batch(groups: int, trace_ratio: ExactOrNot) -> ExactOrNot:
    """Independent groups whose mean gradient varies as that of B paired groups: B/r.

    Args:
        groups: paired groups in a step, B >= 1.
        trace_ratio: r, the covariance trace of a paired group's gradient over an independent one's, > 0.

    Returns:
        Groups, not rounded; of the type of `trace_ratio`.

    Raises:
        ValueError: no group, or a ratio that is not positive and finite.

    Source:
        The trace of a mean of n independent groups is tr Σ/n: r tr Σ/B = tr Σ/n. Of the trace alone: another
        optimizer than plain ascent is not indifferent to where the variance lies (see `exact_drift`).
    """
    if groups < 1:
        raise ValueError(f"a step has at least one group, found {groups}")
    if not 0 < trace_ratio < math.inf:
        raise ValueError(f"a ratio of traces is positive and finite, found {trace_ratio}")
    return groups / trace_ratio
