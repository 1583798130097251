"""What a trainer is fed: a row a group in the run's own order, and each rollout's place and seed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.policies.language_model.conversation import opening
from toolkit.tasks.pools import load_task
from toolkit.training.rows import POOL, groups_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.training.specification import Specification

    Example = dict[str, Any]


def examples(specification: Specification) -> list[Example]:
    """Return one example a group, step by step: the arms of one seed meet the same tasks in the same order.

    Seeds are text: a dataset's whole numbers end at 2^63.
    """
    return [
        {
            "prompt": opening(load_task(f"{POOL}:{group.task}").prompt),
            "step": step,
            "position": group.position,
            "task": group.task,
            "regime": group.regime,
            "schedule_seeds": [str(seed) for seed in group.schedule_seeds],
        }
        for step in range(1, specification.steps + 1)
        for group in groups_at(specification, step)
    ]


def placed(batch: Sequence[Example], group_size: int, first: int = 0) -> list[Example]:
    """Return a batch in which every rollout knows its group, its slot and its schedule seed.

    TRL repeats the row of a group for each of its rollouts, all of them in a row, and gives each process a
    contiguous part.

    Args:
        batch: one copy of its group's example for every rollout of this process.
        group_size: rollouts in a group, G.
        first: position of this process's first rollout among those of all processes.
    """
    found = []
    for at, example in enumerate(batch, start=first):
        group, slot = divmod(at, group_size)
        seed = int(example["schedule_seeds"][slot])
        found.append({**example, "group_index": group, "rollout_slot": slot, "schedule_seed": seed})
    return found


def check_groups(batch: Sequence[Example], group_size: int, step: int) -> None:
    """Refuse a batch that is not the whole groups of a step, in their order.

    Args:
        batch: the placed rollouts of all processes.
        group_size: rollouts in a group, G.
        step: the training step, from 1.

    Raises:
        DamagedError: the trainer put rollouts together in another way.
    """
    found = [(row["step"], row["position"]) for row in batch]
    expected = [(step, at // group_size) for at in range(len(batch))]
    if found != expected:
        wrong = next(at for at, (f, e) in enumerate(zip(found, expected, strict=True)) if f != e)
        raise DamagedError(
            "the trainer's batch is not the groups of its step",
            expected="step {}, position {}".format(*expected[wrong]),
            found="step {}, position {}".format(*found[wrong]),
            where=f"rollout {wrong} of step {step}",
        )
