"""A task: what is asked, in which world, what the end state should be, and how many calls it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolkit.canonical import document_sha256
from toolkit.lab.backoffice.records import Record, plain
from toolkit.lab.backoffice.world import Base

BUDGET_BASE = 7
BUDGET_PER_WRITE = 2
LARGEST_BUDGET = 21


class Call(NamedTuple):
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A task."""

    task_id: str  # `pool:index`
    pool: str  # train, validation, test, diagnostic or diagnostic_128
    index: int  # position in its pool
    world_seed: int  # seed that the task and its world were generated from
    prompt: str  # the request in words
    templates: tuple[str, ...]  # template of each sub-request, in order
    forms: tuple[str, ...]  # form of each sub-request
    base: Base  # the world before the episode
    plan: tuple[Call, ...]  # a sequence of calls that fulfils it; never shown to an agent
    expected: Mapping[str, Record]  # records as the plan leaves them, by identifier
    writes: int  # planned writes, n
    budget: int  # calls that an episode may make

    @property
    def reads(self) -> int:
        """Planned reads."""
        return len(self.plan) - self.writes


def budget(writes: int) -> int:
    """Return the call budget of a task with n planned writes."""
    return min(BUDGET_BASE + BUDGET_PER_WRITE * writes, LARGEST_BUDGET)


def task_document(task: Task) -> dict[str, Any]:
    """Return everything that makes the task, as JSON values."""
    return {
        "task_id": task.task_id,
        "world_seed": str(task.world_seed),
        "prompt": task.prompt,
        "templates": list(task.templates),
        "forms": list(task.forms),
        "writes": task.writes,
        "budget": task.budget,
        "plan": [{"tool": call.tool, "arguments": call.arguments} for call in task.plan],
        "expected": records_document(task.expected),
        "world": records_document(task.base.records),
    }


def records_document(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return records as JSON values, by identifier, each with the kind of record it is."""
    return {
        identifier: {"kind": type(record).__name__.lower(), **plain(record)}
        for identifier, record in sorted(records.items())
    }


def task_sha256(task: Task) -> str:
    """Return the SHA-256 of a task's canonical document."""
    return document_sha256(task_document(task))
