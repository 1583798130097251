"""A run as a chain of segments: what is played between two checkpoints, and the rows that it leaves.

A segment ends at a checkpoint. The first one ends at step 0: nothing is trained, the untrained policy is
evaluated. Each further segment starts from the checkpoint before it and from nothing else, so that a run that
was cut off goes on from its newest checkpoint and leaves the same bytes.
"""

from __future__ import annotations

import gc
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from toolkit.evaluation.diagnostic import diagnose, regime_diagnosed
from toolkit.evaluation.play import evaluate
from toolkit.evaluation.sets import sets_at
from toolkit.policies.loglinear import Policy, layout, untrained
from toolkit.seeds import sampling_seed
from toolkit.study.new.task_pools import specified
from toolkit.training.adam import start
from toolkit.training.checkpoint import checkpoint_row, read_checkpoint
from toolkit.training.grpo import train_step

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row
    from toolkit.training.adam import Weights
    from toolkit.training.specification import Specification

CYCLES = 50_000

Segment: TypeAlias = "dict[str, list[Row]]"
"""Table → rows: `groups`, `episodes`, `luck_share` and one row of `checkpoints`."""


def ends(specification: Specification) -> tuple[int, ...]:
    """Return the steps at which a run's segments end: 0 and every checkpoint."""
    return tuple(range(0, specification.steps + 1, specification.checkpoint_every))


def play_segment(specification: Specification, end: int, before: Row | None) -> Segment:
    """Play one segment.

    1. Take up the weights of the checkpoint before.
    2. Train up to the segment's end; diagnose the luck share at the steps that are registered for it.
    3. Evaluate the policy at the end, on the final sets too where training ends.

    Args:
        specification: the run.
        end: step at which the segment ends.
        before: row of `checkpoints` at the end of the segment before; None for the first segment.

    Returns:
        The segment's rows.

    Raises:
        VerificationError: a pool is not the one that the run was specified for.
        DamagedError: the checkpoint belongs to another run, or is damaged.
    """
    make_tasks(tuple(sorted(specification.pools.items())))
    weights = _taken_up(specification, before)  # 1
    segment: Segment = {"groups": [], "episodes": [], "luck_share": [], "checkpoints": []}
    while weights.step < end:  # 2
        weights, groups = train_step(specification, weights)
        segment["groups"] += groups
        segment["luck_share"] += _diagnosed(specification, weights)
    if before is None:
        segment["luck_share"] += _diagnosed(specification, weights)
    segment["episodes"] = _evaluated(specification, weights)  # 3
    segment["checkpoints"] = [checkpoint_row(specification.run_id, weights)]
    return segment


@lru_cache
def make_tasks(pools: tuple[tuple[str, str], ...]) -> None:
    """Make the tasks of a run's pools, once a process, and check that they are the specified ones."""
    for name, sha256 in pools:
        specified(name, sha256)
    # The tasks stay for good, and episodes leave few cycles: a collector at its usual pace takes a third of
    # the time, and frees next to nothing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(CYCLES)


def _taken_up(specification: Specification, before: Row | None) -> Weights:
    if before is None:
        return start(untrained(specification.surface_tokens))
    return read_checkpoint(before, specification.run_id, layout(specification.surface_tokens).size)


def _sampling(specification: Specification) -> int:
    return sampling_seed(specification.root, specification.run_id, specification.seed)


def _diagnosed(specification: Specification, weights: Weights) -> list[Row]:
    if weights.step not in specification.diagnosed:
        return []
    policy = Policy(weights.parameters, specification.surface_tokens)
    regime = regime_diagnosed(specification.regime)
    return diagnose(policy, regime, specification.run_id, weights.step, _sampling(specification))


def _evaluated(specification: Specification, weights: Weights) -> list[Row]:
    policy = Policy(weights.parameters, specification.surface_tokens)
    is_last = weights.step == specification.steps
    sets = sets_at(specification.battery, specification.at_noise, is_last=is_last)
    sampling = _sampling(specification)
    return [
        row
        for evaluation in sets
        for row in evaluate(policy, evaluation, specification.run_id, weights.step, sampling)
    ]
