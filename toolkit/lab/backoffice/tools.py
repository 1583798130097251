"""The thirteen tools: names, parameters, what they return, and which record a call is about.

Source:
    Paper sec:protocol and app:env: five reads, six writes, `wait`, `finish`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.lab.backoffice import operations
from toolkit.lab.backoffice.parameters import Parameter
from toolkit.lab.backoffice.records import CATEGORIES, PRIORITIES, SERVICES, Customer, Product
from toolkit.lab.backoffice.world import World
from toolkit.noise import tools as noise

LONGEST_WAIT = 60


def _not_for_the_world(*_: Any, **__: Any) -> Any:
    raise ValueError("a control tool is not for the world to carry out")


@dataclass(frozen=True, slots=True)
class Tool(noise.Tool):
    """One tool: what noise has to know of it, and what it does."""

    about: str = ""  # what it does, for an agent
    parameters: tuple[Parameter, ...] = ()  # its arguments
    run: Callable[..., Any] = _not_for_the_world  # the read (world → answer) or the write (world → world)


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

_TOOLS = (
    Tool(
        "search_customers",
        "list",
        shows="customers",
        fields=Customer._fields,
        offset="offset",
        about="Find customers by a part of their name or by their email address.",
        parameters=(_text("query", "Part of a name, or an email address."), _OFFSET),
        run=operations.search_customers,
    ),
    Tool(
        "get_customer",
        "read",
        resource="customer_id",
        shows="customer",
        fields=(*Customer._fields, "tickets"),
        about="Show a customer with their tickets.",
        parameters=(_CUSTOMER,),
        run=operations.get_customer,
    ),
    Tool(
        "list_orders",
        "list",
        resource="customer_id",
        shows="orders",
        fields=("order_id", "placed_on", "status", "products"),
        offset="offset",
        about="List a customer's orders in short.",
        parameters=(_CUSTOMER, _OFFSET),
        run=operations.list_orders,
    ),
    Tool(
        "get_order",
        "read",
        resource="order_id",
        shows="order",
        fields=(
            "order_id",
            "customer_id",
            "placed_on",
            "status",
            "lines",
            "shipping_address",
            "refundable_cents",
            "refunded_cents",
            "pick_list",
        ),
        about="Show an order: lines, address, what can be refunded, and the current pick list.",
        parameters=(_ORDER,),
        run=operations.get_order,
    ),
    Tool(
        "check_inventory",
        "read",
        resource="product_id",
        shows="product",
        fields=Product._fields,
        about="Show a product's stock in each warehouse.",
        parameters=(_PRODUCT,),
        run=operations.check_inventory,
    ),
    Tool(
        "update_shipping_address",
        "write",
        resource="order_id",
        about="Change where an order goes, as long as it is pending or paid. Give the whole address.",
        parameters=(
            _ORDER,
            _text("street", "Street and number."),
            _text("city", "City."),
            _text("postal_code", "Postal code.", 20),
            _text("country", "Country."),
        ),
        run=operations.update_shipping_address,
    ),
    Tool(
        "cancel_order",
        "write",
        resource="order_id",
        about="Cancel a pending or paid order. What a paid order then has refundable is in get_order.",
        parameters=(_ORDER, _REASON),
        run=operations.cancel_order,
    ),
    Tool(
        "issue_refund",
        "write",
        resource="order_id",
        about="Refund an amount on a delivered or cancelled order, at most its refundable_cents.",
        parameters=(
            _ORDER,
            Parameter("amount_cents", "integer", "Amount in cents.", minimum=1, maximum=10**9),
            _REASON,
        ),
        run=operations.issue_refund,
    ),
    Tool(
        "reserve_stock",
        "write",
        resource="product_id",
        about="Set goods aside for a line of a paid order. The order then has a new pick list.",
        parameters=(
            _ORDER,
            _PRODUCT,
            Parameter("quantity", "integer", "How many.", minimum=1, maximum=10**6),
            _text("warehouse", "Warehouse to take them from."),
        ),
        run=operations.reserve_stock,
    ),
    Tool(
        "schedule_shipment",
        "write",
        resource="order_id",
        about="Ship a paid order whose lines are all reserved. Quote the current pick list of get_order.",
        parameters=(
            _ORDER,
            _id("pick_list", "Current pick list of the order."),
            Parameter("service", "string", "Delivery service.", choices=SERVICES),
        ),
        run=operations.schedule_shipment,
    ),
    Tool(
        "create_ticket",
        "write",
        resource="customer_id",
        about="Open a support ticket for a customer, about one of their orders or about none.",
        parameters=(
            _CUSTOMER,
            Parameter("category", "string", "What it is about.", choices=CATEGORIES),
            Parameter("priority", "string", "How urgent it is.", choices=PRIORITIES),
            _text("summary", "What happened, in your words.", 500),
            _id("order_id", "Order it is about; empty for none.", ""),
        ),
        run=operations.create_ticket,
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
