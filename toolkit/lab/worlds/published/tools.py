"""The thirteen tools of the published study's back office, and its rules."""

import copy
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from toolkit.lab.worlds.published.world import (
    CARRIERS,
    CATEGORIES,
    PRIORITIES,
    TODAY,
    Record,
    World,
    missing,
    refunded,
    reserved,
    total,
)

Answer = dict[str, Any]

PAGE = 5
LAST_DAY = TODAY + 7
LONGEST_WAIT = 600
OPEN = ("pending", "paid")


class RefusedError(Exception):
    """A call that a rule refuses; `error` takes what it is made with."""

    def __init__(self, code: str, message: str, **more: object) -> None:
        super().__init__(code)
        self.answer = error(code, message, **more)


def error(code: str, message: str, **more: object) -> Answer:
    """Return the answer to a call that failed."""
    return {"error": {"code": code, "message": message, **more}}


class Shop:
    """A world with its tools."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0
        self.is_finished = False

    def call(self, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Make a call and return its answer."""
        self.calls += 1
        return self._made(tool, arguments, self.world)

    def _made(self, tool: str, arguments: Mapping[str, object], world: World) -> Answer:
        if self.is_finished:
            return error("EPISODE_FINISHED", "the episode has ended; nothing was done")
        if tool not in TOOLS:
            return error("UNKNOWN_TOOL", f"there is no tool {tool!r}")
        try:
            _SIGNATURES[tool].bind(world, **arguments)
        except TypeError as problem:
            return error("INVALID_ARGUMENT", str(problem))
        try:
            answer = TOOLS[tool](world, **arguments)
        except RefusedError as refused:
            return refused.answer
        self.is_finished = tool == "finish"
        return answer


def search_customers(world: World, query: object, offset: object = 0) -> Answer:
    """Return customers whose name, e-mail address or telephone number contains a text."""
    sought, start = _text(query, "query").lower(), _number(offset, "offset", 0)
    hits = [
        {name: customer[name] for name in ("customer_id", "name", "email", "phone")}
        for customer in world.customers.values()
        if any(sought in customer[name].lower() for name in ("name", "email", "phone"))
    ]
    return _page(hits, start)


def get_customer(world: World, customer_id: object) -> Answer:
    """Return a customer's record."""
    return copy.deepcopy(_record(world.customers, customer_id, "customer_id"))


def list_orders(world: World, customer_id: object, offset: object = 0) -> Answer:
    """Return a customer's orders, the newest first."""
    name, start = _text(customer_id, "customer_id"), _number(offset, "offset", 0)
    _record(world.customers, name, "customer_id")
    rows = [
        {
            **{key: order[key] for key in ("order_id", "status", "placed_on_day")},
            "total_cents": total(order),
            "item_count": len(order["items"]),
        }
        for _, order in sorted(world.orders.items(), reverse=True)
        if order["customer_id"] == name
    ]
    return _page(rows, start)


def get_order(world: World, order_id: object) -> Answer:
    """Return an order's record and its sums."""
    order = _record(world.orders, order_id, "order_id")
    return copy.deepcopy(order) | {"total_cents": total(order), "refunded_cents": refunded(order)}


def check_inventory(world: World, sku: object) -> Answer:
    """Return what there is of a product."""
    product = _record(world.products, sku, "sku")
    name = product["sku"]
    return {**product, "reserved": world.reserved(name), "available": world.available(name)}


def update_shipping_address(
    world: World, order_id: object, street: object, city: object, postal_code: object
) -> Answer:
    """Change where an order that was not shipped goes."""
    order = _record(world.orders, order_id, "order_id")
    given = {"street": street, "city": city, "postal_code": postal_code}
    address = {name: _text(value, name) for name, value in given.items()}
    _check_status(order, OPEN, "its address can change before it is shipped")
    order["shipping_address"] = address
    world.writes += 1
    return {"order_id": order["order_id"], "shipping_address": dict(address)}


def cancel_order(world: World, order_id: object, reason: object) -> Answer:
    """Cancel an order that was not shipped, and release what is reserved for it."""
    order = _record(world.orders, order_id, "order_id")
    _text(reason, "reason")
    _check_status(order, OPEN, "it can be cancelled before it is shipped")
    was_paid = order["status"] == "paid"
    order.update(status="cancelled", paid_before_cancel=was_paid, reservations=[])
    world.writes += 1
    due = total(order) - refunded(order) if was_paid else 0
    return {"order_id": order["order_id"], "status": "cancelled", "refund_due_cents": due}


def issue_refund(world: World, order_id: object, amount_cents: object, reason: object) -> Answer:
    """Refund part of an order, or all of it."""
    order = _record(world.orders, order_id, "order_id")
    amount, why = _number(amount_cents, "amount_cents", 1), _text(reason, "reason")
    status = order["status"]
    if status in {"pending", "shipped"} or (status == "cancelled" and not order["paid_before_cancel"]):
        raise RefusedError("RULE_VIOLATION", f"order {order['order_id']} is {status}: nothing to refund now")
    balance = total(order) - refunded(order)
    if amount > balance:
        raise RefusedError(
            "RULE_VIOLATION", f"no more than {balance} can be refunded", refundable_balance_cents=balance
        )
    order["refunds"].append({"amount_cents": amount, "reason": why})
    world.writes += 1
    return {
        "order_id": order["order_id"],
        "refund_cents": amount,
        "refunded_total_cents": refunded(order),
        "refundable_balance_cents": balance - amount,
    }


