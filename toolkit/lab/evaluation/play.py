"""Playing an evaluation set: one row an episode."""

from dataclasses import dataclass

from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.policies.loglinear import Policy
from toolkit.lab.worlds.world import AnyEpisode, play
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import FAULTS, RECOVERIES
from toolkit.seeds import evaluation_seed, sample_seed, shared_seed

NO_FAULTS = dict.fromkeys(FAULTS, 0)


@dataclass(frozen=True)
class SharedSamples:
    """Samples that all runs of a study share, at every step."""

    root: str  # root of the study's seeds


Sampling = int | SharedSamples
"""Sampling seed of a run, or the samples that it shares."""


def evaluate(
    policy: Policy, evaluation: EvaluationSet, run_id: str, step: int, sampling: Sampling
) -> list[Row]:
    """Play an evaluation set."""
    rows = []
    for task in evaluation.positions:
        for schedule in range(evaluation.schedules):
            episode = play_episode(policy, evaluation, step, sampling, (task, schedule))
            rows.append(episode_row(run_id, evaluation, step, schedule, episode))
    return rows


def play_episode(
    policy: Policy,
    evaluation: EvaluationSet,
    step: int,
    sampling: Sampling,
    place: tuple[int, int],
    *,
    traced: bool = False,
) -> AnyEpisode:
    """Play one episode of a set: a task under one of its schedules."""
    number, schedule = place
    task_id = f"{evaluation.pool}:{number}"
    at = (task_id, schedule, 0)
    if isinstance(sampling, SharedSamples):
        seed, is_shared = shared_seed(sampling.root, evaluation.name, at), True
    else:
        seed, is_shared = sample_seed(sampling, step, evaluation.name, at), False
    noise = (REGIMES[evaluation.regime], evaluation_seed(task_id, schedule))
    return play(policy, task_id, *noise, seed, world=evaluation.world, shared=is_shared, traced=traced)[1]


def episode_row(run_id: str, evaluation: EvaluationSet, step: int, schedule: int, episode: AnyEpisode) -> Row:
    """Return an episode, played under a schedule of that index, as a row of `episodes`."""
    faults = dict(NO_FAULTS)
    for exposure in episode.exposures:
        faults[exposure.fault] += 1
    recovery = {f"{code}_due": episode.called_for.get(code, 0) for code in RECOVERIES}
    recovery |= {f"{code}_made": episode.recovered.get(code, 0) for code in RECOVERIES}
    return {
        "run_id": run_id,
        "phase": evaluation.phase,
        "pool": evaluation.pool,
        "regime": evaluation.regime,
        "step": step,
        "task": episode.task.index,
        "schedule": schedule,
        "schedule_seed": episode.schedule.seed,
        "true_success": episode.true_success,
        "observed_reward": bool(episode.observed_reward),
        "calls": episode.calls,
        "ended": episode.ended,
        "world_changed": episode.world_changed,
        **faults,
        **recovery,
    }
