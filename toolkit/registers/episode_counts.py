"""A run's episodes counted, by evaluation and by task, and its groups: the rows are sorted by key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.errors import DamagedError
from toolkit.registers.arrow import numbers
from toolkit.registers.row_tables import EPISODES, FAULTS, GROUPS
from toolkit.registers.schema import EVALUATIONS

Place = tuple[str, str, str, int]
"""An evaluation of a run: phase, pool, regime, step."""

PLACE = ("phase", "pool", "regime", "step")
_WORDS = ("phase", "pool", "regime")
_KEY = (*PLACE, "task", "schedule")
_SEED = "schedule_seed"
_EXCLUDED = "excluded"
_MOST = 2**16  # tasks, schedules and steps are smaller
OUTCOMES = ("true_success", "score")
"""Columns with what an episode came to: a study has one of them at least."""
COUNTED = (
    *(*_KEY, _SEED, *OUTCOMES, "missing", "excluded", "observed_reward"),
    *("calls", "tokens", "cost", "ended", *FAULTS),
)
"""Columns of `episodes` that are counted."""


class TaskCount(NamedTuple):
    """The episodes of one run on one task at one step."""

    episodes: int  # how many there are, each under a schedule of its own
    last_schedule: int  # the largest index among their schedules
    successes: int | float  # how many succeeded; of another column than successes, what it adds up to


Counts = dict[tuple[str, int], dict[int, TaskCount]]
"""(run, step) → task → its episodes."""


@dataclass(frozen=True)
class CountedRun:
    """The episodes of one run."""

    run: str  # its name
    evaluations: tuple[dict[str, Any], ...]  # its rows of `evaluations`: place and counts
    # Column of `episodes` → its values, as arrays; words as their positions in a list of words
    columns: Mapping[str, Any]
    stretches: Mapping[Place, slice]  # evaluation → its rows, from the first to before the last
    # Evaluation → task → how many further episodes were played and are left out, as registered
    left_out: Mapping[Place, Mapping[int, int]] = field(default_factory=dict)

    @property
    def episodes(self) -> int:
        """How many episodes there are, with those that are left out."""
        return len(self.columns["task"]) + sum(sum(tasks.values()) for tasks in self.left_out.values())

    def tasks(self, at: Place, column: str) -> dict[int, TaskCount]:
        """Return the episodes of an evaluation by task; nothing where there is none."""
        if column == _EXCLUDED:
            out = self.left_out.get(at, {})
            return {task: TaskCount(count, count - 1, count) for task, count in out.items()}
        rows = self.stretches.get(at)
        if rows is None:
            return {}
        task = self.columns["task"][rows]
        starts = _starts(task)
        episodes = np.diff(np.append(starts, len(task)))
        last = np.maximum.reduceat(self.columns["schedule"][rows], starts)
        counted = zip(episodes.tolist(), last.tolist(), _sum(self.columns[column][rows], starts), strict=True)
        return dict(zip(task[starts].tolist(), map(TaskCount._make, counted), strict=True))

    def identities(self, at: Place) -> NDArray[np.int64]:
        """Return task and schedule of each episode of an evaluation, numbered by `identity`; in order."""
        rows = self.stretches.get(at, slice(0))
        return identity(self.columns["task"][rows], self.columns["schedule"][rows])

    def seeds(self, at: Place) -> Any:
        """Return the schedule seed of each episode of an evaluation."""
        return self.columns[_SEED][self.stretches[at]]


def identity(task: ArrayLike, schedule: ArrayLike) -> NDArray[np.int64]:
    """Return one number for each task and schedule, ordered as they are."""
    return np.asarray(task, np.int64) * _MOST + np.asarray(schedule, np.int64)


def count_run(run: str, episodes: Any, names: Collection[str]) -> CountedRun:
    """Count the episodes of a run by evaluation, each of them checked to be the run's and there once."""
    words, columns = _columns(run, episodes)
    key = np.zeros(episodes.num_rows, np.int64)
    for name in PLACE:
        key = key * _MOST + columns[name]
    episode = identity(columns["task"], columns["schedule"])
    rising = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (episode[1:] > episode[:-1]))
    if not rising.all():
        raise _disorder(run, columns, words, int(np.flatnonzero(~rising)[0]))
    place_of: dict[int, Place] = {
        int(key[at]): (*(words[name][columns[name][at]] for name in _WORDS), int(columns["step"][at]))
        for at in _starts(key).tolist()
    }
    left_out = np.asarray(columns.get(_EXCLUDED, np.zeros(len(key))), bool)
    out_of, tasks_out = key[left_out], columns["task"][left_out]
    out = {place_of[at]: Counter(tasks_out[out_of == at].tolist()) for at in np.unique(out_of).tolist()}
    key, columns = key[~left_out], {name: values[~left_out] for name, values in columns.items()}
    starts = _starts(key)
    ends = np.append(starts[1:], len(key))
    places = [place_of[at] for at in key[starts].tolist()]
    counts = {
        name: _COUNTING[name](columns, words, starts)
        for name in EVALUATIONS.column_names
        if name in names
        if name in _COUNTING and all(needed in columns for needed in _NEEDED.get(name, ()))
    }
    if _EXCLUDED in columns and _EXCLUDED in names:
        counts[_EXCLUDED] = [out.get(place, Counter()).total() for place in places]
    evaluations = tuple(
        dict(zip(PLACE, place, strict=True)) | {name: values[at] for name, values in counts.items()}
        for at, place in enumerate(places)
    )
    stretches = {
        place: slice(start, end)
        for place, start, end in zip(places, starts.tolist(), ends.tolist(), strict=True)
    }
    return CountedRun(run, evaluations, columns, stretches, out)


