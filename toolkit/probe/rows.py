"""Evidence as rows of a register, and back."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError
from toolkit.probe.design import DESIGNS, RolloutSet
from toolkit.probe.evidence import GramEvidence
from toolkit.probe.moments import ESTIMATORS
from toolkit.registers.arrow import Row


class Place(NamedTuple):
    """What a row of evidence belongs to.

    Args:
        trajectory: the run, or `base` for the untrained policy.
        step: step of the checkpoint.
        scored: the coordinates.
    """

    trajectory: str
    step: int
    scored: str

    def __str__(self) -> str:
        return f"{self.trajectory}@{self.step}, {self.scored}"


def gram_rows(place: Place, rollouts: RolloutSet, evidence: GramEvidence) -> list[Row]:
    """Return evidence as rows of `probe_gram`: one a task, in the order of the set."""
    upper = np.triu_indices(evidence.rewards.shape[1])
    return [
        {
            **place._asdict(),
            "noise": evidence.noise,
            "pool": rollouts.pool,
            "regime": rollouts.regime,
            "task": task,
            "rewards": [bool(reward) for reward in evidence.rewards[task]],
            "tokens": evidence.tokens[task].tolist(),
            "weights": evidence.weights[task].tolist(),
            "gram": evidence.gram[task][upper].tolist(),
            **{
                _column(estimator): products[:, task, :, : task + 1].transpose(2, 0, 1).ravel().tolist()
                for estimator, products in evidence.products.items()
            },
        }
        for task in range(len(evidence.rewards))
    ]


def read_evidence(rows: Sequence[Mapping[str, object]], rollouts: RolloutSet) -> GramEvidence:
    """Return the evidence of one checkpoint, what was scored, and noise.

    Args:
        rows: its rows of `probe_gram`, by task.
        rollouts: the set that they belong to.

    Raises:
        IncompleteError: a task of the set has no row.
        DamagedError: a row holds another number of rollouts or products than the set.
    """
    tasks, size = len(rows), rollouts.rollouts
    if [row["task"] for row in rows] != list(range(rollouts.tasks)):
        raise IncompleteError(
            f"the evidence under {rollouts.noise} noise lacks a task",
            expected=f"tasks 0 to {rollouts.tasks - 1}",
            found=f"{tasks} rows",
            where="probe_gram",
            remedy="measure again: toolkit probe run",
        )
    for row in rows:
        if (row["pool"], row["regime"]) != (rollouts.pool, rollouts.regime):
            raise DamagedError(
                "a row of evidence is of another pool or regime than the probe's set",
                expected=f"{rollouts.pool}, {rollouts.regime}",
                found=f"{row['pool']}, {row['regime']}",
                where="probe_gram",
            )
    upper, designs = np.triu_indices(size), len(DESIGNS[rollouts.noise])
    gram = np.zeros((tasks, size, size))
    products = {name: np.zeros((designs, tasks, designs, tasks)) for name in ESTIMATORS}
    for task, row in enumerate(rows):
        gram[task][upper] = _numbers(row, "gram", len(upper[0]))
        gram[task].T[upper] = gram[task][upper]
        for name, matrix in products.items():
            values = _numbers(row, _column(name), (task + 1) * designs**2)
            block = values.reshape(task + 1, designs, designs).transpose(1, 2, 0)
            matrix[:, task, :, : task + 1] = block
            matrix[:, : task + 1, :, task] = block.transpose(1, 2, 0)
    columns = ("rewards", "tokens", "weights")
    rewards, tokens, weights = (np.array([_numbers(row, name, size) for row in rows]) for name in columns)
    return GramEvidence(rollouts.noise, rewards, tokens.astype(int), weights, gram, products)


def _numbers(row: Mapping[str, object], column: str, expected: int) -> NDArray[np.float64]:
    values = np.asarray(row[column], dtype=float)
    if values.shape != (expected,):
        raise DamagedError(
            f"probe_gram.{column} has another length than the probe's sets give",
            expected=f"{expected} values",
            found=f"{len(values)} values",
            where=f"probe_gram row {row['trajectory']}@{row['step']}, {row['scored']}, {row['noise']}, "
            f"task {row['task']}",
        )
    return values


def _column(estimator: str) -> str:
    return f"products_{estimator.lower()}"
