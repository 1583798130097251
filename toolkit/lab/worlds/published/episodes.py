"""Episodes of the published study's scripted agents, their grading, and what they come to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from toolkit.lab.worlds.published.faults import Condition, FaultyShop, Schedule, evaluation_seed
from toolkit.lab.worlds.published.tasks import Task, played
from toolkit.lab.worlds.published.tools import Answer
from toolkit.lab.worlds.published.words import Words
from toolkit.lab.worlds.published.world import Record, World, make_world, refunded, reserved, unpacked

BUDGET, BUDGET_PER_CALL, LARGEST_BUDGET = 7, 2, 21
ATTEMPTS, LOOKS = 5, 2
SCHEDULES = (1, 2, 3, 4)
AGENTS = {"naive": False, "recovering": True}
"""Scripted agent → whether it tries again."""
CONDITIONS: Mapping[str, Condition] = MappingProxyType(
    {
        "clean": Condition(),
        "faults_p010": Condition(0.10),
        "faults_p025": Condition(0.25),
        "faults_p025_outage_free": Condition(
            0.25, {"transient": 0.5, "rate_limit": 0.5 / 3, "stale": 0.5 / 3, "truncate": 0.5 / 3}
        ),
        "held_out_types": Condition(0.25, {"timeout_after_commit": 0.5, "field_dropout": 0.5}),
    }
)


class Played(NamedTuple):
    """What became of an episode."""

    success: bool
    calls: int
    exposures: tuple[str, ...]
    budget_exceeded: bool


class Stage(NamedTuple):
    """A task, its world and the state that it should end in."""

    task: Task
    make: Callable[[], World]
    expected: Any

    @property
    def budget(self) -> int:
        """How many calls an agent has."""
        return budget(self.task["n_subgoals"])


def budget(writes: int) -> int:
    """Return how many calls an episode may make."""
    return min(LARGEST_BUDGET, BUDGET + BUDGET_PER_CALL * writes)


class _BudgetError(Exception):
    """A call too many."""


def stage(task: Task, words: Words) -> Stage:
    """Prepare a task for its episodes."""
    make = partial(unpacked, make_world(task["world_seed"], words).packed())
    return Stage(task, make, normal(played(make(), task["oracle_plan"])[0]))


def normal(world: World) -> Any:
    """Return what of a world is graded: neither reasons and summaries, nor names of shipments and tickets."""
    orders = {
        name: {
            **order,
            "refunds": sorted(refund["amount_cents"] for refund in order["refunds"]),
            "reservations": sorted((each["sku"], each["quantity"]) for each in order["reservations"]),
            "shipment_id": order["shipment_id"] is not None,
        }
        for name, order in world.orders.items()
    }
    shipped, opened = ("order_id", "carrier", "scheduled_day", "status"), ("category", "priority", "status")
    shipments = sorted(tuple(each[name] for name in shipped) for each in world.shipments.values())
    tickets = sorted(
        (each["customer_id"], each["order_id"] or "", *(each[name] for name in opened))
        for each in world.tickets.values()
    )
    return world.customers, world.products, orders, shipments, tickets


class Agent:
    """A scripted agent in one episode: it has the plan, looks up what it needs, and carries the plan out."""

    def __init__(self, at: Stage, shop: FaultyShop, *, recovers: bool) -> None:
        self._at, self._shop = at, shop
        self._attempts = ATTEMPTS if recovers else 1
        self._left = at.budget

    def play(self) -> bool:
        """Play the episode, and return whether the budget was enough."""
        try:
            for call in (*self._lookups(), *self._at.task["oracle_plan"]):
                self._carry_out(call["tool"], call["args"])
        except _BudgetError:
            return False
        return True

    def _lookups(self) -> Iterator[Record]:
        customer = self._shop.world.customers[self._at.task["customer_id"]]
        yield {"tool": "search_customers", "args": {"query": customer["name"]}}
        for name in dict.fromkeys(call["args"].get("order_id") for call in self._at.task["oracle_plan"]):
            if name:
                yield {"tool": "get_order", "args": {"order_id": name}}

    def _call(self, tool: str, **arguments: object) -> Answer:
        if self._left == 0:
            raise _BudgetError
        self._left -= 1
        return self._shop.call(tool, arguments)

    def _carry_out(self, tool: str, arguments: Record) -> None:
        """Make a call, and again where it failed and the agent recovers."""
        order = self._shop.world.orders.get(arguments.get("order_id", ""))
        sign = None if order is None else _sign(tool, arguments, order)
        for _ in range(self._attempts):
            code = (failed := self._call(tool, **arguments).get("error", {})).get("code")
            if self._attempts == 1 or code not in {"RATE_LIMITED", "SERVICE_UNAVAILABLE", "TIMEOUT"}:
                return
            if code == "RATE_LIMITED":
                self._call("wait", seconds=failed["retry_after_seconds"])
            elif code == "TIMEOUT" and sign and self._is_seen(sign, arguments["order_id"]):
                return

    def _is_seen(self, sign: "Sign", order: str) -> bool:
        """Look whether a write of unknown fate was carried out."""
        for _ in range(LOOKS):
            shown = self._call("get_order", order_id=order)
            if sign.field not in shown:
                continue
            if sign.is_met(shown[sign.field]):
                return True
            if not sign.adds:
                return False
        return False


class Sign(NamedTuple):
    """How an order shows that a write was carried out."""

    field: str
    is_met: Callable[[Any], bool]
    adds: bool  # to what may have been there before: then an old state is no answer


def _sign(tool: str, arguments: Record, order: Record) -> Sign | None:
    match tool:
        case "update_shipping_address":
            address = {name: arguments[name] for name in ("street", "city", "postal_code")}
            return Sign("shipping_address", lambda shown: bool(shown == address), adds=False)
        case "cancel_order":
            return Sign("status", lambda shown: bool(shown == "cancelled"), adds=False)
        case "schedule_shipment":
            return Sign("status", lambda shown: bool(shown == "shipped"), adds=False)
        case "issue_refund":
            least = refunded(order) + arguments["amount_cents"]
            return Sign("refunded_cents", lambda shown: bool(shown >= least), adds=True)
        case "reserve_stock":
            sku = arguments["sku"]
            least = reserved(order, sku) + arguments["quantity"]
            return Sign(
                "reservations", lambda shown: reserved({"reservations": shown}, sku) >= least, adds=True
            )
    return None


def play(at: Stage, condition: Condition, seed: int, *, recovers: bool) -> Played:
    """Play a task under a schedule."""
    shop = FaultyShop(at.make, Schedule(seed, condition))
    is_enough = Agent(at, shop, recovers=recovers).play()
    shop.call("finish", {"summary": "done"})
    return Played(normal(shop.world) == at.expected, shop.calls, tuple(shop.exposures), not is_enough)


def counts(stages: Sequence[Stage], condition: Condition, *, recovers: bool) -> dict[str, int]:
    """Return what becomes of an agent's episodes under the evaluation schedules of tasks."""
    episodes = [
        play(at, condition, evaluation_seed(at.task["task_id"], index), recovers=recovers)
        for at in stages
        for index in SCHEDULES
    ]
    return {
        "episodes": len(episodes),
        "successes": sum(each.success for each in episodes),
        "exposed": sum(bool(each.exposures) for each in episodes),
        "outages": sum(any(kind.startswith("outage") for kind in each.exposures) for each in episodes),
        "budget_exceeded": sum(each.budget_exceeded for each in episodes),
        "calls": sum(each.calls for each in episodes),
    }