def success_counts(
    runs: Iterable[CountedRun], column: str, where: Mapping[str, str], steps: Sequence[int]
) -> Counts:
    """Count the episodes of some runs on one evaluation set by task."""
    counts: Counts = {}
    first: tuple[Any, Any] | None = None
    for counted in runs:
        for step in steps:
            at = (where["phase"], where["pool"], where["regime"], step)
            if at not in counted.stretches:
                continue
            counts[counted.run, step] = counted.tasks(at, column)
            if _SEED in counted.columns:
                seeds = counted.identities(at), counted.seeds(at)
                first = first or seeds
                _check_same_noise(first, seeds, f"{counted.run} at step {step}")
    return counts


def task_set_sha256(tasks: Collection[int]) -> str:
    """Return the SHA-256 of positions of tasks, ascending, each as decimal digits and a newline."""
    return hashlib.sha256("".join(f"{task}\n" for task in tasks).encode()).hexdigest()


def _columns(run: str, episodes: Any) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the words of each column of words, sorted, and every column as an array."""
    words: dict[str, list[str]] = {}
    columns: dict[str, Any] = {}
    for name, column in zip(episodes.column_names, episodes.columns, strict=True):
        if column.null_count:
            raise DamagedError(f"{EPISODES.name}.{name} is absent", expected="a value a row", where=run)
        if name == "run_id" or name in _WORDS or name == "ended":
            words[name], columns[name] = _encoded(column)
        else:
            columns[name] = numbers(column)
    strangers = sorted(set(words["run_id"]) - {run})
    if strangers:
        raise DamagedError(
            f"the file of a run's {EPISODES.name} has rows of another run",
            expected=run,
            found=", ".join(strangers),
            where=f"{EPISODES.name}/{run}.parquet",
        )
    return words, columns


def _encoded(column: Any) -> tuple[list[str], Any]:
    """Return the words of a column, sorted, and the position of each row's word among them."""
    import pyarrow as pa

    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        encoded = encoded.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    words = sorted(found)
    rank = np.array([words.index(word) for word in found], np.int64)
    return words, rank[numbers(encoded.indices)] if found else np.zeros(0, np.int64)


