"""Playing the rollouts of a probe with a log-linear policy, and scoring them exactly."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, UsageError
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Layout, Policy
from toolkit.lab.policies.score import score
from toolkit.lab.probe.design import ACTIONS, ALL, RolloutSet
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed, sample_seed


@dataclass(frozen=True)
class Scored:
    """The rollouts of a set, played and scored."""

    rewards: NDArray[np.float64]  # true outcome of each rollout, in {0, 1}, shape (T, N)
    # Scored coordinates → decisions and tokens of each rollout, shape (T, N)
    tokens: dict[str, NDArray[np.int64]]
    # Importance weight of each rollout, shape (T, N); 1 where sampled from the scored policy
    weights: NDArray[np.float64]
    scores: NDArray[np.float32]  # ∇ log π of each rollout in single precision, shape (T, N, P)


def play_and_score(
    policy: Policy, rollouts: RolloutSet, sampling: int, step: int, tasks: Iterable[int] | None = None
) -> Scored:
    """Play a set and score every rollout."""
    played = [
        _played(policy, rollouts, sampling, step, task)
        for task in (range(rollouts.tasks) if tasks is None else tasks)
    ]
    shape = (len(played), rollouts.rollouts)
    rewards = np.array([[float(success) for _, success in task] for task in played])
    decisions = np.array([[len(rollout.decisions) for rollout, _ in task] for task in played])
    surface = np.array([[len(rollout.tokens) for rollout, _ in task] for task in played])
    scores = np.array(
        [[score(policy, rollout) for rollout, _ in task] for task in played], dtype=np.float32
    ).reshape(*shape, policy.layout.size)
    _check_finite(scores, rollouts.name)
    return Scored(rewards, {ALL: decisions + surface, ACTIONS: decisions}, np.ones(shape), scores)


def coordinate_blocks(layout: Layout, scored: tuple[str, ...]) -> dict[str, slice]:
    """Return the coordinates whose products make those of what is scored, one after the other.

    The products of all coordinates are those of the actions plus those of the surface tokens.
    """
    unknown = [name for name in scored if name not in (ALL, ACTIONS)]
    if unknown or not scored:
        raise UsageError(
            "these coordinates are not the policy's", expected=f"{ALL}, {ACTIONS}", found=", ".join(unknown)
        )
    actions = len(layout.actions)
    return {ACTIONS: slice(0, actions), ALL: slice(actions, layout.size)}


def coordinate_names(layout: Layout, scored: str) -> list[str]:
    """Return the names of the scored coordinates, in order."""
    names = [f"action {feature} {action}" for feature, action in layout.actions]
    if scored == ALL:
        names += [f"token {tool} {token}" for tool in layout.tokens for token in range(layout.surface_tokens)]
    return names


def _played(
    policy: Policy, rollouts: RolloutSet, sampling: int, step: int, number: int
) -> list[tuple[Rollout, bool]]:
    """Play one task's rollouts, schedule by schedule."""
    task = load_task(f"{rollouts.pool}:{number}")
    played = []
    for schedule in range(rollouts.schedules):
        seed = evaluation_seed(task.task_id, schedule)
        for sample in range(rollouts.per_schedule):
            key = (task.task_id, schedule, sample)
            rollout = Rollout(policy, sample_seed(sampling, step, rollouts.name, key))
            episode = play(task, REGIMES[rollouts.regime], seed, rollout)
            played.append((rollout, episode.true_success))
    return played


def _check_finite(scores: NDArray[np.float32], where: str) -> None:
    if np.isfinite(scores).all():
        return
    task, rollout, coordinate = (int(at[0]) for at in np.nonzero(~np.isfinite(scores)))
    raise DamagedError(
        "a score is not finite",
        found=f"rollout {rollout} of task {task}, coordinate {coordinate}",
        where=where,
        remedy="the policy's parameters are damaged or have diverged: check the checkpoint",
    )
