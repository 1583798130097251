"""Sub-requests as they were meant, which only the generator sees: their plan, and their words in a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.lab.backoffice.records import Customer, Order
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.tasks.task import Call
from toolkit.lab.tasks.templates import CLOSINGS, CUSTOMERS, FORMS, MARKS, ORDERS, Form, Template
from toolkit.lab.tasks.vocabulary import MONTHS
from toolkit.seeds import Stream


@dataclass(frozen=True)
class Request:
    """One sub-request."""

    template: Template  # which of the eight
    form: str  # how much of it stands in the text
    order: Order | None  # the order it is about; None for a ticket about none
    named_by: str  # how the text names the order: id, date or product
    slots: dict[str, Any]  # values that the text states or that the plan needs
    # Product → warehouse that its stock is to be taken from
    sources: dict[str, str] = field(default_factory=dict)


def plan(customer: Customer, named_by: str, requests: tuple[Request, ...]) -> tuple[Call, ...]:
    """Return the calls that fulfil the requests, each read made when something is first needed from it."""
    calls: list[Call] = []
    customer_known = named_by == "id"
    orders_known = False
    for request in requests:
        described = request.order is not None and request.named_by != "id"
        if not customer_known and (described or request.template.startswith("open_ticket")):
            calls.append(Call("search_customers", {"query": getattr(customer, named_by)}))
            customer_known = True
        if described and not orders_known:
            calls.append(Call("list_orders", {"customer_id": customer.customer_id}))
            orders_known = True
        calls += _STEPS[request.template](request)
    return tuple(calls)


def count_writes(calls: tuple[Call, ...]) -> int:
    """Return how many of the calls are writes."""
    return sum(TOOLS[call.tool].kind == "write" for call in calls)


def _address_change(request: Request) -> list[Call]:
    order = _order(request)
    address = request.slots["address"]
    write = Call("update_shipping_address", {"order_id": order.order_id, **address._asdict()})
    return [write] if request.form == "whole" else [_look(order), write]


def _cancel_pending(request: Request) -> list[Call]:
    return [_cancel(_order(request))]


def _cancel_paid_refund(request: Request) -> list[Call]:
    order = _order(request)
    refundable = order.refundable_cents + order.shipping_cents
    return [_cancel(order), _look(order), _refund(order, refundable)]


def _partial_refund(request: Request) -> list[Call]:
    order = _order(request)
    refund = _refund(order, request.slots["amount_cents"])
    return [refund] if request.form == "amount" else [_look(order), refund]


def _reserve_and_ship(request: Request) -> list[Call]:
    order = _order(request)
    calls = [] if request.form == "explicit" else [_look(order)]
    for line in order.lines:
        if request.form == "search":
            calls.append(Call("check_inventory", {"product_id": line.product_id}))
        goods = {"product_id": line.product_id, "quantity": line.quantity}
        source = {"warehouse": request.sources[line.product_id]}
        calls.append(Call("reserve_stock", {"order_id": order.order_id, **goods, **source}))
    return [*calls, _look(order), _ship(order, request)]


def _ship_reserved(request: Request) -> list[Call]:
    order = _order(request)
    return [_look(order), _ship(order, request)]


def _open_ticket(request: Request) -> list[Call]:
    slots = request.slots
    arguments = {name: slots[name] for name in ("customer_id", "category", "priority", "summary")}
    if request.order is not None:
        arguments["order_id"] = request.order.order_id
    return [Call("create_ticket", arguments)]


_STEPS = {
    "address_change": _address_change,
    "cancel_pending": _cancel_pending,
    "cancel_paid_refund": _cancel_paid_refund,
    "partial_refund": _partial_refund,
    "reserve_and_ship": _reserve_and_ship,
    "ship_reserved": _ship_reserved,
    "open_ticket": _open_ticket,
    "open_ticket_no_order": _open_ticket,
}


def _order(request: Request) -> Order:
    if request.order is None:
        raise ValueError(f"{request.template} needs an order")
    return request.order


def _look(order: Order) -> Call:
    return Call("get_order", {"order_id": order.order_id})


def _cancel(order: Order) -> Call:
    return Call("cancel_order", {"order_id": order.order_id, "reason": "customer request"})


def _refund(order: Order, cents: int) -> Call:
    return Call(
        "issue_refund", {"order_id": order.order_id, "amount_cents": cents, "reason": "customer request"}
    )


def _ship(order: Order, request: Request) -> Call:
    reserved = sum(line.quantity for line in order.lines)
    pick_list = order.pick_list or f"PL-{order.order_id[2:]}-{reserved}"
    return Call(
        "schedule_shipment",
        {"order_id": order.order_id, "pick_list": pick_list, "service": request.slots["service"]},
    )


def write_prompt(stream: Stream, customer: Customer, customer_by: str, requests: Sequence[Request]) -> str:
    """Return a prompt: who asks, one line a sub-request, perhaps a closing line."""
    marks = stream.choice(MARKS)
    lines = [_phrasing(stream, CUSTOMERS, customer_by).format(**customer._asdict())]
    lines += [mark + _sentence(stream, request) for mark, request in zip(marks, requests, strict=False)]
    closing = stream.choice(CLOSINGS)
    return "\n".join([*lines, closing] if closing else lines)


def spoken_date(date: str) -> str:
    """Return an ISO date as people write it: 2026-03-07 → 7 March 2026."""
    year, month, day = date.split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def _sentence(stream: Stream, request: Request) -> str:
    text = _phrasing(stream, FORMS[request.template], request.form)
    return text.format(**_values(stream, request))


def _values(stream: Stream, request: Request) -> dict[str, Any]:
    values = dict(request.slots)
    if "address" in values:
        values |= values.pop("address")._asdict()
    if "amount_cents" in values:
        values["amount"] = _money(stream, values["amount_cents"])
    order = request.order
    if order is None:
        return values
    line = order.lines[0]
    if request.form == "explicit":
        values |= {"quantity": line.quantity, "product_id": line.product_id}
    if request.sources:
        values["warehouse"] = request.sources[line.product_id]
    naming = _phrasing(stream, ORDERS, request.named_by)
    date = spoken_date(order.placed_on) if stream.below(2) else order.placed_on
    values["order"] = naming.format(
        order_id=order.order_id, date=date, product=request.slots.get("own_product")
    )
    return values


def _money(stream: Stream, cents: int) -> str:
    amount = f"{cents // 100}.{cents % 100:02d}"
    return stream.choice((f"${amount}", f"{amount} dollars"))


def _phrasing(stream: Stream, forms: Sequence[Form], name: str) -> str:
    return stream.choice(next(form for form in forms if form.name == name).phrasings)
