"""The evidence of a probe: what every summary follows from, without any score vector.

Within a task, the inner products of all scores: any estimator on any regrouping has its second moment there.
Across tasks, the inner products of the tasks' mean gradients, by estimator and design: the pooled mean needs
them, and a task's own Gram matrix does not hold them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators.moments import GroupMoments
from toolkit.lab.probe.design import DESIGNS, Listed, RolloutSet
from toolkit.lab.probe.gram import blocks, gram
from toolkit.lab.probe.moments import ESTIMATORS, Progress, Steps, drift_rows, moments
from toolkit.registers.arrow import Row

Array = NDArray[np.float64]

ONE_BY_ONE = 1
"""Width of the blocks where every bit counts: each sum over coordinates then has one order."""


@dataclass(frozen=True)
class Scored:
    """The rollouts of a set, played and scored."""

    rewards: NDArray[np.float64]  # true outcome of each rollout, in {0, 1}, shape (T, N)
    # Scored coordinates → decisions and tokens of each rollout, shape (T, N)
    tokens: dict[str, NDArray[np.int64]]
    # Importance weight of each rollout, shape (T, N); 1 where sampled from the scored policy
    weights: NDArray[np.float64]
    scores: NDArray[np.float32]  # ∇ log π of each rollout in single precision, shape (T, N, P)


@dataclass(frozen=True)
class GramEvidence:
    """The evidence of one checkpoint under one noise."""

    noise: str  # `outcome` or `transition`
    rewards: Array  # reward of each rollout, shape (T, N)
    tokens: NDArray[np.int64]  # tokens of each rollout that the loss counts, shape (T, N)
    weights: Array  # importance weights, shape (T, N)
    gram: Array  # inner products of each task's scores, shape (T, N, N), in score²
    # Estimator → inner products of the tasks' mean gradients, shape (D, T, D, T): design, task
    products: dict[str, Array]
    # Rows of `probe_drift` without the checkpoint, which follow from the scores alone; none where
    # evidence is read back
    drifts: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        shape, designs = self.rewards.shape, len(DESIGNS[self.noise])
        shapes = [
            ("token counts", self.tokens, shape),
            ("importance weights", self.weights, shape),
            ("Gram matrices", self.gram, (*shape, shape[1])),
            *(("products of mean gradients", p, (designs, shape[0]) * 2) for p in self.products.values()),
        ]
        for what, array, expected in shapes:
            if array.shape != expected:
                problem = f"the evidence's {what} have another shape than its rewards ask for"
                raise DamagedError(problem, expected=expected, found=array.shape)
        named = {"rewards": self.rewards, "weights": self.weights, "gram": self.gram, **self.products}
        for name, values in named.items():
            if not np.isfinite(values).all():
                raise DamagedError(f"the evidence under {self.noise} noise is not finite", found=name)


def gather(
    noise: str,
    scored: Scored,
    parts: Mapping[str, slice],
    wanted: Sequence[str],
    *,
    flip_rate: float,
    groups: Listed | None,
    steps: Steps | None = None,
) -> dict[str, GramEvidence]:
    """Gather the evidence of a policy's rollouts."""
    check_groups(groups, *scored.rewards.shape)
    covered = sum(part.stop - part.start for part in parts.values())
    if covered != (size := scored.scores.shape[-1]):
        problem = "the coordinate sets are not those of the scores"
        raise UsageError(problem, expected=f"{size} coordinates", found=covered)
    tasks, rollouts = scored.rewards.shape
    matrix = np.zeros((tasks, rollouts, rollouts))
    # The coefficients of mean gradients follow from rewards and weights: any Gram matrix will do.
    by_design = moments(noise, scored.rewards, scored.weights, matrix, flip_rate=flip_rate, groups=groups)
    shape = (len(DESIGNS[noise]), tasks) * 2
    by_name: dict[str, GramEvidence] = {}
    products = {name: np.zeros((len(designs) * tasks,) * 2) for name, designs in by_design.items()}
    progress = None
    if steps is not None:
        progress = Progress(noise, scored.rewards, scored.weights, flip_rate=flip_rate, groups=groups)
    for name, part in parts.items():
        block = scored.scores[..., part]
        if block.shape[-1]:
            matrix = matrix + inner_products(block)
            means = {name: mean_gradients(block, designs) for name, designs in by_design.items()}
            for estimator, of_tasks in means.items():
                products[estimator] = products[estimator] + inner_products(of_tasks)
            if progress:
                progress.add(block, means)
        if name in wanted:
            by_name[name] = GramEvidence(
                noise,
                scored.rewards,
                scored.tokens[name],
                scored.weights,
                matrix,
                {estimator: product.reshape(shape) for estimator, product in products.items()},
                tuple(drift_rows(noise, progress.sums(), steps)) if progress and steps else (),
            )
    return by_name


