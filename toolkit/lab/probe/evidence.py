"""The evidence of a probe: what every summary follows from, without any score vector."""

import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators.coordinates import TaskSums
from toolkit.estimators.moments import GroupMoments
from toolkit.lab.probe.design import COMPARED, DESIGNS, OUTCOME, Listed, RolloutSet, Steps
from toolkit.lab.probe.moments import ESTIMATORS, Progress, drift_rows, forms, moments
from toolkit.lab.probe.recorded import check_rewards, check_weights
from toolkit.registers.arrow import Row

Array: TypeAlias = NDArray[np.float64]
Block: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

# Entries of a block in double precision: 2 MB, which a processor's caches hold beside the block itself.
BLOCK_ENTRIES = 2**18
# Many vectors: an N × N product is mirrored and added once a block, which more coordinates are to pay for.
SMALLEST_WIDTH = 4096
# Entries between the rows of a block: a cache line, so that rows a power of two long do not share cache sets.
GAP = 8
FLOATS = ("float32", "float64")
MISMATCHED = "mismatched coordinate sets"


def default_width(rows: int) -> int:
    """Number of coordinates in a block that suits the caches."""
    return max(SMALLEST_WIDTH, BLOCK_ENTRIES // max(rows, 1))


def blocks(scores: Block, width: int | None = None) -> Iterator[Block]:
    """Cut score vectors into blocks of coordinates. Nothing is copied."""
    if scores.ndim < 2:  # noqa: PLR2004 - vectors and coordinates
        raise UsageError("score vectors have two axes or more", expected="(..., N, P)", found=scores.shape)
    wide = default_width(math.prod(scores.shape[:-1])) if width is None else width
    if wide < 1:
        raise UsageError("a block has at least one coordinate", expected="a width >= 1", found=wide)
    for start in range(0, scores.shape[-1], wide):
        yield scores[..., start : start + wide]


def gram(blocks: Iterable[Block], *, count: int | None = None) -> Array:
    """Inner products of score vectors with one another: the sum over blocks of block × blockᵀ."""
    total = _accumulate(blocks, count)
    # Whatever product the BLAS chose, both triangles are the lower one.
    lower = np.tril(total)
    lower += np.tril(total, -1).swapaxes(-1, -2)
    return lower


def _accumulate(blocks: Iterable[Block], count: int | None) -> Array:
    """Add the products of each block, in order, in memory that all of them share."""
    shape: tuple[int, ...] | None = None
    total, done = np.zeros(0), 0
    for number, block in enumerate(blocks):
        if not isinstance(block, np.ndarray) or block.ndim < 2 or block.dtype not in FLOATS or not block.size:  # noqa: PLR2004
            given = f"{block.dtype}, {block.shape}" if isinstance(block, np.ndarray) else type(block).__name__
            expected = f"an array (..., N, b) of {' or '.join(FLOATS)}, not empty"
            raise UsageError("not a block of scores", expected=expected, found=given, where=f"block {number}")
        size = block.shape[:-1]
        if shape is None:
            shape, width = size, default_width(math.prod(size))
            product = np.empty((*shape, shape[-1]))
            total = np.zeros_like(product)
            converted = np.empty((*shape, width + GAP))
        elif size != shape:
            raise DamagedError(
                MISMATCHED,
                expected=f"the vectors of the first block, {shape}",
                found=size,
                where=f"block {number}",
            )
        for begin in range(0, block.shape[-1], width):
            part = block[..., begin : begin + width]
            doubles = converted[..., : part.shape[-1]]
            np.copyto(doubles, part)
            _multiply(doubles, product, done + begin)
            total += product
        done += block.shape[-1]
    if shape is None:
        raise UsageError("no block of scores", expected="at least one block", found="none")
    if count not in {None, done}:
        raise DamagedError(MISMATCHED, expected=f"{count} coordinates", found=f"{done} in all blocks")
    return total


def _multiply(block: Array, product: Array, start: int) -> None:
    """Multiply a block, whose first coordinate is `start`, with itself."""
    with np.errstate(all="ignore"):
        # Of one coordinate every entry is one product, which no BLAS makes faster.
        multiply = np.multiply if block.shape[-1] == 1 else np.matmul
        multiply(block, block.swapaxes(-1, -2), out=product)
    # A sum of squares is finite where all entries are: one number a vector says it.
    if np.isfinite(np.einsum("...ii->...i", product)).all():
        return
    bad = np.argwhere(~np.isfinite(block))
    # Where all are finite, one is too large; the largest is named.
    where = bad[0] if len(bad) else np.unravel_index(np.abs(block).argmax(), block.shape)
    *row, column = (int(index) for index in where)
    raise DamagedError(
        "a score is not finite" if len(bad) else "a score is too large to be squared",
        expected="finite scores, with finite sums of squares",
        found=float(block[(*row, column)]),
        where=f"row {', '.join(map(str, row))}, coordinate {start + column}",
    )


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


Single: TypeAlias = NDArray[np.float32]
Kind: TypeAlias = tuple[str, tuple[int, ...]]


@contextmanager
def spooled(
    folder: Path,
    noise: str,
    *,
    tasks: int,
    rollouts: int,
    coordinates: int,
    flip_rate: float,
    groups: Listed | None,
    steps: Steps | None = None,
) -> Iterator["Spool"]:
    """Take the scores of one checkpoint under one noise on their way to its evidence."""
    if min(tasks, rollouts, coordinates) < 1:
        problem = "there are no scores to spool"
        found = f"{tasks} tasks, {rollouts} rollouts, {coordinates} coordinates"
        raise UsageError(problem, expected="a task, a rollout and a coordinate at least", found=found)
    check_designs(noise, groups, tasks, rollouts)
    arrays = {
        "scores": ("float32", (rollouts, coordinates)),
        "mean-gradients": ("float64", (len(ESTIMATORS), len(DESIGNS[noise]), tasks, coordinates)),
    }
    if steps is not None:
        arrays["mean-squares"] = ("float32", (len(ESTIMATORS), len(COMPARED), tasks, coordinates))
    with scratch(folder, arrays) as (scores, means, *more):
        squares = None if steps is None else (more[0], steps)
        yield Spool(noise, flip_rate, groups, scores, means, squares=squares)


class Spool:
    """Takes the tasks of `spooled`, one by one."""

    def __init__(
        self,
        noise: str,
        flip_rate: float,
        groups: Listed | None,
        scores: Single,
        means: Array,
        *,
        squares: tuple[Single, Steps] | None,
    ) -> None:
        self._noise, self._flip_rate, self._groups = noise, flip_rate, groups
        self._scores, self._means, self._squares, self._done = scores, means, squares, 0
        (rollouts, self._coordinates), tasks = scores.shape, means.shape[2]
        self._rewards, self._weights = np.zeros((2, tasks, rollouts))
        self._tokens = np.zeros((tasks, rollouts), dtype=np.int64)
        self._gram = np.zeros((tasks, rollouts, rollouts))

    def add(
        self, rewards: Array, weights: Array, tokens: NDArray[np.int64], scores: Iterable[Single]
    ) -> None:
        """Add the next task (steps 1 and 2)."""
        task, (tasks, rollouts) = self._done, self._rewards.shape
        if task == tasks:
            problem = "there are more tasks than the probe's set has"
            raise UsageError(problem, expected=f"{tasks} tasks", where=self._noise)
        where = f"{self._noise} noise, task {task}"
        lengths = {len(rewards), len(weights), len(tokens)}
        if lengths != {rollouts}:
            raise _uneven(rollouts, f"{len(rewards)}, {len(weights)} and {len(tokens)}", where)
        check_rewards(rewards)
        check_weights(weights)
        number = 0
        for number, score in enumerate(scores, start=1):
            if number > rollouts:
                raise _uneven(rollouts, "more scores", where)
            self._check_score(score, f"{where}, rollout {number - 1}")
            self._scores[number - 1] = score
        if number < rollouts:
            raise _uneven(rollouts, f"{number} scores", where)
        self._rewards[task], self._weights[task], self._tokens[task] = rewards, weights, tokens
        try:
            self._gram[task] = gram(self._with_means(task), count=self._coordinates)
        except DamagedError as error:
            error.where = f"{where}, {error.where}"
            raise
        self._done += 1

    def evidence(self) -> GramEvidence:
        """Return the evidence of all tasks (step 3)."""
        tasks = len(self._rewards)
        if self._done < tasks:
            raise missing_tasks(self._noise, tasks, self._done)
        shape, products = self._means.shape[1:3] * 2, {}
        for estimator, means in zip(ESTIMATORS, self._means, strict=True):
            flat = means.reshape(-1, self._coordinates)
            products[estimator] = gram(blocks(flat), count=self._coordinates).reshape(shape)
        return GramEvidence(
            *(self._noise, self._rewards, self._tokens, self._weights, self._gram, products), self._drifts()
        )

    def _drifts(self) -> tuple[Row, ...]:
        if self._squares is None:
            return ()
        by_estimator, steps = self._squares
        one_each = np.ones(len(self._rewards))
        sums = {
            estimator: {
                design: TaskSums(one_each, means[DESIGNS[self._noise].index(design)], of_design)
                for design, of_design in zip(COMPARED, squares, strict=True)
            }
            for estimator, means, squares in zip(ESTIMATORS, self._means, by_estimator, strict=True)
        }
        return tuple(drift_rows(self._noise, sums, steps))

    def _with_means(self, task: int) -> Iterator[Single]:
        """Yield the blocks of a task's scores, writing each block's part of the mean gradients after it."""
        coefficients, quadratic = self._coefficients(task), self._forms(task)
        flat, start = coefficients.reshape(-1, coefficients.shape[-1]), 0
        for block in blocks(self._scores):
            yield block  # type: ignore[misc] # single precision, as its array
            end, scores = start + block.shape[-1], block.astype(float)
            self._means[:, :, task, start:end] = (flat @ scores).reshape(*coefficients.shape[:2], -1)
            if self._squares is not None:
                self._squares[0][:, :, task, start:end] = ((quadratic @ scores) * scores).sum(axis=2)
            start = end

    def _coefficients(self, task: int) -> Array:
        """Return c with E[g_t] = Σ_i c_i S_i, shape (estimators, D, N): no Gram matrix enters."""
        rollouts = self._rewards.shape[1]
        gram = np.zeros((1, rollouts, rollouts))
        of_task = moments(*self._outcomes(task), gram, flip_rate=self._flip_rate, groups=self._of(task))
        return np.array(
            [[of_task[e][design].coefficients[0] for design in DESIGNS[self._noise]] for e in ESTIMATORS]
        )

    def _forms(self, task: int) -> Array:
        """Return F with E[g_k²] = Σ_ij F_ij S_ik S_jk, shape (estimators, 2, N, N)."""
        of_task = forms(*self._outcomes(task), flip_rate=self._flip_rate, groups=self._of(task))
        return np.array([[of_task[e][design][0] for design in COMPARED] for e in ESTIMATORS])

    def _outcomes(self, task: int) -> tuple[str, Array, Array]:
        return self._noise, self._rewards[task][None], self._weights[task][None]

    def _of(self, task: int) -> Listed | None:
        return {name: {0: groups[task]} for name, groups in self._groups.items()} if self._groups else None

    def _check_score(self, score: Single, where: str) -> None:
        if score.shape != (self._coordinates,):
            expected = f"{self._coordinates} coordinates"
            raise DamagedError(MISMATCHED, expected=expected, found=score.shape, where=where)
        if score.dtype != np.float32:
            raise UsageError("scores are single precision", found=score.dtype, where=where)


def missing_tasks(noise: str, tasks: int, found: int) -> IncompleteError:
    """Return the error that a set lacks tasks."""
    problem, remedy = f"tasks are missing under {noise} noise", "sample every task of the probe's set"
    return IncompleteError(problem, expected=f"{tasks} tasks", found=found, remedy=remedy)


def check_designs(noise: str, groups: Listed | None, tasks: int, rollouts: int) -> None:
    """Refuse groups that are not those of a noise, its tasks and their rollouts."""
    wanted = set() if noise == OUTCOME else set(DESIGNS[noise])
    if set(groups or {}) != wanted:
        problem = f"the groups are not those of {noise} noise"
        expected = ", ".join(sorted(wanted)) or "none: each task is one clean group"
        raise UsageError(problem, expected=expected, found=", ".join(sorted(groups or {})) or "none")
    check_groups(groups, tasks, rollouts)


def _uneven(rollouts: int, found: str, where: str) -> UsageError:
    problem = "a task has another number of rollouts than the spool was made for"
    expected = f"{rollouts} rewards, weights, token counts and scores"
    return UsageError(problem, expected=expected, found=found, where=where)


@contextmanager
def scratch(folder: Path, arrays: Mapping[str, Kind]) -> Iterator[tuple[Any, ...]]:
    """Map files as arrays of zeros, and remove them at the end and on every error."""
    if not folder.is_dir():
        raise UsageError(
            "the folder for the scores does not exist", where=folder, remedy="make it, or name another"
        )
    size = sum(math.prod(shape) * np.dtype(kind).itemsize for kind, shape in arrays.values())
    free = shutil.disk_usage(folder).free
    if free < size:
        raise _refused(folder, size, f"{free / 1e9:.1f} GB free")
    try:
        made = tempfile.TemporaryDirectory(prefix="probe-", dir=folder)
    except OSError as error:
        raise _refused(folder, size, error.strerror) from None
    with made as own:
        try:
            mapped = tuple(_mapped(Path(own, name), *array) for name, array in arrays.items())
        except OSError as error:
            raise _refused(folder, size, error.strerror) from None
        yield mapped


def _mapped(path: Path, kind: str, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape) * np.dtype(kind).itemsize
    with path.open("wb") as stream:
        stream.truncate(size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
    return np.memmap(path, kind, "r+", shape=shape)


def _refused(folder: Path, size: int, found: str | None) -> UsageError:
    problem = "the folder does not take the scores"
    expected = f"a folder to write to, with {size / 1e9:.1f} GB of space"
    remedy = "name another folder, on a larger disk"
    return UsageError(problem, expected=expected, found=found, where=folder, remedy=remedy)
