"""The published study's world, played by the embedded policy: their tasks, tools, faults and grading.

A request's plan is what the authors' scripted agent does: it looks up the customer, and each order before it
is first named, and makes the planned calls. Faults are those of the authors' shop (`published.faults`),
keyed as theirs, with their waits, page cuts and counted attempts, and not those of `toolkit.noise`. An
answer stands in the envelope of foreign worlds, and errors have the codes that the policy knows. What their
answers do not say, it is not told either: an outage looks like a transient failure, and a stale read like
any other. A call that an earlier limit or outage blocks is no fault that landed; trace codes of recovery are
not counted.

How directly a request names its order goes by the back office's rule, for the first call that names it:
plain by its identifier, indirect by its day, ambiguous by a product on it. No word of the authors' is needed
for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolkit.errors import UsageError
from toolkit.lab.policies.agent import AMBIGUOUS, INDIRECT, PLAIN
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.foreign import ForeignEpisode, ForeignTask, ForeignWorld, Request, in_envelope
from toolkit.lab.worlds.published import faults, tasks
from toolkit.lab.worlds.published.episodes import Stage, budget, normal, stage
from toolkit.lab.worlds.published.tools import READS, WRITES, Shop
from toolkit.lab.worlds.published.words import placeholders
from toolkit.lab.worlds.published.world import make_world
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Answer, Exposure, error
from toolkit.noise.regimes import Regime
from toolkit.noise.tools import Fault, Kind, Tool

POOLS = {"train": "train", "validation": "heldout", "test": "test", "diagnostic": "diagnostic"}
"""Pool → its name in the authors' tasks."""
BY_DAY = frozenset({"partial_refund_delivered"})
"""Templates that describe an order by its day alone; the others name a product on it, too."""
RESOURCES = {
    "search_customers": None,
    "get_customer": "customer_id",
    "list_orders": "customer_id",
    "check_inventory": "sku",
    "create_ticket": "customer_id",
}
"""Tool → the argument that names what a call is about; of all others, the order."""
TEMPLATES = {"partial_refund_delivered": "partial_refund"}
"""Template of the authors' that has another name in the back office."""
LISTS = frozenset({"search_customers", "list_orders"})
LANDED: Mapping[str, Fault] = {
    "transient": "transient",
    "rate_limit": "rate_limit",
    "outage": "outage",
    "stale": "stale_read",
    "truncate": "truncation",
    "timeout_after_commit": "timeout_after_commit",
    "field_dropout": "field_dropout",
}
"""Fault as the authors name it → as the registers do."""
CODES = {
    "SERVICE_UNAVAILABLE": "temporarily_unavailable",
    "RATE_LIMITED": "rate_limited",
    "TIMEOUT": "timeout",
}


def check() -> None:
    """Check that the pools are the published ones but for their words; raises as `check_structure`."""
    tasks.check_structure(_made())


@lru_cache
def _made() -> dict[str, list[tasks.Task]]:
    return tasks.pools(placeholders())


class PublishedTask(ForeignTask):
    """A task of the published study, with its authors' budget."""

    @property
    def budget(self) -> int:
        """Calls that an episode may make."""
        return budget(self.writes)

    @property
    def late(self) -> int:
        """Calls after which it is late: the budget of a write for each request."""
        return budget(len(self.requests))


@lru_cache(maxsize=4096)
def _stage(pool: str, index: int) -> Stage:
    return stage(_made()[POOLS[pool]][index], placeholders())