def check_groups(groups: Listed | None, tasks: int, rollouts: int) -> None:
    """Refuse groups that draw on what was not played."""
    for design, by_task in (groups or {}).items():
        if set(by_task) != set(range(tasks)):
            problem = f"the {design} groups are not of the tasks that were played"
            raise IncompleteError(problem, expected=f"{tasks} tasks", found=f"{len(by_task)} tasks")
        largest = max(at for task in by_task.values() for group in task for at in group)
        if largest >= rollouts:
            raise IncompleteError(
                f"the {design} groups draw on rollouts that were not played: a schedule is missing",
                expected=f"{largest + 1} rollouts a task at least",
                found=rollouts,
                remedy="play every schedule of the probe's set",
            )


def mean_gradients(scores: NDArray[np.float32], designs: Mapping[str, GroupMoments]) -> Array:
    """Return the tasks' mean gradients, design by design, in double precision."""
    tasks, rollouts, size = scores.shape
    coefficients = np.stack([of_design.coefficients for of_design in designs.values()])
    means = np.zeros((len(coefficients), tasks, size))
    for at in range(rollouts):
        means += coefficients[:, :, at, None] * scores[None, :, at, :]
    return means.reshape(-1, size)


def inner_products(vectors: NDArray[np.float32] | Array) -> Array:
    """Return inner products, coordinate by coordinate: the same bits on every machine."""
    # What is taken together lies together in memory.
    by_coordinate: Array = np.ascontiguousarray(np.moveaxis(vectors, -1, 0))
    vectors = np.moveaxis(by_coordinate, 0, -1)
    return gram(blocks(vectors, ONE_BY_ONE))


class Place(NamedTuple):
    """What a row of evidence belongs to."""

    trajectory: str  # the run, or `base` for the untrained policy
    step: int  # step of the checkpoint
    scored: str  # the coordinates

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
    """Return the evidence of one checkpoint, what was scored, and noise."""
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
            problem = "a row of evidence is of another pool or regime than the probe's set"
            expected = f"{rollouts.pool}, {rollouts.regime}"
            found = f"{row['pool']}, {row['regime']}"
            raise DamagedError(problem, expected=expected, found=found, where="probe_gram")
    first, second = np.triu_indices(size)
    gram, values = np.zeros((tasks, size, size)), _table(rows, "gram", len(first))
    gram[:, first, second] = gram[:, second, first] = values
    designs, lengths = len(DESIGNS[rollouts.noise]), np.arange(1, tasks + 1)
    task, other = np.tril_indices(tasks)
    products = {}
    for name in ESTIMATORS:
        pairs = _numbers(rows, _column(name), lengths * designs**2).reshape(-1, designs, designs)
        by_tasks = np.zeros((tasks, tasks, designs, designs))
        by_tasks[task, other] = pairs
        by_tasks[other, task] = pairs.transpose(0, 2, 1)
        products[name] = np.ascontiguousarray(by_tasks.transpose(2, 0, 3, 1))
    rewards, tokens, weights = (_table(rows, name, size) for name in ("rewards", "tokens", "weights"))
    return GramEvidence(rollouts.noise, rewards, tokens.astype(int), weights, gram, products)


def _table(rows: Sequence[Mapping[str, object]], column: str, width: int) -> Array:
    return _numbers(rows, column, np.full(len(rows), width)).reshape(-1, width)


def _numbers(rows: Sequence[Mapping[str, object]], column: str, expected: NDArray[np.int64]) -> Array:
    """Return a column's lists, one after the other."""
    lists = [np.asarray(row[column], dtype=float) for row in rows]
    for row, values, length in zip(rows, lists, expected.tolist(), strict=True):
        if values.shape != (length,):
            raise DamagedError(
                f"probe_gram.{column} has another length than the probe's sets give",
                expected=f"{length} values",
                found=f"{len(values)} values",
                where=f"probe_gram row {row['trajectory']}@{row['step']}, {row['scored']}, {row['noise']}, "
                f"task {row['task']}",
            )
    return np.concatenate(lists)


def _column(estimator: str) -> str:
    return f"products_{estimator.lower()}"
