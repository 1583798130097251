"""Slips: which wrong call takes the place of the right one."""

from toolkit.policies.agent import slip
from toolkit.tasks.task import Call

ORDERS = [
    {"order_id": "O-1", "status": "paid"},
    {"order_id": "O-2", "status": "shipped"},
    {"order_id": "O-3", "status": "paid"},
]
LOOKED_AT = {"order_id": "O-1", "lines": [{"unit_price_cents": 500, "quantity": 3}]}
REFUND = Call("issue_refund", {"order_id": "O-1", "amount_cents": 500, "reason": "r"})


def test_another_order_of_the_same_status_is_taken() -> None:
    found = slip(Call("cancel_order", {"order_id": "O-1", "reason": "r"}), ORDERS, [], {})
    assert found == Call("cancel_order", {"order_id": "O-3", "reason": "r"})


def test_any_other_order_where_none_has_the_status() -> None:
    found = slip(Call("get_order", {"order_id": "O-2"}), ORDERS, [], {})
    assert found == Call("get_order", {"order_id": "O-1"})


def test_a_namesake_is_taken_for_the_customer() -> None:
    customers = [{"customer_id": "C-1"}, {"customer_id": "C-2"}]
    assert slip(Call("list_orders", {"customer_id": "C-1"}), [], customers, {}) == Call(
        "list_orders", {"customer_id": "C-2"}
    )


def test_a_lines_price_is_refunded_for_a_units() -> None:
    found = slip(REFUND, ORDERS, [], LOOKED_AT)
    assert found == Call("issue_refund", {**REFUND.arguments, "amount_cents": 1500})


def test_a_units_price_is_refunded_for_a_lines() -> None:
    whole = Call("issue_refund", {**REFUND.arguments, "amount_cents": 1500})
    assert slip(whole, ORDERS, [], LOOKED_AT) == REFUND


def test_a_decimal_point_is_misplaced_where_nothing_else_can_go_wrong() -> None:
    assert slip(REFUND, [], [], {}) == Call("issue_refund", {**REFUND.arguments, "amount_cents": 50})


def test_what_can_only_be_forgotten_is_forgotten() -> None:
    assert slip(Call("cancel_order", {"order_id": "O-1", "reason": "r"}), [], [], {}) is None
