"""Rollouts of both designs from anybody's training: a table, and vectors or inner products beside it.

rollouts.parquet   a row a rollout: `design` (paired, independent), `task`, `group`, `reward`
scores.npy         ∇ log π of each rollout, rows as in the table, (rows, P); or
gradients.npy      the gradient of each group, in the order in which groups first appear, (groups, P); or
gram.npy           inner products of either, (rows, rows) or (groups, groups)

The table may be CSV or JSON lines, an array also `.npz` or `.safetensors` that holds it alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators import mean_centred, standardized
from toolkit.lab.probe.advice import GroupEvidence
from toolkit.lab.probe.predicted import Array, weighted_sums
from toolkit.noise.draws import DESIGNS
from toolkit.registers.importing.source import read_source
from toolkit.structs import replace

COLUMNS = ("design", "task", "group", "reward")
TABLES = tuple(f"rollouts.{kind}" for kind in ("parquet", "jsonl", "ndjson", "csv", "tsv"))
KINDS = ("scores", "gradients", "gram")
SUFFIXES = (".npy", ".npz", ".safetensors")
MOST_NUMBERS = 2**27
"""Numbers that an array may hold: 1 GB in double precision, and several times that while it is worked on."""
MOST_GROUPS = 4000


class _Groups(NamedTuple):
    paired: NDArray[np.bool_]  # shape (N,)
    tasks: NDArray[np.int64]  # numbers of their tasks, shape (N,)
    rows: NDArray[np.int64]  # their rows of the table, shape (N, G)
    rewards: Array  # shape (N, G)


def read_rollouts(source: Path, *, scaled: bool) -> GroupEvidence:
    """Read rollouts of both designs."""
    table = _table_in(source) if source.is_dir() else source
    groups = _grouped(read_source(table), table)
    found = [
        (kind, path)
        for kind in KINDS
        for suffix in SUFFIXES
        if (path := table.parent / f"{kind}{suffix}").exists()
    ]
    if len(found) > 1:
        raise UsageError(
            "there are several arrays, and one is enough",
            expected=f"one of {', '.join(KINDS)}",
            found=", ".join(path.name for _, path in found),
            where=table.parent,
        )
    varied = groups.rewards.min(axis=1) < groups.rewards.max(axis=1)
    evidence = GroupEvidence(
        groups.paired, groups.tasks, varied, groups.rows.shape[1], common_mean=not scaled
    )
    if not found:
        return evidence
    kind, path = found[0]
    array = _read_array(path)
    rows, number = groups.rows.size, len(groups.paired)
    if kind == "gram":
        return _with_gram(evidence, groups, array, path, scaled=scaled)
    expected = rows if kind == "scores" else number
    if array.shape[0] != expected:
        raise _unfitting(
            array, f"({expected}, P), a vector a {'rollout' if kind == 'scores' else 'group'}", path
        )
    if kind == "gradients":
        gradients, direction = array, None
    else:
        gradients = _combined(array, groups, scaled=scaled)
        direction = _combined(array, groups, scaled=False) if scaled else None
    return replace(evidence, gradients=gradients, direction=direction)


def _combined(scores: Array, groups: _Groups, *, scaled: bool) -> Array:
    """Return the group gradients (1/G) Σ_i A_i S_i."""
    weights = (standardized if scaled else mean_centred)(groups.rewards) / groups.rows.shape[1]
    return np.concatenate(
        [weighted_sums(w[None], scores[rows]) for w, rows in zip(weights, groups.rows, strict=True)]
    )


def _with_gram(
    evidence: GroupEvidence, groups: _Groups, array: Array, path: Path, *, scaled: bool
) -> GroupEvidence:
    rows, number = groups.rows.size, len(groups.paired)
    if array.shape not in ((rows, rows), (number, number)):
        raise _unfitting(array, f"({rows}, {rows}) of rollouts, or ({number}, {number}) of groups", path)
    apart, most = np.abs(array - array.T).max(), 1e-6 * np.abs(np.diagonal(array)).max()
    if apart > most:
        problem = "inner products are not symmetric"
        raise DamagedError(problem, expected=f"{most:.3g} apart at most", found=f"{apart:.3g}", where=path)
    # Single precision leaves more asymmetry than rounding in double precision does.
    gram = (array + array.T) / 2
    if array.shape == (rows, rows):
        weights = np.zeros((number, rows))
        advantages = (standardized if scaled else mean_centred)(groups.rewards) / groups.rows.shape[1]
        weights[np.arange(number)[:, None], groups.rows] = advantages
        gram = weights @ gram @ weights.T
        gram = (gram + gram.T) / 2
    return replace(evidence, gram=gram)


def _table_in(folder: Path) -> Path:
    found = [folder / name for name in TABLES if (folder / name).exists()]
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    if found:
        raise UsageError("there are several tables of rollouts", expected="one", found=names, where=folder)
    problem = "there is no table of rollouts"
    remedy = "write a row a rollout: design, task, group, reward"
    raise IncompleteError(problem, expected=f"one of {', '.join(TABLES)}", where=folder, remedy=remedy)


def _grouped(table: Any, path: Path) -> _Groups:
    absent = [name for name in COLUMNS if name not in table.columns]
    if absent:
        problem = f"the table has no column {', '.join(absent)}"
        found = ", ".join(map(str, table.columns[1:]))
        raise IncompleteError(problem, expected=", ".join(COLUMNS), found=found, where=path)
    designs, tasks, names, given = (table[name].to_list() for name in COLUMNS)
    rewards = [_reward(value, at, path) for at, value in enumerate(given, 1)]
    members: dict[tuple[str, str], list[int]] = {}
    task_of: dict[tuple[str, str], str] = {}
    for at, (design, task, name) in enumerate(zip(designs, tasks, names, strict=True)):
        if design not in DESIGNS:
            raise _bad(
                "a design is neither paired nor independent", "paired, independent", design, at + 1, path
            )
        if task is None or name is None:
            raise _bad("a rollout has no task, or no group", "both", "nothing", at + 1, path)
        key = (design, str(name))
        members.setdefault(key, []).append(at)
        if task_of.setdefault(key, str(task)) != str(task):
            raise _bad(f"group {name} has rollouts of two tasks", task_of[key], task, at + 1, path)
    _check_designs(task_of, path)
    sizes = {len(rows) for rows in members.values()}
    if len(sizes) > 1 or min(sizes) < 2:  # noqa: PLR2004 - a group compares rollouts
        raise DamagedError(
            "groups differ in their number of rollouts, or have one alone",
            expected="the same number in every group, two at least",
            found=", ".join(map(str, sorted(sizes))),
            where=path,
            remedy="leave out groups that are not whole",
        )
    if len(members) > MOST_GROUPS:
        problem = "there are more groups than are compared here"
        raise UsageError(problem, expected=f"{MOST_GROUPS} at most", found=len(members))
    numbers = {task: at for at, task in enumerate(sorted(set(task_of.values())))}
    rows = np.array(list(members.values()))
    return _Groups(
        np.array([design == "paired" for design, _ in members]),
        np.array([numbers[task_of[key]] for key in members]),
        rows,
        np.array(rewards)[rows],
    )


def _check_designs(task_of: dict[tuple[str, str], str], path: Path) -> None:
    tasks = {design: {task for (of, _), task in task_of.items() if of == design} for design in DESIGNS}
    for design, other in (DESIGNS, DESIGNS[::-1]):
        if not tasks[design]:
            raise IncompleteError(
                f"there is no rollout of the {design} design",
                expected="groups of both designs, on the same tasks",
                found=f"{other} alone",
                where=path,
                remedy=f"play some groups of the same tasks with {_HOW[design]}",
            )
        if lacking := sorted(tasks[other] - tasks[design]):
            raise IncompleteError(
                f"{len(lacking)} tasks have no {design} group",
                expected="groups of both designs of every task",
                found=_listed(lacking),
                where=path,
                remedy="play them, or leave these tasks out",
            )
    if len(tasks["paired"]) < 2:  # noqa: PLR2004 - to resample
        problem = "one task says nothing of others"
        expected = "two tasks at least; 64 are often enough"
        raise IncompleteError(problem, expected=expected, found=len(tasks["paired"]), where=path)


_HOW = {"paired": "one noise schedule for all rollouts of a group", "independent": "a schedule each"}


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _reward(value: object, row: int, path: Path) -> float:
    try:
        reward = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _bad("a reward is no number", "a number", value, row, path) from None
    if not np.isfinite(reward):
        raise _bad("a reward is not finite", "a number", value, row, path)
    return reward


def _bad(what: str, expected: object, found: object, row: int, path: Path) -> DamagedError:
    return DamagedError(what, expected=expected, found=str(found)[:100], where=f"{path}, row {row}")


def _unfitting(array: Array, expected: str, path: Path) -> DamagedError:
    return DamagedError("the array does not fit the table", expected=expected, found=array.shape, where=path)


def _read_array(path: Path) -> Array:
    """Read the one array of a file as double precision; nothing in it is executed."""
    try:
        if path.suffix == ".npy":
            arrays: list[Any] = [np.load(path, allow_pickle=False, mmap_mode="r")]
        elif path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as held:
                arrays = [held[name] for name in held.files]
        else:
            arrays = _of_safetensors(path)
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, ImportError) as error:
        if isinstance(error, ImportError):
            raise IncompleteError(
                "safetensors is not installed", where=path, remedy="install it, or write .npy"
            ) from None
        raise DamagedError(
            f"{path.name} is not a readable array", found=str(error).split("\n")[0][:200], where=path
        ) from None
    if len(arrays) != 1:
        raise DamagedError("the file holds not one array", expected=1, found=len(arrays), where=path)
    array = arrays[0]
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":  # noqa: PLR2004 - a table
        problem = "the array is no table of numbers"
        expected = "two axes, real numbers"
        raise DamagedError(problem, expected=expected, found=f"{array.dtype} {array.shape}", where=path)
    if array.size > MOST_NUMBERS:
        problem = "the array is larger than is worked on at once"
        expected = f"{MOST_NUMBERS:,} numbers at most"
        remedy = "give inner products (gram), or the vectors on fewer coordinates"
        raise UsageError(problem, expected=expected, found=f"{array.size:,}", where=path, remedy=remedy)
    whole = np.asarray(array, dtype=float)
    if not np.isfinite(whole).all():
        row, column = (int(at[0]) for at in np.nonzero(~np.isfinite(whole)))
        raise DamagedError(
            "a number is not finite", found=whole[row, column], where=f"{path}, [{row}, {column}]"
        )
    return whole


def _of_safetensors(path: Path) -> list[Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return list(load_file(path).values())
    except SafetensorError as error:
        raise ValueError(str(error)) from None
