"""A small probe of a log-linear policy, played once: what the tests of the probe share."""

import copy
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe.checkpoint import evidence_rows, measure, play_and_score
from toolkit.lab.probe.design import (
    ACTIONS,
    ALL,
    OUTCOME,
    TRANSITION,
    Design,
    Groups,
    RolloutSet,
    index_rows,
    read_groups,
)
from toolkit.lab.probe.evidence import GramEvidence, Place, Scored
from toolkit.lab.probe.figures import Identity, estimate, figure_rows, tied
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import evaluation_seed, sample_seed

SURFACE_TOKENS = 3
SAMPLING, STEP = 7, 7
"""At this step one clean group succeeds as a whole, and the others are mixed."""
CLEAN = RolloutSet(OUTCOME, "validation", "clean", 5, 1, 4)
FAULTY = RolloutSet(TRANSITION, "diagnostic", "faults_p025", 3, 4, 4)
DESIGN = Design(
    root="small",
    scored=(ALL, ACTIONS),
    outcome=CLEAN,
    transition=FAULTY,
    flip_rate=0.1,
    groups=6,
    rollouts_per_step=96,
    level=0.95,
    resamples=200,
    rng_seed=13,
)


def parameters() -> tuple[float, ...]:
    """Return parameters at which neither actions nor surface tokens are equally likely."""
    start = np.array(untrained(SURFACE_TOKENS))
    return tuple((start + 0.3 * np.random.default_rng(1).standard_normal(len(start))).tolist())


def policy() -> Policy:
    return Policy(parameters(), SURFACE_TOKENS)


@cache
def groups() -> Mapping[str, Mapping[int, Groups]]:
    return read_groups(index_rows(DESIGN), FAULTY)


@cache
def scored(noise: str) -> Scored:
    """Return a set as it is played and scored."""
    (rollouts,) = (one for one in DESIGN.sets if one.noise == noise)
    return play_and_score(policy(), rollouts, SAMPLING, STEP)


@cache
def _measured() -> dict[str, dict[str, GramEvidence]]:
    return measure(policy(), ("base", STEP), SAMPLING, DESIGN, groups())


def measured(name: str = ALL) -> dict[str, GramEvidence]:
    """Return the evidence by noise, to be changed as a test likes."""
    return copy.deepcopy(_measured()[name])


def place(name: str = ALL) -> Place:
    return Place("base", STEP, name)


def gram_rows(name: str = ALL) -> list[Row]:
    return copy.deepcopy(evidence_rows(place(name), _measured()[name], DESIGN))


def derived(evidence: Mapping[str, GramEvidence]) -> tuple[dict[str, list[Row]], tuple[Identity, ...]]:
    estimated = estimate(evidence, DESIGN, groups())
    return figure_rows(place(), estimated, DESIGN), tied(estimated, DESIGN)


def replayed(rollouts: RolloutSet) -> Iterator[tuple[tuple[int, int], Rollout, bool]]:
    """Play a set from its seeds: (task, rollout), what was chosen, whether it succeeded."""
    for number in range(rollouts.tasks):
        task = load_task(f"{rollouts.pool}:{number}")
        for at in range(rollouts.rollouts):
            schedule, sample = divmod(at, rollouts.per_schedule)
            seed = sample_seed(SAMPLING, STEP, f"probe/{rollouts.noise}", (task.task_id, schedule, sample))
            rollout = Rollout(policy(), seed)
            episode = play(task, REGIMES[rollouts.regime], evaluation_seed(task.task_id, schedule), rollout)
            yield (number, at), rollout, episode.true_success
