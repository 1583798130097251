"""Small probes, rollouts and score vectors drawn at random for them, and gradients made one by one."""

from itertools import product

import numpy as np

from toolkit.lab.probe.design import (
    ALL,
    OUTCOME,
    PAIRED,
    TRANSITION,
    Design,
    Listed,
    RolloutSet,
    index_rows,
    read_groups,
)
from toolkit.lab.probe.evidence import Scored

FLIP_RATE = 0.1


def design(outcome_tasks: int = 6, transition_tasks: int = 3, size: int = 4) -> Design:
    """Return a probe with groups of `size`, under as many schedules."""
    return Design(
        root="a root",
        scored=(ALL,),
        outcome=RolloutSet(OUTCOME, "validation", "clean", outcome_tasks, 1, size),
        transition=RolloutSet(TRANSITION, "diagnostic", "faults_p025", transition_tasks, size, size),
        flip_rate=FLIP_RATE,
        groups=8,
        rollouts_per_step=192,
        level=0.95,
        resamples=200,
        rng_seed=13,
    )


def groups_of(one: Design) -> dict:
    return read_groups(index_rows(one), one.transition)


def recorded_numbers(tasks: int, rollouts: int, seed: int = 5) -> tuple[np.ndarray, ...]:
    """Return rewards, importance weights with some zeros, and token counts, each of shape (T, N)."""
    rng = np.random.default_rng(seed)
    rewards = (rng.random((tasks, rollouts)) < 0.6).astype(float)
    weights = np.where(rng.random((tasks, rollouts)) < 0.15, 0.0, rng.uniform(0.1, 2, (tasks, rollouts)))
    return rewards, weights, rng.integers(5, 90, (tasks, rollouts))


def draw(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def gradients(
    scored: Scored, listed: Listed | None, estimator: str, design: str, task: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return every gradient that a task's rollouts give under a design, shape (M, P), and how likely each is.

    Without lists each task is one group, whose outcomes flip. MC is Σ (R - mean)/G S; SW standardizes, and
    weighs by importance.
    """
    outcomes, size = scored.rewards[task], scored.rewards.shape[1]
    if listed is not None:
        groups = [(1 / len(listed[design][task]), list(g), outcomes[list(g)]) for g in listed[design][task]]
    else:
        masks = [np.array(mask) for mask in product((0, 1), repeat=size)]
        chances = [np.prod(np.where(mask, 1 - FLIP_RATE, FLIP_RATE)) for mask in masks]
        if design == PAIRED:
            masks, chances = [np.ones(size), np.zeros(size)], [1 - FLIP_RATE, FLIP_RATE]
        groups = [
            (chance, [*range(size)], mask * outcomes) for chance, mask in zip(chances, masks, strict=True)
        ]
    every = []
    for _, members, rewards in groups:
        advantages, weights = rewards - rewards.mean(), np.full(len(members), 1 / len(members))
        if estimator == "SW":
            advantages = advantages / (np.std(rewards, ddof=1) + 1e-4)
            weights = scored.weights[task, members]
        every.append((advantages * weights) @ scored.scores[task, members].astype(float))
    return np.array(every), np.array([chance for chance, *_ in groups])
