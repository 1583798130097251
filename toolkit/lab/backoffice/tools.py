"""The thirteen tools of paper app:env: names, parameters, what they return, which record a call is about."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.lab.backoffice import operations
from toolkit.lab.backoffice.parameters import Parameter
from toolkit.lab.backoffice.records import CATEGORIES, PRIORITIES, SERVICES, Customer, Product
from toolkit.lab.backoffice.world import World
from toolkit.noise import tools as noise

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
        *(operations.search_customers, "customers", Customer._fields),
        "Find customers by a part of their name or by their email address.",
        *(_text("query", "Part of a name, or an email address."), _OFFSET),
    ),
    _read(
        *(operations.get_customer, "customer", (*Customer._fields, "tickets")),
        *("Show a customer with their tickets.", _CUSTOMER),
    ),
    _read(
        *(operations.list_orders, "orders", ("order_id", "placed_on", "status", "products")),
        *("List a customer's orders in short.", _CUSTOMER, _OFFSET),
    ),
    _read(
        operations.get_order,
        "order",
        (
            *("order_id", "customer_id", "placed_on", "status", "lines", "shipping_address"),
            *("refundable_cents", "refunded_cents", "pick_list"),
        ),
        "Show an order: lines, address, what can be refunded, and the current pick list.",
        _ORDER,
    ),
    _read(
        *(operations.check_inventory, "product", Product._fields),
        *("Show a product's stock in each warehouse.", _PRODUCT),
    ),
    _write(
        *(operations.update_shipping_address, _ORDER),
        "Change where an order goes, as long as it is pending or paid. Give the whole address.",
        *(_ORDER, _text("street", "Street and number."), _text("city", "City.")),
        *(_text("postal_code", "Postal code.", 20), _text("country", "Country.")),
    ),
    _write(
        *(operations.cancel_order, _ORDER),
        "Cancel a pending or paid order. What a paid order then has refundable is in get_order.",
        *(_ORDER, _REASON),
    ),
    _write(
        *(operations.issue_refund, _ORDER),
        "Refund an amount on a delivered or cancelled order, at most its refundable_cents.",
        _ORDER,
        Parameter("amount_cents", "integer", "Amount in cents.", minimum=1, maximum=10**9),
        _REASON,
    ),
    _write(
        *(operations.reserve_stock, _PRODUCT),
        "Set goods aside for a line of a paid order. The order then has a new pick list.",
        *(_ORDER, _PRODUCT),
        Parameter("quantity", "integer", "How many.", minimum=1, maximum=10**6),
        _text("warehouse", "Warehouse to take them from."),
    ),
    _write(
        *(operations.schedule_shipment, _ORDER),
        "Ship a paid order whose lines are all reserved. Quote the current pick list of get_order.",
        *(_ORDER, _id("pick_list", "Current pick list of the order.")),
        Parameter("service", "string", "Delivery service.", choices=SERVICES),
    ),
    _write(
        *(operations.create_ticket, _CUSTOMER),
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