def _starts(values: Any) -> NDArray[np.int64]:
    """Return where each stretch of one value begins."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def _disorder(run: str, columns: Mapping[str, Any], words: Mapping[str, list[str]], at: int) -> DamagedError:
    def row(number: int) -> str:
        values = {name: columns[name][number] for name in _KEY}
        return ", ".join(f"{n}={words[n][v] if n in words else v}" for n, v in values.items())

    return DamagedError(
        f"{EPISODES.name} has an episode twice, or out of order",
        expected=f"each episode once, sorted by {', '.join(_KEY)}",
        found=f"{row(at)}; then {row(at + 1)}",
        where=f"{EPISODES.name}/{run}.parquet",
        remedy="restore the file, or rebuild the registers",
    )


def _check_same_noise(first: tuple[Any, Any], other: tuple[Any, Any], where: str) -> None:
    """Check that a schedule of a task has one seed, in all runs and at all steps."""
    if np.array_equal(first[0], other[0]):
        apart = first[1] != other[1]
    else:
        known = dict(zip(*(part.tolist() for part in first), strict=True))
        seeds = zip(*(part.tolist() for part in other), strict=True)
        apart = np.array([known.get(identity, seed) != seed for identity, seed in seeds], bool)
    if apart.any():
        at = int(np.flatnonzero(apart)[0])
        task, schedule = divmod(int(other[0][at]), _MOST)
        raise DamagedError(
            "one schedule of an evaluation has two seeds: runs met different noise",
            expected="one seed for all runs and steps",
            found=f"{other[1][at]}, task {task}, schedule {schedule}",
            where=where,
        )


_Count = Callable[[Mapping[str, Any], Mapping[str, list[str]], Any], list[Any]]


def _sum(values: Any, starts: Any) -> list[Any]:
    """Return the sum of each stretch: of counts exactly, of others rounded once, whatever their order."""
    if values.dtype.kind == "f":
        ends = np.append(starts[1:], len(values))
        return [fsum(values[start:end].tolist()) for start, end in zip(starts, ends, strict=True)]
    summed: list[int] = np.add.reduceat(values.astype(np.int64), starts).tolist() if len(starts) else []
    return summed


def _added_up(name: str) -> _Count:
    return lambda columns, _, starts: _sum(columns[name], starts)


def _exposed(columns: Mapping[str, Any]) -> Any:
    return sum(columns[fault].astype("int64") for fault in FAULTS) > 0


def _recovered(columns: Mapping[str, Any], _: object, starts: Any) -> list[int | None]:
    exposed = _exposed(columns)
    numbers = zip(_sum(exposed, starts), _sum(exposed & columns["true_success"], starts), strict=True)
    return [recovered if met else None for met, recovered in numbers]


def _ended(word: str) -> _Count:
    def count(columns: Mapping[str, Any], words: Mapping[str, list[str]], starts: Any) -> list[int]:
        position = words["ended"].index(word) if word in words["ended"] else -1
        return _sum(columns["ended"] == position, starts)

    return count


def _of_tasks(summary: Callable[[Sequence[int], Sequence[int]], object]) -> _Count:
    """Return what counts the tasks of each evaluation: from which there are, and how often each."""

    def count(columns: Mapping[str, Any], _: object, starts: Any) -> list[Any]:
        parts = np.split(columns["task"], starts[1:]) if len(starts) else []
        met = (np.unique(part, return_counts=True) for part in parts)
        return [summary(tasks.tolist(), times.tolist()) for tasks, times in met]

    return count


_ADDED = {
    "successes": "true_success",
    "observed_successes": "observed_reward",
    **{name: name for name in ("score", "missing", "calls", "tokens", "cost")},
}
"""Columns of `evaluations` that are sums over episodes → the columns of `episodes` that are added up."""
_COUNTING: dict[str, _Count] = {
    "episodes": lambda columns, _, starts: np.diff(np.append(starts, len(columns["task"]))).tolist(),
    **{name: _added_up(column) for name, column in _ADDED.items()},
    "flipped": lambda columns, _, starts: _sum(columns["true_success"] & ~columns["observed_reward"], starts),
    "exposed": lambda columns, _, starts: _sum(_exposed(columns), starts),
    "recovered": _recovered,
    "finished": _ended("finished"),
    "budget_exceeded": _ended("budget_exceeded"),
    "tasks": _of_tasks(lambda tasks, _: len(tasks)),
    "episodes_per_task": _of_tasks(lambda _, times: max(times)),
    "task_set": _of_tasks(lambda tasks, _: task_set_sha256(tasks)),
}
_NEEDED = {
    **{name: (column,) for name, column in _ADDED.items()},
    "flipped": ("observed_reward",),
    **dict.fromkeys(("exposed", "recovered"), FAULTS),
    **dict.fromkeys(("finished", "budget_exceeded"), ("ended",)),
}
FOLLOWING = frozenset({*_COUNTING, "excluded"})
"""Columns of `evaluations` that follow from episodes, where these say them."""


COUNTED_OF_GROUPS = (
    *("step", "position", "schedule_seeds", "true_successes", "observed_rewards", "advantages"),
    *("zero_variance", "spurious"),
)
"""Columns of `groups` that are counted."""

_LISTS = ("schedule_seeds", "true_successes", "observed_rewards", "advantages")


def count_groups(run: str, groups: Any) -> dict[str, Any]:
    """Count the training groups of a run, checked to say of themselves what their rewards give."""
    where = f"{GROUPS.name}/{run}.parquet"
    absent = [name for name in groups.column_names if groups[name].null_count]
    strangers = sorted(set(groups["run_id"].unique().to_pylist()) - {run})
    if absent or strangers or not groups.num_rows:
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
    for name, derived in {"zero_variance": ~varies, "spurious": spurious}.items():
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
    return {
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
