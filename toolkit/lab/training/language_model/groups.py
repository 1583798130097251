"""The groups of a step: what a trainer is fed, and the rows that its own batch leaves.

A trainer is fed a row a group in the run's own order, and each rollout's place and seed in it.
"""

import math
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
GROUP = ("step", "position", "task", "regime")
Record = Callable[[list[Row]], None]
"""Is given the rows of a step's groups."""


def examples(specification: Specification) -> list[Example]:
    """Return one example a group: the arms of a seed meet the same tasks in order; seeds are text."""
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
    """Return a batch in which every rollout knows its group, its slot and its schedule seed."""
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
        cls, row: Example, environment: BackOffice, advantage: float, tokens: int, weight: float | None
    ) -> Self:
        """Return a rollout as its environment saw it."""
        episode = environment._graded()  # noqa: SLF001 - public methods are tools
        expected = (row["group_index"], row["rollout_slot"], row["schedule_seed"])
        met = (*(environment.place or (-1, -1)), episode.schedule.seed)
        if met != expected:
            places = ("group {}, slot {}, schedule seed {}".format(*each) for each in (expected, met))
            problem, where = "a rollout was not played in its own environment", f"step {row['step']}"
            raise DamagedError(problem, expected=next(places), found=next(places), where=where)
        own = [row[name] for name in (*GROUP, "rollout_slot")]
        outcome = (episode.true_success, bool(episode.observed_reward), bool(episode.exposures))
        return cls._make((*own, episode.schedule.seed, *outcome, advantage, tokens, weight))


def group_rows(rollouts: Sequence[Rollout], size: int) -> list[Row]:
    """Return a batch's rows of `groups`, without the run's name."""
    rows = []
    for first in range(0, len(rollouts), size):
        group = rollouts[first : first + size]
        of = {name: [getattr(rollout, name) for rollout in group] for name in Rollout._fields}
        varied = len(set(of["observed_reward"])) > 1
        row = {name: of[name][0] for name in GROUP} | {
            "schedule_seeds": of["schedule_seed"],
            "true_successes": of["true_success"],
            "observed_rewards": of["observed_reward"],
            "advantages": of["advantage"],
            "exposed": sum(of["exposed"]),
            "zero_variance": not varied,
            "spurious": varied and all(of["true_success"]),
            "tokens": of["tokens"],
        }
        rows.append(row if of["weight"][0] is None else row | {"importance_weights": of["weight"]})
    return rows


STEP_TIME = "step_time"
GENERATION_TIME = "generation_time"
"""Added by `GroupTrainer`: TRL has no such figure."""

_ALWAYS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "clipped": "clip_ratio/region_mean",
    "entropy": "entropy",
}
_OF_TWO_ENGINES = {
    f"importance_weight_{which}": f"sampling/importance_sampling_ratio/{which}"
    for which in ("mean", "min", "max")
}


def step_figures(logs: Mapping[str, float]) -> dict[str, float | None]:
    """Return a step's columns of `steps`; importance weights only where there are any."""
    names = _ALWAYS | {column: name for column, name in _OF_TWO_ENGINES.items() if name in logs}
    return {column: _finite(logs.get(name)) for column, name in names.items()}


def step_seconds(logs: Mapping[str, float]) -> tuple[float, float]:
    """Return how long a step took, and how much of that went to playing its rollouts."""
    return round(logs[STEP_TIME], 3), round(logs[GENERATION_TIME], 3)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