class PublishedDesk:
    """One episode in progress, at the authors' shop."""

    def __init__(self, world: "Published", task: ForeignTask, regime: Regime, schedule_seed: int) -> None:
        self.world, self.task, self.regime, self.seed = world, task, regime, schedule_seed
        self.calls = self.request = 0
        self.ended: str | None = None
        self.schedule = faults.Schedule(schedule_seed, condition(regime))
        self.shop = faults.FaultyShop(_stage(task.pool, task.index).make, self.schedule)
        self._landed: list[Exposure] = []

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its answer in the envelope."""
        if self.ended is not None:
            return error("episode_over", "the episode has ended; nothing was done")
        if tool == "finish":  # ends a request; the authors grade the state that the whole episode leaves
            self.request += 1
            if self.request == len(self.task.requests):
                self.ended = "finished"
            return {"finished": True}
        if self.calls >= self.task.budget:
            self.ended = "budget_exceeded"
            return error("budget_exceeded", f"the budget of {self.task.budget} calls is spent")
        met = len(self.shop.exposures)
        answer = self.shop.call(tool, arguments)
        for kind in self.shop.exposures[met:]:
            if kind in LANDED:
                self._landed.append(Exposure(self.calls, tool, "", 0, LANDED[kind], changed=True))
        self.calls += 1
        if failed := answer.get("error"):
            told = {"retry_after": failed["retry_after_seconds"]} if "retry_after_seconds" in failed else {}
            return error(CODES.get(failed["code"], "refused"), failed["message"], **told)
        is_cut = answer.get("truncated") and answer["next_offset"] is not None
        return {"revision": self.shop.world.writes, "result": answer} | ({"has_more": True} if is_cut else {})

    def close(self) -> ForeignEpisode:
        """Grade the episode and return it."""
        is_done = self.world.fulfilled(self.task, self.request, self.shop, (), self.calls)
        return ForeignEpisode(
            self.task,
            self.regime,
            Schedule(self.seed),
            is_done,
            is_done and self.schedule.flips(),
            self.calls,
            self.ended or "stopped",
            self.shop.world.writes > 0,
            tuple(self._landed),
            {},
            {},
            (),
        )


def pool_of(pool: str) -> str:
    """Return the authors' name of a pool; one that there is not is refused."""
    if pool not in POOLS:
        raise UsageError(f"the published world has no pool {pool!r}", expected=", ".join(POOLS))
    return POOLS[pool]


def condition(regime: Regime) -> faults.Condition:
    """Return how often which faults and flips happen under a regime."""
    given = regime.mixture.weights if regime.mixture else {}
    weights = {kind: given.get(fault, 0) / sum(given.values()) for kind, fault in LANDED.items() if given}
    return faults.Condition(regime.fault_rate, weights, regime.flip_rate, regime.challenge)


class Published(ForeignWorld):
    """The world."""

    def __init__(self) -> None:
        kinds: dict[str, Kind] = {name: "list" if name in LISTS else "read" for name in READS}
        kinds |= dict.fromkeys(WRITES, "write")
        self.declaration = in_envelope(
            [Tool(name, kind, RESOURCES.get(name, "order_id")) for name, kind in kinds.items()], "published"
        )

    @lru_cache  # noqa: B019 - one world is one object
    def tasks(self, pool: str) -> Sequence[ForeignTask]:
        """Return a pool's tasks."""
        return tuple(_task(pool, index, task) for index, task in enumerate(_made()[pool_of(pool)]))

    def begin(self, task: ForeignTask) -> Shop:
        """Return the shop as a task finds it."""
        return Shop(_stage(task.pool, task.index).make())

    def fulfilled(
        self, task: ForeignTask, _request: int, state: Any, _shown: Sequence[Any], _made: int
    ) -> bool:
        """Grade an episode: on the state that it leaves."""
        return bool(normal(state.world) == _stage(task.pool, task.index).expected)

    def desk(self, task: ForeignTask, regime: Regime, schedule_seed: int) -> PublishedDesk:
        """Return where an episode is played."""
        return PublishedDesk(self, task, regime, schedule_seed)


def _task(pool: str, index: int, task: tasks.Task) -> PublishedTask:
    customer = make_world(task["world_seed"], placeholders()).customers[task["customer_id"]]["name"]
    requests = tuple(_requests(task, customer))
    return PublishedTask(
        f"{pool}:{index}",
        pool,
        index,
        task["task_id"],
        requests,
        task["n_subgoals"],
        task["world_seed"],
        tuple(range(len(requests))),
    )


def _requests(task: tasks.Task, customer: str) -> Iterator[Request]:
    left, seen = [Call(call["tool"], call["args"]) for call in task["oracle_plan"]], {""}
    plan = [Call("search_customers", {"query": customer})]
    for template in task["templates"]:
        writes = [left.pop(0) for _ in range(_size(template, left))]
        named = writes[0].arguments.get("order_id", "")
        if named not in seen:
            plan.append(Call("get_order", {"order_id": named}))
            seen.add(named)
        plan += writes
        first = next(
            (at for at, call in enumerate(plan) if named and call.arguments.get("order_id") == named), -1
        )
        is_named = named in task["instruction"]
        by = PLAIN if is_named else INDIRECT if template in BY_DAY else AMBIGUOUS
        levels = tuple(by if at == first else PLAIN for at in range(len(plan)))
        yield Request(task["instruction"], TEMPLATES.get(template, template), tuple(plan), levels)
        plan = []


def _size(template: str, left: Sequence[Call]) -> int:
    """Return how many of the planned calls are a request's."""
    if template == "reserve_and_ship":
        return 1 + next(at for at, call in enumerate(left) if call.tool == "schedule_shipment")
    return 2 if template == "cancel_paid_refund" else 1
