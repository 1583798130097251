"""The thirteen tools of paper app:env: names, parameters, what they return, which record a call is about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.lab.backoffice.parameters import Parameter, Refusal
from toolkit.lab.backoffice.records import (
    CATEGORIES,
    PRIORITIES,
    SERVICES,
    Address,
    Customer,
    Order,
    Product,
    Shipment,
    Status,
    Stock,
    Ticket,
)
from toolkit.lab.backoffice.world import World
from toolkit.noise import tools as noise

Answer = dict[str, Any]

PAGE = 10


def search_customers(world: World, query: str, offset: int) -> Answer:
    """Find customers by a part of their name or by their email address."""
    wanted = query.casefold()
    matches = [c._asdict() for c, name, email in world.base.customers if wanted in name or wanted == email]
    return _page(world, "customers", matches, offset)


def get_customer(world: World, customer_id: str) -> Answer:
    """Show a customer with their tickets."""
    customer = world.find(Customer, customer_id)
    tickets = [
        {"ticket_id": t.ticket_id, "order_id": t.order_id, "category": t.category, "priority": t.priority}
        for t in world.tickets_of(customer_id)
    ]
    return {"revision": world.revision, "customer": {**customer._asdict(), "tickets": tickets}}


def list_orders(world: World, customer_id: str, offset: int) -> Answer:
    """List a customer's orders in short."""
    world.find(Customer, customer_id)
    orders = [world.find(Order, order_id) for order_id in world.base.orders_of.get(customer_id, ())]
    short = [
        {
            "order_id": order.order_id,
            "placed_on": order.placed_on,
            "status": order.status,
            "products": [line.product for line in order.lines],
        }
        for order in orders
    ]
    return _page(world, "orders", short, offset)


def get_order(world: World, order_id: str) -> Answer:
    """Show an order with its lines and its address."""
    order = world.find(Order, order_id)
    shown = {
        "order_id": order_id,
        "customer_id": order.customer_id,
        "placed_on": order.placed_on,
        "status": order.status,
        "lines": [line._asdict() for line in order.lines],
        "shipping_address": order.address._asdict(),
        "refundable_cents": order.refundable_cents,
        "refunded_cents": order.refunded_cents,
        "pick_list": order.pick_list,
    }
    return {"revision": world.revision, "order": shown}


def check_inventory(world: World, product_id: str) -> Answer:
    """Show a product's stock in each warehouse."""
    product = world.find(Product, product_id)
    stock = [
        {"warehouse": s.warehouse, "on_hand": s.on_hand, "available": s.on_hand - s.reserved}
        for s in product.stock
    ]
    shown = {"product_id": product_id, "name": product.name, "stock": stock}
    return {"revision": world.revision, "product": shown}


def _page(world: World, name: str, items: Sequence[Answer], offset: int) -> Answer:
    page = list(items[offset : offset + PAGE])
    return {
        "revision": world.revision,
        name: page,
        "has_more": offset + len(page) < len(items),
        "next_offset": offset + len(page),
    }


def update_shipping_address(
    world: World, *, order_id: str, street: str, city: str, postal_code: str, country: str
) -> World:
    """Change where an order goes, as long as it has not been shipped."""
    order = _order(world, order_id, "pending", "paid")
    return world.after(order._replace(address=Address(street, city, postal_code, country)))


def cancel_order(world: World, order_id: str, reason: str) -> World:  # noqa: ARG001 - free text changes nothing
    """Cancel an order that has not been shipped; of a paid one, the shipping fee becomes refundable too."""
    order = _order(world, order_id, "pending", "paid")
    if order.pick_list:
        raise Refusal("conflict", f"{order_id} has reserved stock and cannot be cancelled")
    fee = order.shipping_cents if order.status == "paid" else 0
    return world.after(order._replace(status="cancelled", refundable_cents=order.refundable_cents + fee))


def issue_refund(world: World, order_id: str, amount_cents: int, reason: str) -> World:  # noqa: ARG001
    """Refund part or all of what is refundable on a delivered or cancelled order."""
    order = _order(world, order_id, "delivered", "cancelled")
    if amount_cents > order.refundable_cents:
        raise Refusal("conflict", f"at most {order.refundable_cents} cents of {order_id} can be refunded")
    return world.after(
        order._replace(
            refundable_cents=order.refundable_cents - amount_cents,
            refunded_cents=order.refunded_cents + amount_cents,
        )
    )


