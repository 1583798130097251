"""The luck-share diagnostic: tasks × schedules × policy samples (paper sec:protocol)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.lab.tasks.pools import positions
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import evaluation_seed, sample_seed

if TYPE_CHECKING:
    from toolkit.lab.policies.loglinear import Policy
    from toolkit.lab.worlds.world import AnyEpisode

POOL = "diagnostic"
SCHEDULES = 8
SAMPLES = 8
DEFAULT_REGIME = "faults_p025"


def regime_diagnosed(training: str) -> str:
    """Return the regime of the tables: tool faults as in training, or the default for runs without."""
    return training if REGIMES[training].mixture is not None else DEFAULT_REGIME


def diagnose(
    policy: Policy, regime: str, run_id: str, step: int, sampling: int, *, pool: str = POOL, world: str = ""
) -> list[Row]:
    """Play the diagnostic."""
    cells = [
        {"run_id": run_id, "step": step, "pool": pool, "regime": regime, "task": task, "schedule": schedule}
        for task in positions(pool, world=world)
        for schedule in range(SCHEDULES)
    ]
    return [diagnosed_row(policy, cell, sampling, world) for cell in cells]


def diagnosed_row(policy: Policy, place: Mapping[str, Any], sampling: int, world: str = "") -> Row:
    """Play one row of a table: the samples of one task under one schedule."""
    from toolkit.lab.worlds.world import play

    pool, schedule = place["pool"], place["schedule"]
    task_id = f"{pool}:{place['task']}"
    noise = (REGIMES[place["regime"]], evaluation_seed(task_id, schedule))
    seeds = (
        sample_seed(sampling, place["step"], pool, (task_id, schedule, sample)) for sample in range(SAMPLES)
    )
    return diagnostic_row(place, [play(policy, task_id, *noise, seed, world=world)[1] for seed in seeds])


def diagnostic_row(place: Mapping[str, Any], played: Sequence[AnyEpisode]) -> Row:
    """Return the samples of one task under one schedule as a row of `luck_share`."""
    return {
        **{name: place[name] for name in ("run_id", "step", "pool", "regime", "task", "schedule")},
        "schedule_seed": played[0].schedule.seed,
        "true_successes": [episode.true_success for episode in played],
        "observed_rewards": [bool(episode.observed_reward) for episode in played],
    }
