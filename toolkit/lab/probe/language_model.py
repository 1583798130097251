"""Probing one checkpoint of a language model: from recorded rollouts to evidence, whatever its size.

1. The first rollout of both sets identifies the coordinates, which have to be the same, and those of other
   checkpoints where these are known.
2. Task by task, the rollouts are scored and their scores spooled (`toolkit.lab.probe.spool`).
3. At the end the adapter is hashed again: one adapter gave all scores.

Every figure follows from the evidence by `toolkit.lab.probe.figures`, as it does for the log-linear
policy. All coordinates are scored: a language model has no actions apart from its tokens.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from toolkit.errors import DamagedError, UsageError
from toolkit.lab.probe.coordinates import steps_of
from toolkit.lab.probe.design import ALL, OUTCOME, TRANSITION, Design, Listed, RolloutSet
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.gram import MISMATCHED
from toolkit.lab.probe.lora import Scorer
from toolkit.lab.probe.recorded import Recorded, check_number
from toolkit.lab.probe.spool import check_designs, missing_tasks, spooled


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
    """Score the rollouts of both sets and gather their evidence.

    Beside the model, memory holds a batch of scores and what `spooled` says; tasks may come one at a time.

    Source:
        Paper app:probe, "Scores".
    """
    if design.scored != (ALL,):
        raise UsageError(
            "a language model has no coordinates of actions alone",
            expected=f"scored = {ALL}",
            found=", ".join(design.scored),
            remedy="freeze a probe that scores all coordinates",
        )
    check_designs(TRANSITION, groups, design.transition.tasks, design.transition.rollouts)
    by_noise, expected = {}, names_sha256
    given = {OUTCOME: outcome_tasks, TRANSITION: transition_tasks}
    for rollouts in design.sets:
        tasks = _checked(given[rollouts.noise], rollouts, design)
        first = next(tasks, None)
        if first is None:
            raise missing_tasks(rollouts.noise, rollouts.tasks, 0)
        coordinates = scorer.identify(first.transcripts[0])  # 1
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
            steps=steps_of(design),
        ) as spool:
            for task in chain([first], tasks):  # 2
                scores = scorer.scores(task.transcripts, batch)
                spool.add(np.array(task.rewards, float), np.array(task.weights, float), task.tokens, scores)
            by_noise[rollouts.noise] = spool.evidence()
    scorer.finish()  # 3
    return by_noise


def check_same_coordinates(expected: str | None, found: str, where: str) -> None:
    """Refuse scores in other coordinates than those that they are compared with."""
    if expected not in {None, found}:
        raise DamagedError(
            MISMATCHED,
            expected=f"names_sha256 {expected}",
            found=f"names_sha256 {found}",
            where=where,
            remedy="score every checkpoint with one kind of adapter, and on rollouts of one kind",
        )


def _checked(tasks: Iterable[Recorded], rollouts: RolloutSet, design: Design) -> Iterator[Recorded]:
    """Yield the tasks of a set, each once it has proved to have the set's rollouts."""
    for number, task in enumerate(tasks):
        check_number(len(task.transcripts), rollouts, number, design.group_size)
        yield task
