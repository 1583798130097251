"""Slips: the concrete wrong call that an agent makes in place of the right one.

Which one follows from the call, the text and what was read, never from the plan: the order that fits the
words almost as well, a line's price for a unit's, a decimal point in the wrong place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.tasks.task import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

Answer = dict[str, Any]
DECIMAL_POINT = 10


def slip(call: Call, orders: Sequence[Answer], customers: Sequence[Answer], order: Answer) -> Call | None:
    """Return the wrong call; None where the only way to get it wrong is to forget it.

    Args:
        call: the right call.
        orders: the customer's orders as last listed.
        customers: the customers last found.
        order: the order last looked at.
    """
    arguments = call.arguments
    if call.tool == "issue_refund" and order.get("order_id") == arguments["order_id"]:
        amount = _other_amount(arguments["amount_cents"], order)
        if amount is not None:
            return Call(call.tool, {**arguments, "amount_cents": amount})
    other = _other("order_id", arguments, orders) or _other("customer_id", arguments, customers)
    if other:
        return Call(call.tool, {**arguments, **other})
    if call.tool == "issue_refund" and arguments["amount_cents"] >= DECIMAL_POINT:
        return Call(call.tool, {**arguments, "amount_cents": arguments["amount_cents"] // DECIMAL_POINT})
    return None


def _other_amount(amount: int, order: Answer) -> int | None:
    """Return a line's price for a unit's, or a unit's for a line's; None where there is no such confusion."""
    for line in order.get("lines", ()):
        unit = line["unit_price_cents"]
        whole = unit * line["quantity"]
        if unit != whole and amount in (unit, whole):
            return int(whole if amount == unit else unit)
    return None


def _other(name: str, arguments: Answer, listed: Sequence[Answer]) -> Answer | None:
    """Return another record of a list in place of the one named: of the same status, if there is one."""
    named = arguments.get(name)
    others = [record for record in listed if record.get(name) not in (None, named)]
    if not named or not others:
        return None
    status = next((record.get("status") for record in listed if record.get(name) == named), None)
    alike = [record for record in others if record.get("status") == status]
    return {name: (alike or others)[0][name]}
