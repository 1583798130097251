"""The groups of a step: what a trainer is fed, and the rows that its own batch leaves.

A trainer is fed a row a group in the run's own order, and each rollout's place and seed in it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from toolkit.errors import DamagedError
from toolkit.lab.policies.language_model.conversation import opening
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.language_model.environment import BackOffice
from toolkit.lab.training.rows import POOL, groups_at
from toolkit.registers.arrow import Row
from toolkit.specification import Specification

Example = dict[str, Any]
Record = Callable[[list[Row]], None]
"""Is given the rows of a step's groups."""


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
    """
    rows = []
    for at, example in enumerate(batch, start=first):
        group, slot = divmod(at, group_size)
        seed = int(example["schedule_seeds"][slot])
        rows.append({**example, "group_index": group, "rollout_slot": slot, "schedule_seed": seed})
    return rows


def check_groups(batch: Sequence[Example], group_size: int, step: int) -> None:
    """Refuse a batch that is not the whole groups of a step, in their order."""
    groups = [(row["step"], row["position"]) for row in batch]
    expected = [(step, at // group_size) for at in range(len(batch))]
    if groups != expected:
        wrong = next(at for at, (f, e) in enumerate(zip(groups, expected, strict=True)) if f != e)
        raise DamagedError(
            "the trainer's batch is not the groups of its step",
            expected="step {}, position {}".format(*expected[wrong]),
            found="step {}, position {}".format(*groups[wrong]),
            where=f"rollout {wrong} of step {step}",
        )


class Rollout(NamedTuple):
    """What became of one rollout of a batch."""

    step: int  # step, position, task, regime: its group
    position: int
    task: int
    regime: str
    slot: int  # its slot in the group
    schedule_seed: int  # seed of the schedule that its environment had
    true_success: bool  # true_success, observed_reward: its outcome, and the reward that the grader reported
    observed_reward: bool
    exposed: bool  # whether it met a fault
    advantage: float  # as the trainer computed it
    tokens: int  # tokens that the loss counts
    weight: float | None  # importance weight; None where the trainer computes none

    @classmethod
    def of(
        cls,
        row: Mapping[str, Any],
        environment: BackOffice,
        advantage: float,
        tokens: int,
        weight: float | None,
    ) -> Self:
        """Return a rollout as its environment saw it."""
        episode = environment._graded()  # noqa: SLF001 - public methods are tools
        expected = (row["group_index"], row["rollout_slot"], row["schedule_seed"])
        met = (*(environment.place or (-1, -1)), episode.schedule.seed)
        if met != expected:
            raise DamagedError(
                "a rollout was not played in its own environment",
                expected="group {}, slot {}, schedule seed {}".format(*expected),
                found="group {}, slot {}, schedule seed {}".format(*met),
                where=f"step {row['step']}",
            )
        return cls(
            **{name: row[name] for name in ("step", "position", "task", "regime")},
            slot=row["rollout_slot"],
            schedule_seed=episode.schedule.seed,
            true_success=episode.true_success,
            observed_reward=bool(episode.observed_reward),
            exposed=bool(episode.exposures),
            advantage=advantage,
            tokens=tokens,
            weight=weight,
        )


def group_rows(rollouts: Sequence[Rollout], size: int) -> list[Row]:
    """Return a batch's rows of `groups`, without the run's name."""
    rows = []
    for first in range(0, len(rollouts), size):
        group = rollouts[first : first + size]
        rewards = [rollout.observed_reward for rollout in group]
        varied = len(set(rewards)) > 1
        weights = {"importance_weights": [rollout.weight for rollout in group]}
        rows.append(
            {
                **{name: getattr(group[0], name) for name in ("step", "position", "task", "regime")},
                "schedule_seeds": [rollout.schedule_seed for rollout in group],
                "true_successes": [rollout.true_success for rollout in group],
                "observed_rewards": rewards,
                "advantages": [rollout.advantage for rollout in group],
                "exposed": sum(rollout.exposed for rollout in group),
                "zero_variance": not varied,
                "spurious": varied and all(rollout.true_success for rollout in group),
                "tokens": [rollout.tokens for rollout in group],
                **(weights if group[0].weight is not None else {}),
            }
        )
    return rows