def reserve_stock(world: World, sku: object, quantity: object, order_id: object) -> Answer:
    """Reserve a product for an order that it is on."""
    product = _record(world.products, sku, "sku")["sku"]
    order = _record(world.orders, order_id, "order_id")
    wanted = _number(quantity, "quantity", 1)
    _check_status(order, OPEN, "stock is reserved before an order is shipped")
    lacks = missing(order).get(product, 0)
    if wanted > lacks:
        raise RefusedError("RULE_VIOLATION", f"order {order['order_id']} lacks {lacks} of {product}")
    left = world.available(product)
    if wanted > left:
        raise RefusedError("RULE_VIOLATION", f"{left} of {product} are available", available=left)
    order["reservations"].append({"sku": product, "quantity": wanted})
    world.writes += 1
    return {
        "order_id": order["order_id"],
        "sku": product,
        "reserved_quantity": reserved(order, product),
        "available_after": world.available(product),
    }


def schedule_shipment(world: World, order_id: object, carrier: object, day: object) -> Answer:
    """Ship a paid order for which everything is reserved."""
    order = _record(world.orders, order_id, "order_id")
    by, on = _one_of(carrier, "carrier", CARRIERS), _number(day, "day")
    if not TODAY <= on <= LAST_DAY:
        raise RefusedError("RULE_VIOLATION", f"day has to be {TODAY} to {LAST_DAY}", today_day=TODAY)
    _check_status(order, ("paid",), "paid orders are shipped")
    if missing(order):
        raise RefusedError("RULE_VIOLATION", "something on the order is not reserved")
    for item in order["items"]:
        world.products[item["sku"]]["stock"] -= item["quantity"]
    shipment = {
        "shipment_id": f"S{len(world.shipments) + 1:04d}",
        "order_id": order["order_id"],
        "carrier": by,
        "scheduled_day": on,
        "status": "scheduled",
    }
    order.update(reservations=[], status="shipped", shipment_id=shipment["shipment_id"])
    world.shipments[shipment["shipment_id"]] = shipment
    world.writes += 1
    return dict(shipment)


def create_ticket(
    world: World,
    *,
    customer_id: object,
    order_id: object,
    category: object,
    priority: object,
    summary: object,
) -> Answer:
    """Open a ticket of a customer, about one of their orders or none."""
    customer = _record(world.customers, customer_id, "customer_id")
    about = _one_of(category, "category", CATEGORIES)
    urgency, text = _one_of(priority, "priority", PRIORITIES), _text(summary, "summary")
    linked = None
    if isinstance(order_id, str) and order_id.strip():
        order = _record(world.orders, order_id, "order_id")
        linked = order["order_id"]
        if order["customer_id"] != customer["customer_id"]:
            raise RefusedError("RULE_VIOLATION", f"order {linked} is another customer's")
    ticket = {
        "ticket_id": f"T{len(world.tickets) + 1:04d}",
        "customer_id": customer["customer_id"],
        "order_id": linked,
        "category": about,
        "priority": urgency,
        "status": "open",
    }
    world.tickets[ticket["ticket_id"]] = {**ticket, "summary": text}
    world.writes += 1
    return ticket


def wait(world: World, seconds: object) -> Answer:
    """Let time pass."""
    passed = _number(seconds, "seconds", 1)
    if passed > LONGEST_WAIT:
        raise RefusedError("INVALID_ARGUMENT", f"seconds has to be {LONGEST_WAIT} at most")
    world.clock += passed
    return {"waited_seconds": passed, "clock_seconds": world.clock}


def finish(_world: World, summary: object) -> Answer:
    """End the episode."""
    _text(summary, "summary")
    return {"status": "finished"}


_READS = (search_customers, get_customer, list_orders, get_order, check_inventory)
_CHANGES = (update_shipping_address, cancel_order, issue_refund, reserve_stock, schedule_shipment)
READS = {tool.__name__: tool for tool in _READS}
WRITES = {tool.__name__: tool for tool in (*_CHANGES, create_ticket)}
CONTROLS = {tool.__name__: tool for tool in (wait, finish)}
TOOLS: dict[str, Callable[..., Answer]] = {**READS, **WRITES, **CONTROLS}
_SIGNATURES = {name: signature(tool) for name, tool in TOOLS.items()}


def _text(value: object, name: str) -> str:
    """Return a text; a whole number is the text of its digits."""
    if not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    ):
        value = str(int(value))
    if not isinstance(value, str) or not value.strip():
        raise RefusedError("INVALID_ARGUMENT", f"{name} has to be a text that is not empty")
    return value.strip()


def _number(value: object, name: str, least: int | None = None) -> int:
    """Return a whole number, which a text may give in digits."""
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError("INVALID_ARGUMENT", f"{name} has to be a whole number")
    if least is not None and value < least:
        raise RefusedError("INVALID_ARGUMENT", f"{name} has to be {least} at least")
    return value


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    given = _text(value, name).lower()
    if given not in allowed:
        raise RefusedError("INVALID_ARGUMENT", f"{name} has to be one of {', '.join(allowed)}")
    return given


def _record(table: Mapping[str, Record], identifier: object, name: str) -> Record:
    found = table.get(_text(identifier, name))
    if found is None:
        raise RefusedError("NOT_FOUND", f"there is no {name} {identifier}")
    return found


def _check_status(order: Record, allowed: tuple[str, ...], rule: str) -> None:
    if order["status"] not in allowed:
        raise RefusedError("INVALID_STATE", f"order {order['order_id']} is {order['status']}; {rule}")


def _page(rows: list[Record], offset: int) -> Answer:
    following = offset + PAGE if offset + PAGE < len(rows) else None
    return {
        "results": rows[offset : offset + PAGE],
        "total": len(rows),
        "offset": offset,
        "next_offset": following,
    }
