"""Which groups a training step plays: tasks, noise and schedule seeds, before any of them is played.

Source:
    Paper app:env, "Event keys and schedules"; the registered protocol for blocking.
"""

from functools import lru_cache
from typing import NamedTuple

from toolkit.noise.draws import Design, group_seeds
from toolkit.seeds import Stream, order_seed, row_seed, run_seed
from toolkit.tasks.pools import POOLS
from toolkit.training.specification import Specification

POOL = "train"
QUIET = "clean"
# Which design an arm's noisy groups have; without noise the schedules do not matter.
DESIGN_OF: dict[str, Design] = {
    "clean": "independent",
    "paired": "paired",
    "independent": "independent",
    "blocking": "independent",
    "blocking_paired": "paired",
}
BLOCKING = frozenset({"blocking", "blocking_paired"})


class GroupPlan(NamedTuple):
    """One group of a step.

    Args:
        position: place of the group in its step.
        task: position of the task in the training pool.
        regime: the noise.
        schedule_seeds: schedule seed of each rollout.
    """

    position: int
    task: int
    regime: str
    schedule_seeds: tuple[int, ...]


def groups_at(specification: Specification, step: int) -> tuple[GroupPlan, ...]:
    """Return the groups of a step, from 1.

    Under blocking every task of a step has two groups, a clean one and a noisy one; there are half as many
    tasks, so that the rollout budget is the same.
    """
    run = run_seed(specification.root, specification.seed)
    doubled = specification.arm in BLOCKING
    tasks = specification.prompts_per_step // 2 if doubled else specification.prompts_per_step
    design, size = DESIGN_OF[specification.arm], specification.group_size
    groups: list[GroupPlan] = []
    for row in range(tasks):
        task = _task_at(run, (step - 1) * tasks + row)
        seed = row_seed(run, step, row)
        if doubled:
            groups.append(GroupPlan(len(groups), task, QUIET, group_seeds("independent", seed, size)))
        groups.append(GroupPlan(len(groups), task, specification.regime, group_seeds(design, seed, size)))
    return tuple(groups)


def _task_at(run: int, number: int) -> int:
    """Return the number-th task that a run meets: all tasks in random order, then all in another."""
    epoch, at = divmod(number, POOLS[POOL].size)
    return _order(run, epoch)[at]


@lru_cache(maxsize=64)
def _order(run: int, epoch: int) -> tuple[int, ...]:
    return tuple(Stream(order_seed(run, epoch)).shuffled(range(POOLS[POOL].size)))
