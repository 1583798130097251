"""The rollouts of a probe, sampled from a language model token by token: what its scores are computed from.

Where the model that is scored samples too, every importance weight is 1. Where an engine samples in its
place, it says how likely each token was; the model then reads the same tokens, and a rollout's weight is the
bounded ratio of both probabilities, as the trainer takes it.

Tasks are sampled in blocks whose size is fixed: who else samples, and in how many processes, changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.estimators import importance_weights
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import close
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import Conversation, TurnTaker, hold, opening
from toolkit.lab.policies.language_model.local import DeskPartner
from toolkit.lab.policies.language_model.lockstep import Spoken, speak
from toolkit.lab.probe.design import RolloutSet
from toolkit.lab.probe.gradients import log_probabilities
from toolkit.lab.probe.recorded import Recorded, Transcript
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed, sample_seed, units

SIDE_BY_SIDE = 64
"""Conversations at once, where a task has no more rollouts than that; whole tasks always."""


@dataclass(frozen=True)
class Sampler:
    """An engine that samples in a model's place."""

    engine: TurnTaker  # what takes the turns; it says of every token that it samples how likely it was
    synchronize: Callable[[], None]  # gives the engine the model's policy as it is
    level: str  # what becomes of a ratio above the bound, as `importance_weights` has it
    most: float  # the bound


@dataclass(frozen=True)
class Speaker:
    """A language model that plays, with the limits that it was trained under."""

    model: Any  # a causal language model of transformers in evaluation mode, its adapter active
    chat: Chat  # its tokenizer
    temperature: float  # of the sampling
    max_tokens: int  # most tokens of a conversation beyond its opening
    max_turns: int  # most turns of a conversation
    sampler: Sampler | None = None  # what samples in the model's place; None where it does so itself


def record_tasks(speaker: Speaker, rollouts: RolloutSet, sampling: int, step: int) -> Iterator[Recorded]:
    """Sample the tasks of a set, in order; a block of them is sampled when its first is asked for."""
    at_once = max(1, SIDE_BY_SIDE // rollouts.rollouts)
    for first in range(0, rollouts.tasks, at_once):
        numbers = range(first, min(first + at_once, rollouts.tasks))
        yield from _block(speaker, rollouts, sampling, step, numbers)


def _block(
    speaker: Speaker, rollouts: RolloutSet, sampling: int, step: int, numbers: Sequence[int]
) -> list[Recorded]:
    """Sample some tasks of a set side by side."""
    desks, talks = [], []
    for number in numbers:
        task = load_task(f"{rollouts.pool}:{number}")
        for schedule in range(rollouts.schedules):
            for sample in range(rollouts.per_schedule):
                seed = sample_seed(sampling, step, rollouts.name, (task.task_id, schedule, sample))
                desks.append(Desk(task, REGIMES[rollouts.regime], evaluation_seed(task.task_id, schedule)))
                talks.append(Conversation(opening(task.prompt), seed))
    transcripts, weights = (_own if speaker.sampler is None else _sampled)(speaker, talks, desks)
    rewards = [float(close(desk).true_success) for desk in desks]
    size = rollouts.rollouts
    return [
        Recorded(transcripts[at : at + size], tuple(rewards[at : at + size]), weights[at : at + size])
        for at in range(0, len(talks), size)
    ]


Said = tuple[tuple[Transcript, ...], tuple[float, ...]]
"""Transcripts, and the importance weight of each."""


def _own(speaker: Speaker, talks: Sequence[Conversation], desks: Sequence[Desk]) -> Said:
    """Have the model itself sample."""
    partners = [
        DeskPartner(speaker.chat, talk, desk, speaker.max_turns)
        for talk, desk in zip(talks, desks, strict=True)
    ]
    spoken = speak(
        speaker.model,
        [speaker.chat.opening(partner.talk.messages) for partner in partners],
        partners,
        [units(talk.seed) for talk in talks],
        end=speaker.chat.tokenizer.eos_token_id,
        max_tokens=speaker.max_tokens,
        temperature=speaker.temperature,
    )
    return tuple(map(_transcript, spoken)), (1.0,) * len(spoken)


def _transcript(one: Spoken) -> Transcript:
    return Transcript((*one.opening, *one.tokens), (*(False for _ in one.opening), *one.chosen))


def _sampled(speaker: Speaker, talks: Sequence[Conversation], desks: Sequence[Desk]) -> Said:
    """Have the sampler sample, and weigh its rollouts by what the model makes of them."""
    sampler = speaker.sampler
    assert sampler is not None  # noqa: S101 - for the type checker
    hold(sampler.engine, talks, desks, max_turns=speaker.max_turns)
    transcripts = tuple(map(_without_what_followed, talks))
    own = log_probabilities(speaker.model, transcripts, speaker.temperature)
    # A probability that the engine could not tell corrects nothing, as in the trainer.
    ratios = [
        np.nansum(mine - np.array([talk.said[at] for at in sorted(talk.said)]))
        for mine, talk in zip(own, talks, strict=True)
    ]
    weights = importance_weights(ratios, level=sampler.level, most=sampler.most)
    return transcripts, tuple(weights.tolist())


def _without_what_followed(talk: Conversation) -> Transcript:
    """Return a conversation up to the last token that was sampled, as the model itself would leave it."""
    end = max(talk.said) + 1
    return Transcript(tuple(talk.tokens[:end]), tuple(at in talk.said for at in range(end)))
