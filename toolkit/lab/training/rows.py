"""Which groups a training step plays: tasks, noise and schedule seeds, before any of them is played."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from toolkit.lab.tasks.pools import positions
from toolkit.lab.worlds.published.office import group_at
from toolkit.noise.draws import Design, group_seeds
from toolkit.seeds import Stream, order_seed, row_seed, run_seed
from toolkit.specification import Specification

POOL = "train"
QUIET = "clean"
RESAMPLED = "resampled"
MOST_DRAWS = 10
"""Groups that a step draws at most where constant ones are resampled, in multiples of its number of groups.

Source:
    `max_num_gen_batches` of DAPO's recipe (Yu et al. 2025): ten batches, each of a step's size.
"""
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
    """One group of a step."""

    position: int  # place of the group in its step
    task: int  # position of the task in the training pool
    regime: str  # the noise
    schedule_seeds: tuple[int, ...]  # schedule seed of each rollout


def groups_at(specification: Specification, step: int) -> tuple[GroupPlan, ...]:
    """Return the groups of a step, from 1; where constant ones are resampled, those that are drawn first."""
    return tuple(islice(draws_at(specification, step), specification.prompts_per_step))


def draws_at(specification: Specification, step: int) -> Iterator[GroupPlan]:
    """Yield the groups that a step may play, in order; more than it needs where constant ones go."""
    run = run_seed(specification.root, specification.seed)
    doubled = specification.arm in BLOCKING
    tasks = specification.prompts_per_step // 2 if doubled else specification.prompts_per_step
    most = tasks * MOST_DRAWS if specification.constant_groups == RESAMPLED else tasks
    design, size = DESIGN_OF[specification.arm], specification.group_size
    position = 0
    for row in range(most):
        number = (step - 1) * tasks + row
        if row >= tasks:
            number = specification.steps * tasks + (step - 1) * (most - tasks) + row - tasks
        quiet: list[tuple[str, Design]] = [(QUIET, "independent")] * doubled
        for regime, drawn in (*quiet, (specification.regime, design)):
            if specification.has_published_schedules:
                task, seeds = group_at(specification, step, position, number, drawn)
            else:
                task = _task_at(run, number, specification)
                seeds = group_seeds(drawn, row_seed(run, step, row), size)
            yield GroupPlan(position, task, regime, seeds)
            position += 1


def _task_at(run: int, number: int, specification: Specification) -> int:
    """Return the number-th task that a run meets: all its tasks in random order, then all in another."""
    meant = positions(POOL, specification.sub_requests, specification.world)
    epoch, at = divmod(number, len(meant))
    return _order(run, epoch, meant)[at]


@lru_cache(maxsize=64)
def _order(run: int, epoch: int, meant: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(Stream(order_seed(run, epoch)).shuffled(meant))
