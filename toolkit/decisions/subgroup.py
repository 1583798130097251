"""Some tasks of an evaluation: which they are, and the row that their episodes alone would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from toolkit.decisions.endpoints import COUNTED_BY_TASK, Endpoint
from toolkit.decisions.lookup import IndexedRows, Row, Tables, rows_with
from toolkit.decisions.sets import PLACE
from toolkit.decisions.values import Missing
from toolkit.errors import DamagedError
from toolkit.registers.columns import read_attributes
from toolkit.registers.episode_counts import task_set_sha256

if TYPE_CHECKING:
    from toolkit.registers.episode_counts import Counts

EPISODES, TASK_POOLS, ATTRIBUTES = "episodes", "task_pools", "attributes"
LACKING = ("missing", "excluded")
"""Columns of `evaluations` that count episodes without an outcome."""
_KEPT = ("run_id", "condition", "arm", "seed", *PLACE, "step")


def episode_counts(endpoint: Endpoint, runs: Iterable[str], registers: Tables) -> Counts:
    """Count the episodes of an endpoint by task."""
    tasks = tasks_of(endpoint, registers) if endpoint.attributes else None
    if isinstance(tasks, Missing):
        return {}
    return _counts(endpoint, _column(endpoint), (list(runs), endpoint.steps), registers, tasks)


def rows_of(endpoint: Endpoint, registers: Tables) -> Any:
    """Return the rows that an endpoint is measured on."""
    if not registers.has(endpoint.register):
        return _missing(f"the study has no register {endpoint.register!r}")
    table = registers.rows(endpoint.register)
    if not endpoint.attributes:
        return table
    if not registers.has(EPISODES):
        return _missing(f"{endpoint.id} is measured on some tasks, and the study has no episode rows")
    tasks = tasks_of(endpoint, registers)
    if isinstance(tasks, Missing):
        return tasks
    rows = [row for row in rows_with(table, endpoint.where) if _is_in(row, endpoint)]
    at = sorted({row["run_id"] for row in rows}), sorted({row["step"] for row in rows})
    lacking = [name for name in LACKING if any(row.get(name) for row in rows)]
    counts = _counts(endpoint, _column(endpoint), at, registers, tasks)
    out = {name: _counts(endpoint, name, at, registers, tasks) for name in lacking}
    made = (_row(endpoint, row, counts, out) for row in rows)
    return IndexedRows([row for row in made if row is not None])


def are_read(study: Tables, endpoint: Endpoint) -> bool:
    """Whether a study has what an endpoint is measured on."""
    if not endpoint.attributes:
        return study.has(endpoint.register)
    return not isinstance(rows_of(endpoint, study), Missing)


def tasks_of(endpoint: Endpoint, registers: Tables) -> frozenset[int] | Missing:
    """The positions of the tasks that an endpoint is measured on, if they are as many as registered."""
    found = tasks_named(endpoint, registers)
    if isinstance(found, Missing) or len(found) == endpoint.tasks:
        return found
    named, pool = ", ".join(in_words(endpoint)), endpoint.where["pool"]
    return _missing(f"expected {endpoint.tasks} tasks with {named} in pool {pool}, found {len(found)}")


def tasks_named(endpoint: Endpoint, registers: Tables) -> frozenset[int] | Missing:
    """Return the positions of the tasks with an endpoint's attributes, as their pool says them."""
    pool, wanted = endpoint.where["pool"], endpoint.attributes
    rows = rows_with(registers.rows(TASK_POOLS), {"pool": pool}) if registers.has(TASK_POOLS) else ()
    if not all(row.get(ATTRIBUTES) for row in rows) or not rows:
        return _missing(f"{TASK_POOLS} says no attributes of tasks of {pool}")
    found = []
    for row in rows:
        where = f"{TASK_POOLS}, task {row['index']} of {pool}"
        said = read_attributes(row[ATTRIBUTES], where)
        absent = sorted(wanted.keys() - said.keys())
        if absent:
            raise DamagedError("a task lacks an attribute", expected=", ".join(absent), where=where)
        if wanted.items() <= said.items():
            found.append(row["index"])
    return frozenset(found)


def in_words(endpoint: Endpoint) -> tuple[str, ...]:
    """Return what the tasks are that an endpoint is measured on; nothing where it is on all."""
    return tuple(f"{name}={value}" for name, value in sorted(endpoint.attributes.items()))


def _column(endpoint: Endpoint) -> str:
    return COUNTED_BY_TASK[endpoint.outcome.columns[0]]


def _is_in(row: Row, endpoint: Endpoint) -> bool:
    return row["condition"] == endpoint.condition and row["arm"] in endpoint.arms


def _counts(
    endpoint: Endpoint,
    column: str,
    at: tuple[Sequence[str], Sequence[int]],
    registers: Tables,
    tasks: frozenset[int] | None,
) -> Counts:
    """Count a column of the episodes of some runs at some steps, on some tasks or, with None, on all."""
    where = {name: endpoint.where[name] for name in PLACE if name in endpoint.where}
    counts = registers.success_counts(column, at[0], where, at[1])
    if tasks is None:
        return counts
    return {
        key: {task: of for task, of in counted.items() if task in tasks} for key, counted in counts.items()
    }


def _row(endpoint: Endpoint, row: Row, counts: Counts, lacking: Mapping[str, Counts]) -> Row | None:
    """Return an evaluation as it would be with these episodes alone; None where there are none."""
    at = row["run_id"], row["step"]
    tasks = counts.get(at)
    if not tasks:
        return None
    values = [of.successes for of in tasks.values()]
    whole = all(isinstance(value, int) for value in values)
    return {
        **{name: row[name] for name in _KEPT},
        **{name: sum(of.successes for of in each.get(at, {}).values()) for name, each in lacking.items()},
        endpoint.outcome.columns[0]: sum(values) if whole else fsum(values),
        "episodes": sum(of.episodes for of in tasks.values()),
        "tasks": len(tasks),
        "episodes_per_task": max(of.episodes for of in tasks.values()),
        "task_set": task_set_sha256(sorted(tasks)),
    }


def _missing(reason: str) -> Missing:
    return Missing(not_run=False, reasons=(reason,))
