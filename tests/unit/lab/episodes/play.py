"""Shared by tests of episodes: regimes of one fault type, schedules that hold a wanted fault, tasks."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from toolkit.lab.backoffice.records import Order
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.tasks.task import Task
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import Mixture, Regime
from toolkit.noise.tools import Fault


def only(fault: Fault, rate: float = 1.0) -> Regime:
    """Return a regime whose only fault type is the given one."""
    return Regime(f"only {fault}", "for tests", rate, Mixture({fault: 1}))


def desk(regime: Regime, seed: int = 0) -> Desk:
    """Return a desk of the usual task that keeps its trace."""
    return Desk(TASK, regime, seed, traced=True)


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


TASK = load_task("validation:0")
# An order that can be cancelled, another one, and a customer of several.
PAID = an_order(TASK, "paid")
OTHER = next(key for key in TASK.base.records if key.startswith("O-") and key != PAID)
CUSTOMER = next(key for key, orders in TASK.base.orders_of.items() if len(orders) > 2)


def read(at: Desk, order: str = PAID) -> dict[str, Any]:
    return at.call("get_order", {"order_id": order})


def cancel(at: Desk) -> dict[str, Any]:
    return at.call("cancel_order", {"order_id": PAID, "reason": "r"})


def meeting(
    regime: Regime,
    fates: Mapping[str, Sequence[Fault | None]],
    tool: str = "get_order",
    *,
    also: Callable[[Schedule], bool] = lambda _: True,
) -> Desk:
    """Return a desk whose first calls of a tool meet these faults, or none, by the resource they are of."""

    def holds(schedule: Schedule) -> bool:
        return also(schedule) and all(
            regime.fault(TOOLS[tool], repeat, schedule.draw(tool, resource, repeat)) == fate
            for resource, several in fates.items()
            for repeat, fate in enumerate(several)
        )

    return desk(regime, next(seed for seed in count() if holds(Schedule(seed))))