def reserve_stock(world: World, order_id: str, product_id: str, quantity: int, warehouse: str) -> World:
    """Set goods aside for a line of a paid order; the warehouse issues a new pick list."""
    order = _order(world, order_id, "paid")
    product = world.find(Product, product_id)
    if product_id not in [line.product_id for line in order.lines]:
        raise Refusal("conflict", f"{order_id} has no line with {product_id}")
    lines = tuple(
        line._replace(reserved=line.reserved + quantity) if line.product_id == product_id else line
        for line in order.lines
    )
    stock = _reserved(product, quantity, warehouse)
    pick_list = f"PL-{order_id[2:]}-{sum(line.reserved for line in lines)}"
    return world.after(order._replace(lines=lines, pick_list=pick_list), product._replace(stock=stock))


def schedule_shipment(world: World, order_id: str, pick_list: str, service: str) -> World:
    """Ship a paid order whose lines are all reserved, by its current pick list."""
    order = _order(world, order_id, "paid")
    if any(line.reserved < line.quantity for line in order.lines):
        raise Refusal("conflict", f"not every line of {order_id} is reserved")
    if pick_list != order.pick_list:
        raise Refusal("conflict", f"{pick_list} is not the current pick list of {order_id}")
    shipment = Shipment(f"S-{order_id[2:]}", order_id, service)
    return world.after(order._replace(status="shipped"), shipment)


def create_ticket(
    world: World, *, customer_id: str, category: str, priority: str, summary: str, order_id: str
) -> World:
    """Open a ticket for a customer, about one of their orders or, with an empty `order_id`, about none."""
    world.find(Customer, customer_id)
    if order_id and world.find(Order, order_id).customer_id != customer_id:
        raise Refusal("conflict", f"{order_id} is not an order of {customer_id}")
    ticket_id = f"T-NEW-{world.revision + 1}"
    return world.after(Ticket(ticket_id, customer_id, order_id or None, category, priority, summary))


def _order(world: World, order_id: str, *allowed: Status) -> Order:
    order = world.find(Order, order_id)
    if order.status not in allowed:
        raise Refusal("conflict", f"{order_id} is {order.status}; this needs {' or '.join(allowed)}")
    return order


def _reserved(product: Product, quantity: int, warehouse: str) -> tuple[Stock, ...]:
    wanted = warehouse.casefold()
    for stock in product.stock:
        if stock.warehouse.casefold() == wanted:
            free = stock.on_hand - stock.reserved
            if quantity > free:
                raise Refusal("conflict", f"{stock.warehouse} has {free} of {product.product_id} available")
            return tuple(
                s._replace(reserved=s.reserved + quantity) if s is stock else s for s in product.stock
            )
    raise Refusal("not_found", f"there is no warehouse {warehouse}")


LONGEST_WAIT = 60
Run = Callable[..., Any]


def _not_for_the_world(*_: Any, **__: Any) -> Any:
    raise ValueError("a control tool is not for the world to carry out")


@dataclass(frozen=True, slots=True)
class Tool(noise.Tool):
    """One tool: what noise has to know of it, and what it does."""

    about: str = ""  # what it does, for an agent
    parameters: tuple[Parameter, ...] = ()  # its arguments
    run: Run = _not_for_the_world  # the read (world → answer) or the write (world → world)


def execute(tool: Tool, world: World, arguments: dict[str, Any]) -> tuple[World, dict[str, Any]]:
    """Carry out a read or a write: the world after it, and the answer."""
    if tool.kind != "write":
        return world, tool.run(world, **arguments)
    written: World = tool.run(world, **arguments)
    return written, {"revision": written.revision}


def _id(name: str, about: str, default: str | None = None) -> Parameter:
    return Parameter(name, "string", about, default, max_length=30, identifier=True)


def _text(name: str, about: str, max_length: int = 200) -> Parameter:
    return Parameter(name, "string", about, max_length=max_length)


