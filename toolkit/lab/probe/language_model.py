"""Probing one checkpoint of a language model: its rollouts are sampled, scored, and gathered as evidence."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import DamagedError, UsageError
from toolkit.estimators import importance_weights
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import close
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import Conversation, TurnTaker, hold, opening
from toolkit.lab.policies.language_model.lockstep import DeskPartner, speak
from toolkit.lab.probe.design import ALL, OUTCOME, TRANSITION, Design, Listed, RolloutSet
from toolkit.lab.probe.evidence import MISMATCHED, GramEvidence, check_designs, missing_tasks, spooled
from toolkit.lab.probe.lora import Scorer, log_probabilities
from toolkit.lab.probe.recorded import Recorded, Transcript, check_number
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


Sampled = tuple[tuple[Transcript, ...], tuple[float, ...]]
"""Transcripts, and the importance weight of each."""


def _own(speaker: Speaker, talks: Sequence[Conversation], desks: Sequence[Desk]) -> Sampled:
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
    transcripts = (
        Transcript((*each.opening, *each.tokens), (*[False] * len(each.opening), *each.chosen))
        for each in spoken
    )
    return tuple(transcripts), (1.0,) * len(spoken)


def _sampled(speaker: Speaker, talks: Sequence[Conversation], desks: Sequence[Desk]) -> Sampled:
    """Have the sampler sample, and weigh its rollouts by what the model makes of them."""
    sampler = speaker.sampler
    assert sampler is not None  # noqa: S101 - for the type checker
    hold(sampler.engine, talks, desks, max_turns=speaker.max_turns)
    # Up to the last token that was sampled, as the model itself would leave it.
    ends = [max(talk.said) + 1 for talk in talks]
    transcripts = tuple(
        Transcript(tuple(talk.tokens[:end]), tuple(at in talk.said for at in range(end)))
        for talk, end in zip(talks, ends, strict=True)
    )
    own = log_probabilities(speaker.model, transcripts, speaker.temperature)
    # A probability that the engine could not tell corrects nothing, as in the trainer.
    ratios = [
        np.nansum(mine - np.array([talk.said[at] for at in sorted(talk.said)]))
        for mine, talk in zip(own, talks, strict=True)
    ]
    weights = importance_weights(ratios, level=sampler.level, most=sampler.most)
    return transcripts, tuple(weights.tolist())


def probe_language_model(
    scorer: Scorer,
    design: Design,
    outcome_tasks: Iterable[Recorded],
    transition_tasks: Iterable[Recorded],
    groups: Listed,
    *,
    folder: Path,
    batch: int = 8,
    names_sha256: str | None = None,
) -> dict[str, GramEvidence]:
    """Score the rollouts of both sets and gather their evidence."""
    if design.scored != (ALL,):
        problem, found = "a language model has no coordinates of actions alone", ", ".join(design.scored)
        raise UsageError(problem, expected=f"scored = {ALL}", found=found)
    check_designs(TRANSITION, groups, design.transition.tasks, design.transition.rollouts)
    by_noise, expected = {}, names_sha256
    given = {OUTCOME: outcome_tasks, TRANSITION: transition_tasks}
    for rollouts in design.sets:
        tasks = _checked(given[rollouts.noise], rollouts, design)
        first = next(tasks, None)
        if first is None:
            raise missing_tasks(rollouts.noise, rollouts.tasks, 0)
        coordinates = scorer.identify(first.transcripts[0])
        check_same_coordinates(expected, coordinates.names_sha256, f"{rollouts.noise} noise")
        expected = coordinates.names_sha256
        with spooled(
            folder,
            rollouts.noise,
            tasks=rollouts.tasks,
            rollouts=rollouts.rollouts,
            coordinates=coordinates.size,
            flip_rate=design.flip_rate,
            groups=groups if rollouts.noise == TRANSITION else None,
            steps=design.steps,
        ) as spool:
            for task in chain([first], tasks):
                scores = scorer.scores(task.transcripts, batch)
                spool.add(np.array(task.rewards, float), np.array(task.weights, float), task.tokens, scores)
            by_noise[rollouts.noise] = spool.evidence()
    scorer.finish()
    return by_noise


def check_same_coordinates(expected: str | None, found: str, where: str) -> None:
    """Refuse scores in other coordinates than those that they are compared with."""
    if expected not in {None, found}:
        hashes = {"expected": f"names_sha256 {expected}", "found": f"names_sha256 {found}"}
        remedy = "score every checkpoint with one kind of adapter, and on rollouts of one kind"
        raise DamagedError(MISMATCHED, **hashes, where=where, remedy=remedy)


def _checked(tasks: Iterable[Recorded], rollouts: RolloutSet, design: Design) -> Iterator[Recorded]:
    """Yield the tasks of a set, each once it has proved to have the set's rollouts."""
    for number, task in enumerate(tasks):
        check_number(len(task.transcripts), rollouts, number, design.group_size)
        yield task
