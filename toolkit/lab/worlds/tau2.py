"""The retail shop of tau2-bench as a world, from the reader's own copy of `inspect-evals`, which adapts it.

Source:
    Barres et al., tau2-bench: its criterion on the database. The telecom, airline and banking domains are not
    here.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from toolkit.errors import VerificationError
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.foreign import SHARES, ForeignTask, ForeignWorld, Package, Request, deal, in_envelope
from toolkit.noise.tools import Tool

VERSION = "0.26.0"
SPLIT = "tau2/split/v1"
DATA = "inspect_evals/tau2/data/domains/retail/tasks.json"
PACKAGE = Package(
    "inspect_evals",
    VERSION,
    (
        "inspect_evals/tau2/retail/RetailAgentTools.py",
        "inspect_evals/tau2/retail/data_model.py",
        "inspect_evals/tau2/data/domains/retail/db.json.gz",
        DATA,
    ),
    "7ac0d3a8a566b7c229a86549c81e4b277830f99245cd6470b9bfe39285c07826",
    f"pip install inspect-evals=={VERSION}",
    "INSPECT_EVALS_WHEEL",
)

_READS = {
    "find_user_id_by_email": "email",
    "find_user_id_by_name_zip": "zip",
    "get_order_details": "order_id",
    "get_product_details": "product_id",
    "get_user_details": "user_id",
    "list_all_product_types": None,
}
_WRITES = {
    "cancel_pending_order": "order_id",
    "exchange_delivered_order_items": "order_id",
    "modify_pending_order_address": "order_id",
    "modify_pending_order_items": "order_id",
    "modify_pending_order_payment": "order_id",
    "modify_user_address": "user_id",
    "return_delivered_order_items": "order_id",
}
# An address that is set twice is set; an order that is cancelled, changed or returned once cannot be again.
_REPEATABLE = frozenset({"modify_pending_order_address", "modify_user_address"})
TEMPLATES = {
    "cancel_pending_order": "cancel_paid_refund",
    "modify_user_address": "address_change",
    "modify_pending_order_address": "address_change",
}
"""First write of a task → the template that it stands for; any other, `partial_refund`."""

TOOLS = (
    *(Tool(name, "read", resource) for name, resource in _READS.items()),
    *(Tool(name, "write", resource, repeatable=name in _REPEATABLE) for name, resource in _WRITES.items()),
)


class RetailState:
    """The shop's database and its tools."""

    def __init__(self, tools: type, database: bytes) -> None:
        from inspect_ai.util import Store

        self._tools = tools(store=Store(), db=pickle.loads(database), initialized=True)  # noqa: S301 - ours

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a call and return its answer, as a JSON value; a refusal as upstream's text."""
        from inspect_ai.tool import ToolError

        try:
            answer = getattr(self._tools, tool)(**arguments)
        except (ToolError, TypeError) as error:
            return f"Error: {error}"
        try:
            return json.loads(answer) if isinstance(answer, str) else answer
        except ValueError:
            return answer

    def database(self) -> Any:
        """Return the database as JSON values."""
        return self._tools.db.model_dump(mode="json")


def check() -> None:
    """Check that every task's own actions succeed: upstream's scorer cannot be asked beside."""
    shop = Retail()
    for task in (task for pool, _ in SHARES for task in shop.tasks(pool)):
        state = shop.begin(task)
        shown = [state.call(*call) for call in task.requests[0].plan]
        if not shop.fulfilled(task, 0, state, shown, len(shown)):
            raise VerificationError("a task's own actions fail it", where=task.name)


class Retail(ForeignWorld):
    """The world."""

    def __init__(self) -> None:
        self.declaration = in_envelope(TOOLS, "tau2_retail")
        self._class, self._database, self._listed = _upstream()
        self._truths: dict[int, tuple[Any, list[Any]]] = {}

    def tasks(self, pool: str) -> Sequence[ForeignTask]:
        """Return a pool's tasks."""
        return self._pools[pool]

    def begin(self, _task: ForeignTask) -> RetailState:
        """Return the database as every task finds it."""
        return RetailState(self._class, self._database)

    def fulfilled(
        self, task: ForeignTask, _request: int, state: Any, shown: Sequence[Any], _made: int
    ) -> bool:
        """Grade a task: on its database, and on what was shown."""
        database, told = self._truth(task.scenario)
        left = list(shown)
        for one in told:
            if one not in left:
                return False
            left.remove(one)
        return bool(state.database() == database)

    def _truth(self, number: int) -> tuple[Any, list[Any]]:
        if number not in self._truths:
            state = RetailState(self._class, self._database)
            told = [state.call(*call) for call in self._listed[number][1]]
            self._truths[number] = (state.database(), told)
        return self._truths[number]

    @cached_property
    def _pools(self) -> dict[str, tuple[ForeignTask, ...]]:
        users = [next(iter(sorted(_users(plan))), str(at)) for at, (_, plan) in enumerate(self._listed)]
        return {
            pool: tuple(self._task(pool, index, number) for index, number in enumerate(numbers))
            for pool, numbers in deal(users, SPLIT).items()
        }

    def _task(self, pool: str, index: int, number: int) -> ForeignTask:
        text, plan = self._listed[number]
        writes = [call.tool for call in plan if call.tool in _WRITES]
        template = TEMPLATES.get(writes[0], "partial_refund") if writes else "open_ticket"
        request = Request(text, template, plan)
        return ForeignTask(
            f"{pool}:{index}", pool, index, f"retail_{number}", (request,), len(writes), number, (0,)
        )


def _users(plan: Sequence[Call]) -> set[str]:
    """Return what says whose task it is: users, and orders where none is named."""
    named = {str(call.arguments[name]) for call in plan for name in ("user_id",) if name in call.arguments}
    return named or {str(call.arguments["order_id"]) for call in plan if "order_id" in call.arguments}


def _upstream() -> tuple[type, bytes, list[tuple[str, tuple[Call, ...]]]]:
    """Return upstream's tools, its database, and each task's text and plan; raises as `Package.files`."""
    made: type = PACKAGE.module("tau2.retail.RetailAgentTools").RetailAgentTools
    from inspect_ai.util import Store

    tools = made(store=Store())
    tools.initialize()
    listed = [(_instruction(task), _plan(task)) for task in json.loads(PACKAGE.files()[DATA])]
    return made, pickle.dumps(tools.db), [each for each in listed if each[1]]


def _instruction(task: Mapping[str, Any]) -> str:
    instructions = task["user_scenario"]["instructions"]
    return "\n".join(str(instructions[name] or "") for name in ("reason_for_call", "known_info"))


def _plan(task: Mapping[str, Any]) -> tuple[Call, ...]:
    known = {*_READS, *_WRITES}
    actions = (task["evaluation_criteria"] or {}).get("actions") or []
    return tuple(Call(each["name"], each["arguments"]) for each in actions if each["name"] in known)
