"""The rollouts of a probe, sampled from a language model token by token: what its scores are computed from.

One engine samples and scores, so that every importance weight is 1. Tasks are sampled in blocks whose size is
fixed: who else samples, and in how many processes, changes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.episodes.desk import Desk
from toolkit.episodes.episode import close
from toolkit.noise.regimes import REGIMES
from toolkit.policies.language_model.chat import Chat
from toolkit.policies.language_model.conversation import Conversation, opening
from toolkit.policies.language_model.local import DeskPartner
from toolkit.policies.language_model.lockstep import Spoken, speak
from toolkit.probe.design import RolloutSet
from toolkit.probe.recorded import Recorded, Transcript
from toolkit.seeds import evaluation_seed, sample_seed, units
from toolkit.tasks.pools import load_task

SIDE_BY_SIDE = 64
"""Conversations at once, where a task has no more rollouts than that; whole tasks always."""


@dataclass(frozen=True)
class Speaker:
    """A language model that plays, with the limits that it was trained under.

    Args:
        model: a causal language model of transformers in evaluation mode, its adapter active.
        chat: its tokenizer.
        temperature: of the sampling.
        max_tokens: most tokens of a conversation beyond its opening.
        max_turns: most turns of a conversation.
    """

    model: Any
    chat: Chat
    temperature: float
    max_tokens: int
    max_turns: int


def record_tasks(speaker: Speaker, rollouts: RolloutSet, sampling: int, step: int) -> Iterator[Recorded]:
    """Sample the tasks of a set, in order; a block of them is sampled when its first is asked for.

    Args:
        speaker: the model.
        rollouts: the set.
        sampling: sampling seed of the checkpoint's trajectory.
        step: step of the checkpoint.

    Yields:
        A task's rollouts, schedule by schedule; under transition noise without flips, so that the reward is
        the true outcome.

    Raises:
        UsageError: an opening alone is longer than the model's context.
        IncompleteError: there is not enough memory.
    """
    at_once = max(1, SIDE_BY_SIDE // rollouts.rollouts)
    for first in range(0, rollouts.tasks, at_once):
        numbers = range(first, min(first + at_once, rollouts.tasks))
        yield from _block(speaker, rollouts, sampling, step, numbers)


def _block(
    speaker: Speaker, rollouts: RolloutSet, sampling: int, step: int, numbers: Sequence[int]
) -> list[Recorded]:
    """Sample some tasks of a set side by side."""
    desks, partners, seeds = [], [], []
    for number in numbers:
        task = load_task(f"{rollouts.pool}:{number}")
        for schedule in range(rollouts.schedules):
            for sample in range(rollouts.per_schedule):
                seed = sample_seed(sampling, step, rollouts.name, (task.task_id, schedule, sample))
                desk = Desk(task, REGIMES[rollouts.regime], evaluation_seed(task.task_id, schedule))
                talk = Conversation(opening(task.prompt), seed)
                desks.append(desk)
                partners.append(DeskPartner(speaker.chat, talk, desk, speaker.max_turns))
                seeds.append(seed)
    spoken = speak(
        speaker.model,
        [speaker.chat.opening(partner.talk.messages) for partner in partners],
        partners,
        [units(seed) for seed in seeds],
        end=speaker.chat.tokenizer.eos_token_id,
        max_tokens=speaker.max_tokens,
        temperature=speaker.temperature,
    )
    rewards = [float(close(desk).true_success) for desk in desks]
    size = rollouts.rollouts
    return [
        Recorded(
            tuple(map(_transcript, spoken[start : start + size])),
            tuple(rewards[start : start + size]),
            (1.0,) * size,
        )
        for start in range(0, len(spoken), size)
    ]


def _transcript(one: Spoken) -> Transcript:
    return Transcript((*one.opening, *one.tokens), (*(False for _ in one.opening), *one.chosen))
