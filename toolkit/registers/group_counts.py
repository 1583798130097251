"""A run's training groups counted, as `groups_summary` says it."""

from math import fsum
from typing import Any

import numpy as np

from toolkit.errors import DamagedError
from toolkit.registers.arrow import numbers
from toolkit.registers.row_tables import GROUPS

COUNTED = (
    *("step", "position", "schedule_seeds", "true_successes", "observed_rewards", "advantages"),
    *("zero_variance", "spurious"),
)
"""Columns of `groups` that are counted."""

_LISTS = ("schedule_seeds", "true_successes", "observed_rewards", "advantages")


def count_groups(run: str, groups: Any) -> dict[str, Any]:
    """Count the training groups of a run.

    1. No value is absent, every row is the run's, and a group has as many of each thing as rollouts.
    2. What a row says of its group, that it has no variance or a spurious one, is what its rewards give.
    3. The groups are counted.
    """
    where = f"{GROUPS.name}/{run}.parquet"
    absent = [name for name in groups.column_names if groups[name].null_count]
    strangers = sorted(set(groups["run_id"].unique().to_pylist()) - {run})
    if absent or strangers or not groups.num_rows:  # 1
        raise DamagedError(
            "a file of training groups is not its run's",
            expected=f"groups of {run}, without an absent value",
            found=", ".join(strangers or absent) or "no row",
            where=where,
        )
    starts, lists = _lists(groups, where)
    truths, rewards = lists["true_successes"], lists["observed_rewards"]
    all_correct = np.logical_and.reduceat(truths, starts)
    varies = np.logical_or.reduceat(rewards, starts) & ~np.logical_and.reduceat(rewards, starts)
    spurious = all_correct & varies
    for name, derived in {"zero_variance": ~varies, "spurious": spurious}.items():  # 2
        differing = np.flatnonzero(numbers(groups[name]) != derived)
        if len(differing):
            at = int(differing[0])
            raise DamagedError(
                f"{GROUPS.name}.{name} is not what the group's rewards give",
                expected=bool(derived[at]),
                found=groups[name][at].as_py(),
                where=f"{where}: step {groups['step'][at]}, position {groups['position'][at]}",
            )
    seeds = lists["schedule_seeds"]
    sharing = int((np.minimum.reduceat(seeds, starts) == np.maximum.reduceat(seeds, starts)).sum())
    largest = np.maximum.reduceat(np.abs(lists["advantages"]), starts)
    return {  # 3
        "groups": len(starts),
        "all_correct": int(all_correct.sum()),
        "spurious": int(spurious.sum()),
        "zero_variance": int((~varies).sum()),
        "mean_max_abs_advantage": fsum(largest.tolist()) / len(starts),
        "sharing_one_seed": sharing,
        "several_seeds": len(starts) - sharing,
    }


def _lists(groups: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """Return where each group begins in the columns of lists, and these, one rollout after the other."""
    offsets, flat = {}, {}
    for name in _LISTS:
        column = groups[name].combine_chunks()
        sizes = np.diff(numbers(column.offsets))
        offsets[name] = np.concatenate([[0], np.cumsum(sizes)])
        flat[name] = numbers(column.flatten())
    rollouts = offsets["observed_rewards"]
    if (
        any(not np.array_equal(other, rollouts) for other in offsets.values())
        or (np.diff(rollouts) < 1).any()
    ):
        raise DamagedError(
            "a training group does not say as much of each of its rollouts",
            expected=f"lists of one length in {', '.join(_LISTS)}",
            where=where,
        )
    return rollouts[:-1], flat
