"""Slips: which wrong call takes the place of the right one."""

from typing import Any

import pytest

from toolkit.lab.policies.agent import slip
from toolkit.lab.tasks.task import Call

ORDERS = [
    {"order_id": "O-1", "status": "paid"},
    {"order_id": "O-2", "status": "shipped"},
    {"order_id": "O-3", "status": "paid"},
]
LOOKED_AT = {"order_id": "O-1", "lines": [{"unit_price_cents": 500, "quantity": 3}]}
REFUND = Call("issue_refund", {"order_id": "O-1", "amount_cents": 500, "reason": "r"})


CUSTOMERS = [{"customer_id": "C-1"}, {"customer_id": "C-2"}]
WHOLE = {"amount_cents": 1500}
CANCEL = Call("cancel_order", {"order_id": "O-1", "reason": "r"})


@pytest.mark.parametrize(
    ("call", "orders", "order", "changed"),
    [
        (CANCEL, ORDERS, {}, {"order_id": "O-3"}),
        (Call("get_order", {"order_id": "O-2"}), ORDERS, {}, {"order_id": "O-1"}),
        (Call("list_orders", {"customer_id": "C-1"}), [], {}, {"customer_id": "C-2"}),
        (REFUND, ORDERS, LOOKED_AT, WHOLE),
        (Call("issue_refund", {**REFUND.arguments, **WHOLE}), ORDERS, LOOKED_AT, {"amount_cents": 500}),
        (REFUND, [], {}, {"amount_cents": 50}),
    ],
    ids=["same status", "any order", "namesake", "line for unit", "unit for line", "decimal point"],
)
def test_what_is_taken_in_place_of_the_right_call(
    call: Call, orders: list[dict[str, Any]], order: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert slip(call, orders, CUSTOMERS, order) == Call(call.tool, {**call.arguments, **changed})


def test_what_can_only_be_forgotten_is_forgotten() -> None:
    assert slip(CANCEL, [], [], {}) is None
