"""The luck-share diagnostic: tasks × schedules × policy samples (paper sec:protocol)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import evaluation_seed, sample_seed

if TYPE_CHECKING:
    from toolkit.lab.episodes.episode import Episode
    from toolkit.lab.policies.loglinear import Policy

POOL = "diagnostic"
SCHEDULES = 8
SAMPLES = 8
DEFAULT_REGIME = "faults_p025"


def regime_diagnosed(training: str) -> str:
    """Return the regime of the tables: tool faults as in training, or the default for runs without."""
    return training if REGIMES[training].mixture is not None else DEFAULT_REGIME


def diagnose(
    policy: Policy, regime: str, run_id: str, step: int, sampling: int, *, pool: str = POOL
) -> list[Row]:
    """Play the diagnostic."""
    cells = [
        {"run_id": run_id, "step": step, "pool": pool, "regime": regime, "task": task, "schedule": schedule}
        for task in range(POOLS[pool].size)
        for schedule in range(SCHEDULES)
    ]
    return [diagnosed_row(policy, cell, sampling) for cell in cells]


def diagnosed_row(policy: Policy, place: Mapping[str, Any], sampling: int) -> Row:
    """Play one row of a table: the samples of one task under one schedule."""
    from toolkit.lab.episodes.episode import play
    from toolkit.lab.policies.agent import Rollout

    pool, schedule = place["pool"], place["schedule"]
    task = load_task(f"{pool}:{place['task']}")
    seed = evaluation_seed(task.task_id, schedule)
    rollouts = (
        Rollout(policy, sample_seed(sampling, place["step"], pool, (task.task_id, schedule, sample)))
        for sample in range(SAMPLES)
    )
    return diagnostic_row(
        place, [play(task, REGIMES[place["regime"]], seed, rollout) for rollout in rollouts]
    )


def diagnostic_row(place: Mapping[str, Any], played: Sequence[Episode]) -> Row:
    """Return the samples of one task under one schedule as a row of `luck_share`."""
    return {
        **{name: place[name] for name in ("run_id", "step", "pool", "regime", "task", "schedule")},
        "schedule_seed": played[0].schedule.seed,
        "true_successes": [episode.true_success for episode in played],
        "observed_rewards": [bool(episode.observed_reward) for episode in played],
    }