_CUSTOMER = _id("customer_id", "Customer, such as C-200013.")
_ORDER = _id("order_id", "Order, such as O-10233.")
_PRODUCT = _id("product_id", "Product, such as P-117.")
_OFFSET = Parameter("offset", "integer", "Where the page starts.", 0, maximum=1000)
_REASON = _text("reason", "Why, in your words.", 500)


def _read(run: Run, shows: str, fields: tuple[str, ...], about: str, *parameters: Parameter) -> Tool:
    """Return the tool of a read, about the record that its first argument names; a list has pages."""
    asked, *page = parameters
    return Tool(
        *(run.__name__, "list" if page else "read", asked.name if asked.identifier else None, shows, fields),
        offset=page[0].name if page else None,
        about=about,
        parameters=parameters,
        run=run,
    )


def _write(run: Run, resource: Parameter, about: str, *parameters: Parameter) -> Tool:
    """Return the tool of a write, about the record that an argument names."""
    return Tool(run.__name__, "write", resource.name, about=about, parameters=parameters, run=run)


_TOOLS = (
    _read(
        *(search_customers, "customers", Customer._fields),
        "Find customers by a part of their name or by their email address.",
        *(_text("query", "Part of a name, or an email address."), _OFFSET),
    ),
    _read(
        *(get_customer, "customer", (*Customer._fields, "tickets")),
        *("Show a customer with their tickets.", _CUSTOMER),
    ),
    _read(
        *(list_orders, "orders", ("order_id", "placed_on", "status", "products")),
        *("List a customer's orders in short.", _CUSTOMER, _OFFSET),
    ),
    _read(
        get_order,
        "order",
        (
            *("order_id", "customer_id", "placed_on", "status", "lines", "shipping_address"),
            *("refundable_cents", "refunded_cents", "pick_list"),
        ),
        "Show an order: lines, address, what can be refunded, and the current pick list.",
        _ORDER,
    ),
    _read(
        *(check_inventory, "product", Product._fields),
        *("Show a product's stock in each warehouse.", _PRODUCT),
    ),
    _write(
        *(update_shipping_address, _ORDER),
        "Change where an order goes, as long as it is pending or paid. Give the whole address.",
        *(_ORDER, _text("street", "Street and number."), _text("city", "City.")),
        *(_text("postal_code", "Postal code.", 20), _text("country", "Country.")),
    ),
    _write(
        *(cancel_order, _ORDER),
        "Cancel a pending or paid order. What a paid order then has refundable is in get_order.",
        *(_ORDER, _REASON),
    ),
    _write(
        *(issue_refund, _ORDER),
        "Refund an amount on a delivered or cancelled order, at most its refundable_cents.",
        _ORDER,
        Parameter("amount_cents", "integer", "Amount in cents.", minimum=1, maximum=10**9),
        _REASON,
    ),
    _write(
        *(reserve_stock, _PRODUCT),
        "Set goods aside for a line of a paid order. The order then has a new pick list.",
        *(_ORDER, _PRODUCT),
        Parameter("quantity", "integer", "How many.", minimum=1, maximum=10**6),
        _text("warehouse", "Warehouse to take them from."),
    ),
    _write(
        *(schedule_shipment, _ORDER),
        "Ship a paid order whose lines are all reserved. Quote the current pick list of get_order.",
        *(_ORDER, _id("pick_list", "Current pick list of the order.")),
        Parameter("service", "string", "Delivery service.", choices=SERVICES),
    ),
    _write(
        *(create_ticket, _CUSTOMER),
        "Open a support ticket for a customer, about one of their orders or about none.",
        _CUSTOMER,
        Parameter("category", "string", "What it is about.", choices=CATEGORIES),
        Parameter("priority", "string", "How urgent it is.", choices=PRIORITIES),
        *(
            _text("summary", "What happened, in your words.", 500),
            _id("order_id", "Order it is about; empty for none.", ""),
        ),
    ),
    Tool(
        "wait",
        "control",
        about="Wait, after a rate limit. Counts as a call.",
        parameters=(Parameter("seconds", "integer", "How long.", minimum=1, maximum=LONGEST_WAIT),),
    ),
    Tool(
        "finish",
        "control",
        about="End the episode. Free of charge.",
        parameters=(Parameter("summary", "string", "What was done, in your words.", "", max_length=2000),),
    ),
)

TOOLS = {tool.name: tool for tool in _TOOLS}
