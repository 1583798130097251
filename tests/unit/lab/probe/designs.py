"""Small probes, and rollouts and score vectors drawn at random for them."""

import numpy as np

from toolkit.lab.probe.design import ALL, OUTCOME, TRANSITION, Design, RolloutSet, index_rows, read_groups

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
