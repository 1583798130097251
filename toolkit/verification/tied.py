"""What rows of a study say twice: hashes of checkpoints, and advantages beside the rewards behind them."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import numbers
from toolkit.registers.study import Study
from toolkit.specification import Specification

NEAR = 1e-4
"""Advantages of a language model are single-precision numbers of its trainer's."""


def check_tied(study: Study, specifications: Mapping[str, Specification]) -> None:
    """Check what rows say twice.

    1. A checkpoint or an adapter has the hash that its row names.
    2. The advantages of a group are what its observed rewards give.
    """
    from toolkit.lab.training.checkpoint import adapter_sha256, checkpoint_sha256

    for table, digest in (("checkpoints", checkpoint_sha256), ("adapters", adapter_sha256)):  # 1
        for row in study.rows(table) if study.has(table) else ():
            if row["run_id"] in specifications:
                at = f"{table} row run_id={row['run_id']}, step={row['step']}"
                _same("a checkpoint is not the one that was written", row["sha256"], digest(row), at)
    for run, groups in _groups(study) if specifications else ():  # 2
        if run in specifications:
            _check_advantages(run, groups, scaled=specifications[run].scale_rewards == "group")


def _groups(study: Study) -> Iterator[tuple[str, Any]]:
    """Yield the training groups of each run."""
    if not study.has("groups"):
        return
    table = study.columns("groups", ("run_id", "step", "position", "observed_rewards", "advantages"))
    start, names = 0, [*table["run_id"].to_pylist(), None]
    for at in range(1, len(names)):
        if names[at] != names[start]:
            yield names[start], table.slice(start, at - start)
            start = at


def _check_advantages(run: str, groups: Any, *, scaled: bool) -> None:
    import numpy as np

    from toolkit.estimators.advantages import mean_centred, standardized

    lists = {name: groups[name].combine_chunks() for name in ("observed_rewards", "advantages")}
    if any(len(set(np.diff(numbers(values.offsets)).tolist())) != 1 for values in lists.values()):
        return  # counting the groups says what is wrong with these
    rewards, advantages = (
        numbers(values.flatten()).reshape(len(groups), -1).astype(float) for values in lists.values()
    )
    given = (standardized if scaled else mean_centred)(rewards)
    differing = np.flatnonzero((np.abs(given - advantages) > NEAR * (1 + np.abs(given))).any(axis=1))
    if len(differing):
        at = int(differing[0])
        _same(
            "the advantages of a group are not what its rewards give",
            given[at].tolist(),
            advantages[at].tolist(),
            f"groups row run_id={run}, step={groups['step'][at]}, position={groups['position'][at]}",
        )


def _same(subject: str, expected: object, found: object, where: str) -> None:
    if expected != found:
        remedy = "restore the file, or rebuild the registers from the runs"
        raise DamagedError(subject, expected=expected, found=found, where=where, remedy=remedy)
