"""Scores: the gradient of the log-probability of what a policy chose, exactly.

The derivative of log π(a' | s) by θ[f, a] is 1{a = a'} - π(a | s) where f is on in s, and alike for tokens; a
rollout's score S is the sum over its decisions and tokens. A weighted sum of scores is collected by situation
first: rollouts meet the same situations again and again, and the probabilities are the same for all of them.

Source:
    Paper sec:setting, S = Σ_t ∇ log π.
"""

from collections.abc import Iterable

from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Choice, Policy


def score(policy: Policy, rollout: Rollout) -> list[float]:
    """Return a rollout's score, one number a parameter."""
    return weighted_scores(policy, [(rollout, 1.0)])


def weighted_scores(policy: Policy, weighted: Iterable[tuple[Rollout, float]]) -> list[float]:
    """Return the weighted sum of rollouts' scores, added up in a fixed order."""
    weights: dict[Choice, list[float]] = {}
    for rollout, weight in weighted:
        for choices in (rollout.decisions, rollout.tokens):
            for choice, at in choices:
                chosen = weights.get(choice)
                if chosen is None:
                    chosen = weights[choice] = [0.0] * len(choice.probabilities)
                chosen[at] += weight
    total = [0.0] * policy.layout.size
    for choice, chosen in weights.items():
        whole = 0.0
        for weight in chosen:
            whole += weight
        for weight, probability, places in zip(chosen, choice.probabilities, choice.positions, strict=True):
            part = weight - whole * probability
            for position in places:
                total[position] += part
    return total
