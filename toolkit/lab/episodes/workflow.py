"""How the work is done when nothing goes wrong: which call comes next, given what was read so far."""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from toolkit.lab.backoffice.records import Address
from toolkit.lab.episodes.brief import Brief, Errand, OrderRef, cents
from toolkit.lab.tasks.task import Call

Answer: TypeAlias = dict[str, Any]
Steps: TypeAlias = "Generator[Call, Answer, None]"

REASON = "customer request"


class Abandoned(Exception):  # noqa: N818 - a signal to the workflow, not an error
    """The call was given up, or what was read does not allow to go on."""


class Knowledge:
    """What the work has found out about the customer so far."""

    __slots__ = ("_brief", "_customer_id", "_orders")

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._customer_id = brief.customer.get("customer_id")
        self._orders: list[Answer] | None = None

    def customer(self) -> Generator[Call, Answer, str]:
        """Find the customer's identifier."""
        if self._customer_id is None:
            stated = self._brief.customer
            query = stated.get("email") or stated["name"]
            answer = yield Call("search_customers", {"query": query})
            matches = [
                customer
                for customer in answer["customers"]
                if customer.get("email") == query
                or (customer.get("name") == query and customer.get("city") == stated.get("city"))
            ]
            self._customer_id = _only(matches, "customer_id")
        return self._customer_id

    def order(self, named: OrderRef | None) -> Generator[Call, Answer, str]:
        """Find an order's identifier."""
        if named is None:
            raise Abandoned
        if named.order_id is not None:
            return named.order_id
        customer = yield from self.customer()
        if self._orders is None:
            answer = yield Call("list_orders", {"customer_id": customer})
            self._orders = answer["orders"]
        matches = [order for order in self._orders if _is_named(order, named)]
        if not matches:
            self._orders = None  # the list may have been incomplete: another errand reads it again
        order_id: str = _only(matches, "order_id")
        return order_id


def workflow(brief: Brief, begins: Callable[[int], None]) -> Steps:
    """Yield every call that the errands need, in order, and end."""
    known = Knowledge(brief)
    for number, errand in enumerate(brief.errands):
        begins(number)
        try:
            yield from errand_steps(errand, known)
        except Abandoned:
            continue


def errand_steps(errand: Errand, known: Knowledge) -> Steps:
    """Yield the calls of one errand; what it finds out stays known for the next one."""
    return _ERRANDS[errand.template](errand, known)


def _address_change(errand: Errand, known: Knowledge) -> Steps:
    order_id = yield from known.order(errand.order)
    address = {name: errand.said[name] for name in Address._fields if name in errand.said}
    if errand.form == "street":
        order = yield from _look(order_id)
        address = {**_field(order, "shipping_address"), **address}
    yield Call("update_shipping_address", {"order_id": order_id, **address})


def _cancel_pending(errand: Errand, known: Knowledge) -> Steps:
    order_id = yield from known.order(errand.order)
    yield Call("cancel_order", {"order_id": order_id, "reason": REASON})


def _cancel_paid_refund(errand: Errand, known: Knowledge) -> Steps:
    order_id = yield from known.order(errand.order)
    yield Call("cancel_order", {"order_id": order_id, "reason": REASON})
    order = yield from _look(order_id)
    yield _refund(order_id, _field(order, "refundable_cents"))


def _partial_refund(errand: Errand, known: Knowledge) -> Steps:
    order_id = yield from known.order(errand.order)
    if errand.form == "amount":
        yield _refund(order_id, cents(errand.said["amount"]))
        return
    order = yield from _look(order_id)
    lines = [line for line in _field(order, "lines") if line["product"] == errand.said["product"]]
    units = 1 if errand.form == "unit" else _only(lines, "quantity")
    yield _refund(order_id, units * _only(lines, "unit_price_cents"))


def _reserve_and_ship(errand: Errand, known: Knowledge) -> Steps:
    stated = errand.said
    order_id = yield from known.order(errand.order)
    if errand.form == "explicit":
        lines = [{"product_id": stated["product_id"], "quantity": int(stated["quantity"])}]
    else:
        lines = _field((yield from _look(order_id)), "lines")
    for line in lines:
        warehouse = stated.get("warehouse") or (yield from _search(line))
        wanted = {name: line[name] for name in ("product_id", "quantity")}
        yield Call("reserve_stock", {"order_id": order_id, **wanted, "warehouse": warehouse})
    yield from _ship(order_id, stated["service"])


def _ship_reserved(errand: Errand, known: Knowledge) -> Steps:
    order_id = yield from known.order(errand.order)
    yield from _ship(order_id, errand.said["service"])


def _open_ticket(errand: Errand, known: Knowledge) -> Steps:
    customer = yield from known.customer()
    arguments = {"customer_id": customer, **errand.said}
    if errand.order is not None:
        arguments["order_id"] = yield from known.order(errand.order)
    yield Call("create_ticket", arguments)


_ERRANDS: dict[str, Callable[[Errand, Knowledge], Steps]] = {
    "address_change": _address_change,
    "cancel_pending": _cancel_pending,
    "cancel_paid_refund": _cancel_paid_refund,
    "partial_refund": _partial_refund,
    "reserve_and_ship": _reserve_and_ship,
    "ship_reserved": _ship_reserved,
    "open_ticket": _open_ticket,
    "open_ticket_no_order": _open_ticket,
}


def _is_named(order: Answer, named: OrderRef) -> bool:
    if named.date is not None:
        return order.get("placed_on") == named.date
    return named.product in order.get("products", ())


def _look(order_id: str) -> Generator[Call, Answer, Answer]:
    answer = yield Call("get_order", {"order_id": order_id})
    order: Answer = answer["order"]
    return order


def look_after(write: Call) -> Call:
    """Return the read that shows whether a write was applied: of its customer, or else of its order."""
    if customer_id := write.arguments.get("customer_id"):
        return Call("get_customer", {"customer_id": customer_id})
    return Call("get_order", {"order_id": write.arguments.get("order_id")})


def _search(line: Answer) -> Generator[Call, Answer, str]:
    answer = yield Call("check_inventory", {"product_id": line["product_id"]})
    stock = _field(answer["product"], "stock")
    enough = [entry for entry in stock if entry["available"] >= line["quantity"]]
    warehouse: str = _only(enough, "warehouse")
    return warehouse


def _ship(order_id: str, service: str) -> Steps:
    order = yield from _look(order_id)
    pick_list = _field(order, "pick_list")
    yield Call("schedule_shipment", {"order_id": order_id, "pick_list": pick_list, "service": service})


def _refund(order_id: str, amount_cents: int) -> Call:
    return Call("issue_refund", {"order_id": order_id, "amount_cents": amount_cents, "reason": REASON})


def _field(record: Answer, name: str) -> Any:
    if record.get(name) is None:
        raise Abandoned
    return record[name]


def _only(matches: list[Answer], name: str) -> Any:
    if len(matches) != 1:
        raise Abandoned
    return _field(matches[0], name)
