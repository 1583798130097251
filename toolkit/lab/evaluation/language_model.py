"""Evaluation sets and the luck-share diagnostic, played by a language model: block by block."""

from dataclasses import dataclass

from toolkit.lab.evaluation.diagnostic import SAMPLES, SCHEDULES, diagnostic_row
from toolkit.lab.evaluation.play import Sampling as Seed
from toolkit.lab.evaluation.play import SharedSamples, episode_row
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.policies.language_model.conversation import TURNS, Play, Player, TurnTaker, converse
from toolkit.lab.tasks.task import Task
from toolkit.lab.worlds.world import for_model
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import evaluation_seed, sample_seed, shared_seed

SIDE_BY_SIDE = 64
"""Conversations of a block, or a task's if it has more: fixed, so that rows depend on no worker."""


@dataclass(frozen=True)
class Sampling:
    """Whose rows are played, and what they are sampled with."""

    run_id: str  # the run that the rows belong to
    step: int  # training step of the policy
    seed: Seed  # sampling seed of the run, or the samples that it shares; the diagnostic wants a seed
    max_turns: int = TURNS  # most turns of a conversation
    world: str = ""  # where the tasks come from, if not from the back office


def blocks(tasks: int, conversations: int) -> tuple[range, ...]:
    """Return the tasks of a set, counted from 0, in blocks of a size; the last may be smaller."""
    size = max(1, SIDE_BY_SIDE // conversations)
    return tuple(range(start, min(start + size, tasks)) for start in range(0, tasks, size))


def evaluate(engine: TurnTaker | Player, evaluation: EvaluationSet, sampling: Sampling) -> list[Row]:
    """Play an evaluation set."""
    return [
        row
        for block in blocks(evaluation.tasks, evaluation.schedules)
        for row in evaluate_block(engine, evaluation, block, sampling)
    ]


def evaluate_block(
    engine: TurnTaker | Player, evaluation: EvaluationSet, tasks: range, sampling: Sampling
) -> list[Row]:
    """Play some tasks of an evaluation set under all its schedules, side by side; returns as `evaluate`."""
    positions = evaluation.positions
    places = [(positions[task], schedule) for task in tasks for schedule in range(evaluation.schedules)]
    plays = [
        _play(evaluation.pool, evaluation.regime, evaluation.name, sampling, (task, schedule, 0))
        for task, schedule in places
    ]
    played = converse(engine, plays, max_turns=sampling.max_turns)
    return [
        episode_row(sampling.run_id, evaluation, sampling.step, schedule, episode)
        for (_, schedule), episode in zip(places, played, strict=True)
    ]


def diagnose(engine: TurnTaker | Player, regime: str, pool: str, tasks: int, sampling: Sampling) -> list[Row]:
    """Play the diagnostic on the first tasks of a pool."""
    return [
        row
        for block in blocks(tasks, SCHEDULES * SAMPLES)
        for row in diagnose_block(engine, regime, pool, block, sampling)
    ]


def diagnose_block(
    engine: TurnTaker | Player, regime: str, pool: str, tasks: range, sampling: Sampling
) -> list[Row]:
    """Play the tables of some tasks, all their samples side by side; returns as `diagnose`."""
    tables = [(task, schedule) for task in tasks for schedule in range(SCHEDULES)]
    plays = [
        _play(pool, regime, pool, sampling, (task, schedule, sample))
        for task, schedule in tables
        for sample in range(SAMPLES)
    ]
    played = converse(engine, plays, max_turns=sampling.max_turns)
    cell = {"run_id": sampling.run_id, "step": sampling.step, "pool": pool, "regime": regime}
    return [
        diagnostic_row(
            {**cell, "task": task, "schedule": schedule}, played[number * SAMPLES : (number + 1) * SAMPLES]
        )
        for number, (task, schedule) in enumerate(tables)
    ]


def _play(pool: str, regime: str, name: str, sampling: Sampling, place: tuple[int, int, int]) -> Play:
    number, schedule, sample = place
    task = for_model(sampling.world, pool, number)
    at = (task.task_id, schedule, sample)
    if isinstance(sampling.seed, SharedSamples):
        seed, shared = shared_seed(sampling.seed.root, name, at), True
    else:
        seed, shared = sample_seed(sampling.seed, sampling.step, name, at), False
    if isinstance(task, Task):
        schedule_seed = evaluation_seed(task.task_id, schedule)
    else:
        schedule_seed = task.schedule_seed(schedule)
    return Play(task, REGIMES[regime], schedule_seed, seed, shared)
