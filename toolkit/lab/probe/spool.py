"""The evidence of score vectors that memory cannot hold: they pass through files, one task at a time.

1. A task's N scores are written to one file, row by row, over those of the task before.
2. They are read by blocks of coordinates, once: each adds to the task's Gram matrix, and gives the block's
   part of the task's mean gradients and, where the drift is told, of their mean squares, which are written
   to files of their own. Their coefficients follow from rewards and weights alone.
3. After the last task these are read by blocks: for the products of mean gradients across tasks, and for the
   drift.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators.coordinates import TaskSums
from toolkit.lab.probe.design import COMPARED, DESIGNS, OUTCOME, Listed
from toolkit.lab.probe.evidence import GramEvidence, check_groups
from toolkit.lab.probe.gram import MISMATCHED, blocks, gram
from toolkit.lab.probe.moments import ESTIMATORS, Steps, drift_rows, forms, moments
from toolkit.lab.probe.recorded import check_rewards, check_weights
from toolkit.registers.arrow import Row

Array: TypeAlias = NDArray[np.float64]
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
    """Take the scores of one checkpoint under one noise on their way to its evidence.

    The files take 4 · N · P + 8 · 2 · D · T · P bytes, and with the drift 4 · 2 · 2 · T · P more: 34 and 9 GB
    for P = 33.6 million, N = 64, T = 16, D = 3. Memory, a few blocks, does not grow with P.
    """
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
        squares: tuple[Single, Steps] | None = None,
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
        for number, score in enumerate(scores, start=1):  # 1
            if number > rollouts:
                raise _uneven(rollouts, "more scores", where)
            self._check_score(score, f"{where}, rollout {number - 1}")
            self._scores[number - 1] = score
        if number < rollouts:
            raise _uneven(rollouts, f"{number} scores", where)
        self._rewards[task], self._weights[task], self._tokens[task] = rewards, weights, tokens
        try:
            self._gram[task] = gram(self._with_means(task), count=self._coordinates)  # 2
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
        """Return the groups of one task, as if there were no other."""
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
