"""The thirteen tools: names, parameters, what they return, and which record a call is about.

Source:
    Paper sec:protocol and app:env: five reads, six writes, `wait`, `finish`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.backoffice import operations
from toolkit.backoffice.parameters import Parameter
from toolkit.backoffice.records import CATEGORIES, PRIORITIES, SERVICES, Customer, Product
from toolkit.backoffice.world import World

Kind = Literal["read", "list", "write", "control"]

ANY_RESOURCE = "*"
LONGEST_WAIT = 60


def _not_for_the_world(*_: Any, **__: Any) -> Any:
    raise ValueError("a control tool is not for the world to carry out")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Args:
        name: its name.
        kind: a `list` is a read that answers in pages; `control` tools touch no record and meet no fault.
        about: what it does, for an agent.
        parameters: its arguments.
        resource: the argument that names the record a call is about; None where free text would.
        shows: name of the answer's record or list of records; None for an acknowledgement.
        fields: fields of that record.
        run: the read (world → answer) or the write (world → world).
    """

    name: str
    kind: Kind
    about: str
    parameters: tuple[Parameter, ...]
    resource: str | None = None
    shows: str | None = None
    fields: tuple[str, ...] = ()
    run: Callable[..., Any] = _not_for_the_world


def execute(tool: Tool, world: World, arguments: dict[str, Any]) -> tuple[World, dict[str, Any]]:
    """Carry out a read or a write: the world after it, and the answer.

    Args:
        tool: a tool that is not a control tool.
        world: the world as it is.
        arguments: one value a parameter, as `read_arguments` returns them.

    Raises:
        Refusal: the world does not allow it.
    """
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
        "Find customers by a part of their name or by their email address.",
        (_text("query", "Part of a name, or an email address."), _OFFSET),
        None,
        "customers",
        Customer._fields,
        operations.search_customers,
    ),
    Tool(
        "get_customer",
        "read",
        "Show a customer with their tickets.",
        (_CUSTOMER,),
        "customer_id",
        "customer",
        (*Customer._fields, "tickets"),
        operations.get_customer,
    ),
    Tool(
        "list_orders",
        "list",
        "List a customer's orders in short.",
        (_CUSTOMER, _OFFSET),
        "customer_id",
        "orders",
        ("order_id", "placed_on", "status", "products"),
        operations.list_orders,
    ),
    Tool(
        "get_order",
        "read",
        "Show an order: lines, address, what can be refunded, and the current pick list.",
        (_ORDER,),
        "order_id",
        "order",
        (
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
        operations.get_order,
    ),
    Tool(
        "check_inventory",
        "read",
        "Show a product's stock in each warehouse.",
        (_PRODUCT,),
        "product_id",
        "product",
        Product._fields,
        operations.check_inventory,
    ),
    Tool(
        "update_shipping_address",
        "write",
        "Change where an order goes, as long as it is pending or paid. Give the whole address.",
        (
            _ORDER,
            _text("street", "Street and number."),
            _text("city", "City."),
            _text("postal_code", "Postal code.", 20),
            _text("country", "Country."),
        ),
        "order_id",
        run=operations.update_shipping_address,
    ),
    Tool(
        "cancel_order",
        "write",
        "Cancel a pending or paid order. What a paid order then has refundable is in get_order.",
        (_ORDER, _REASON),
        "order_id",
        run=operations.cancel_order,
    ),
    Tool(
        "issue_refund",
        "write",
        "Refund an amount on a delivered or cancelled order, at most its refundable_cents.",
        (
            _ORDER,
            Parameter("amount_cents", "integer", "Amount in cents.", minimum=1, maximum=10**9),
            _REASON,
        ),
        "order_id",
        run=operations.issue_refund,
    ),
    Tool(
        "reserve_stock",
        "write",
        "Set goods aside for a line of a paid order. The order then has a new pick list.",
        (
            _ORDER,
            _PRODUCT,
            Parameter("quantity", "integer", "How many.", minimum=1, maximum=10**6),
            _text("warehouse", "Warehouse to take them from."),
        ),
        "product_id",
        run=operations.reserve_stock,
    ),
    Tool(
        "schedule_shipment",
        "write",
        "Ship a paid order whose lines are all reserved. Quote the current pick list of get_order.",
        (
            _ORDER,
            _id("pick_list", "Current pick list of the order."),
            Parameter("service", "string", "Delivery service.", choices=SERVICES),
        ),
        "order_id",
        run=operations.schedule_shipment,
    ),
    Tool(
        "create_ticket",
        "write",
        "Open a support ticket for a customer, about one of their orders or about none.",
        (
            _CUSTOMER,
            Parameter("category", "string", "What it is about.", choices=CATEGORIES),
            Parameter("priority", "string", "How urgent it is.", choices=PRIORITIES),
            _text("summary", "What happened, in your words.", 500),
            _id("order_id", "Order it is about; empty for none.", ""),
        ),
        "customer_id",
        run=operations.create_ticket,
    ),
    Tool(
        "wait",
        "control",
        "Wait, after a rate limit. Counts as a call.",
        (Parameter("seconds", "integer", "How long.", minimum=1, maximum=LONGEST_WAIT),),
    ),
    Tool(
        "finish",
        "control",
        "End the episode. Free of charge.",
        (Parameter("summary", "string", "What was done, in your words.", "", max_length=2000),),
    ),
)

TOOLS = {tool.name: tool for tool in _TOOLS}
