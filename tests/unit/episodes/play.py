"""Shared by tests of episodes: regimes of one fault type, schedules that hold a wanted fault, tasks."""

from collections.abc import Callable
from itertools import count
from typing import Any

from toolkit.backoffice.records import Order
from toolkit.episodes.desk import Desk
from toolkit.noise.draws import Schedule
from toolkit.noise.faults import Fault, Mixture
from toolkit.noise.regimes import Regime
from toolkit.tasks.pools import load_task
from toolkit.tasks.task import Task


def only(fault: Fault, rate: float = 1.0) -> Regime:
    """Return a regime whose only fault type is the given one."""
    return Regime(f"only {fault}", "for tests", rate, Mixture({fault: 1}))


def seed_where(condition: Callable[[Schedule], bool]) -> int:
    """Return the first seed whose schedule meets a condition."""
    return next(seed for seed in count() if condition(Schedule(seed)))


def first_faulty(regime: Regime, tool: str, resource: str, faulty: int = 1) -> int:
    """Return a seed under which the first draws of a key are faults and the next is none."""

    def holds(schedule: Schedule) -> bool:
        gates = [schedule.draw(tool, resource, repeat).gate for repeat in range(faulty + 1)]
        return max(gates[:faulty]) < regime.fault_rate <= gates[faulty]

    return seed_where(holds)


def desk(regime: Regime, seed: int = 0, task: str = "validation:0") -> Desk:
    """Return a desk that keeps its trace."""
    return Desk(load_task(task), regime, seed, traced=True)


def code(answer: dict[str, Any]) -> str | None:
    """Return the code of a tool error; None for an answer that is none."""
    return answer.get("error", {}).get("code")


def task_with(*templates: str) -> Task:
    """Return the first training task of exactly these templates."""
    return next(t for n in count() if (t := load_task(f"train:{n}")).templates == templates)


def an_order(task: Task, status: str) -> str:
    """Return the identifier of an order in a status, with no stock reserved."""
    orders = (record for record in task.base.records.values() if isinstance(record, Order))
    return next(order.order_id for order in orders if order.status == status and order.pick_list is None)
