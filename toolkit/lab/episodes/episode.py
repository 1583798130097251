"""An episode: one task under one schedule, played to its end and graded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import normalize

from toolkit.lab.backoffice.records import Record, Ticket, plain
from toolkit.lab.backoffice.world import World
from toolkit.lab.episodes.desk import Agent, CallRecord, Desk
from toolkit.lab.tasks.task import Task
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Exposure
from toolkit.noise.regimes import Regime

FREE_TEXT = frozenset({"ticket_id", "summary"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of the final world that is not as expected."""

    record: str  # identifier of the record; of a ticket, the customer's
    field: str  # name of the field, or `record` where a whole record is missing or too much
    expected: Any  # what it should be; None for nothing
    found: Any  # what it is; None for nothing

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        return {
            "record": self.record,
            "field": self.field,
            "expected": plain(self.expected),
            "found": plain(self.found),
        }


def succeeded(task: Task, world: World) -> bool:
    """Return whether the world is as expected: the true success."""
    return world.changes == task.expected or next(_differences(task, world), None) is None


def changed(world: World) -> bool:
    """Return whether the world differs from its base at all."""
    records = world.base.records
    return any(_differ(record, records.get(key)) for key, record in world.changes.items())


def differences(task: Task, world: World) -> list[Difference]:
    """Return every field in which the world is not as expected: what is missing, and collateral damage."""
    return list(_differences(task, world))


def _differences(task: Task, world: World) -> Iterator[Difference]:
    base, expected, actual = task.base.records, task.expected, world.changes
    for key in sorted(expected.keys() | actual.keys()):
        wanted, is_now = expected.get(key, base.get(key)), actual.get(key, base.get(key))
        if not (isinstance(wanted, Ticket) or isinstance(is_now, Ticket)):
            yield from _compare(key, wanted, is_now)
    yield from _compare_tickets(expected, actual)


def _differ(left: Record | None, right: Record | None) -> bool:
    if left is None or right is None:
        return left is not right
    return any(True for _ in _unequal_fields(left, right))


def _unequal_fields(left: Record, right: Record) -> Iterator[tuple[str, Any, Any]]:
    for name, mine, theirs in zip(left._fields, left, right, strict=True):
        if mine != theirs and name not in FREE_TEXT and _normalized(mine) != _normalized(theirs):
            yield name, mine, theirs


def _compare(key: str, wanted: Record | None, found: Record | None) -> Iterator[Difference]:
    if wanted is not None and found is not None:
        for unequal in _unequal_fields(wanted, found):
            yield Difference(key, *unequal)
    elif wanted is not found:
        yield Difference(key, "record", wanted, found)


def _compare_tickets(expected: Mapping[str, Record], found: Mapping[str, Record]) -> Iterator[Difference]:
    """Compare new tickets as a collection: their order and their identifiers do not matter."""
    missing, extra = _new_tickets(expected), _new_tickets(found)
    for ticket in list(missing):
        same = next((other for other in extra if not _differ(ticket, other)), None)
        if same is not None:
            missing.remove(ticket)
            extra.remove(same)
    for ticket in missing:
        yield Difference(ticket.customer_id, "record", ticket, None)
    for ticket in extra:
        yield Difference(ticket.customer_id, "record", None, ticket)


def _new_tickets(changes: Mapping[str, Record]) -> list[Ticket]:
    return [record for record in changes.values() if isinstance(record, Ticket)]


def _normalized(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(normalize("NFC", value).split()).casefold()
    return tuple(map(_normalized, value)) if isinstance(value, tuple) else value


class Episode(NamedTuple):
    """What became of an episode: a named tuple, for the reason that records are."""

    task: Task  # the task
    regime: Regime  # the noise
    schedule: Schedule  # the schedule ω
    # Whether the final world is the expected one, field by field, whatever ended the episode
    true_success: bool
    flipped: bool  # whether the grader reported a true success as a failure
    calls: int  # calls charged to the budget
    ended: str  # `finished` by the agent, `budget_exceeded`, or `stopped` without either
    world: World  # the world as the episode left it
    exposures: tuple[Exposure, ...]  # faults that landed, in order
    called_for: Mapping[str, int]  # trace code → faults that called for a recovery
    recovered: Mapping[str, int]  # trace code → how many of them got it
    trace: tuple[CallRecord, ...] | None  # every call, where kept

    @property
    def observed_reward(self) -> int:
        """The reward as the grader reports it: 1 for a true success that was not flipped."""
        return int(self.true_success and not self.flipped)

    @property
    def world_changed(self) -> bool:
        """Whether the world changed at all."""
        return changed(self.world)

    @property
    def budget_exceeded(self) -> bool:
        """Whether the budget ended the episode."""
        return self.ended == "budget_exceeded"


def play(task: Task, regime: Regime, schedule_seed: int, agent: Agent, *, traced: bool = False) -> Episode:
    """Play a task under a schedule."""
    desk = Desk(task, regime, schedule_seed, traced=traced)
    agent(task.prompt, desk.call)
    return close(desk)


def close(desk: Desk) -> Episode:
    """Grade a desk as it stands and return its episode."""
    true_success = succeeded(desk.task, desk.world)
    return Episode(
        desk.task,
        desk.regime,
        desk.schedule,
        true_success,
        true_success and desk.regime.flips(desk.schedule),
        desk.calls,
        desk.ended or "stopped",
        desk.world,
        tuple(desk.exposures),
        dict(desk.recovery.called_for),
        dict(desk.recovery.made),
        None if desk.trace is None else tuple(desk.trace),
    )
