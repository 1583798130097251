"""The luck-share diagnostic: tasks × schedules × policy samples.

Source:
    Paper sec:protocol, "Luck-share diagnostic": K = 8 schedules, M = 8 samples under each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.episodes.episode import play
from toolkit.noise.regimes import REGIMES
from toolkit.policies.agent import Rollout
from toolkit.seeds import evaluation_seed, sample_seed
from toolkit.tasks.pools import POOLS, load_task

if TYPE_CHECKING:
    from toolkit.policies.loglinear import Policy
    from toolkit.registers.arrow import Row

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
    """Play the diagnostic.

    Args:
        policy: the policy.
        regime: the noise.
        run_id: the run that the rows belong to.
        step: step of the policy.
        sampling: sampling seed of the run.
        pool: pool of the tasks.

    Returns:
        Rows of `luck_share`: one a task and schedule, with the outcome of every sample.
    """
    rows = []
    for number in range(POOLS[pool].size):
        task = load_task(f"{pool}:{number}")
        for schedule in range(SCHEDULES):
            seed = evaluation_seed(task.task_id, schedule)
            played = [
                play(task, REGIMES[regime], seed, Rollout(policy, sample_seed(sampling, step, pool, at)))
                for at in ((task.task_id, schedule, sample) for sample in range(SAMPLES))
            ]
            rows.append(
                {
                    "run_id": run_id,
                    "step": step,
                    "pool": pool,
                    "regime": regime,
                    "task": number,
                    "schedule": schedule,
                    "schedule_seed": seed,
                    "true_successes": [episode.true_success for episode in played],
                    "observed_rewards": [bool(episode.observed_reward) for episode in played],
                }
            )
    return rows
