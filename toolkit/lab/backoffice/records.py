"""What the back office keeps, as named tuples: they take a third of a dataclass's time to make."""

from typing import Any, Literal, NamedTuple

Status = Literal["pending", "paid", "shipped", "delivered", "cancelled"]

SERVICES = ("standard", "express", "overnight")
CATEGORIES = ("delivery", "damage", "billing", "account", "other")
PRIORITIES = ("low", "normal", "high")


class Customer(NamedTuple):
    """A customer, found by name or email."""

    customer_id: str
    name: str
    email: str
    city: str


class Address(NamedTuple):
    """Where an order goes."""

    street: str
    city: str
    postal_code: str
    country: str


class Line(NamedTuple):
    """One product of an order."""

    product_id: str
    product: str
    quantity: int
    unit_price_cents: int
    reserved: int


class Order(NamedTuple):
    """An order."""

    order_id: str
    customer_id: str
    placed_on: str
    status: Status
    lines: tuple[Line, ...]
    address: Address
    refundable_cents: int  # what can still be refunded; cancelling a paid order adds its shipping fee
    refunded_cents: int
    shipping_cents: int  # the shipping fee, which `get_order` does not show
    pick_list: str | None  # the warehouse's current pick list; each reservation issues a new one


class Stock(NamedTuple):
    """A product in one warehouse."""

    warehouse: str
    on_hand: int
    reserved: int


class Product(NamedTuple):
    """A product with its stock."""

    product_id: str
    name: str
    stock: tuple[Stock, ...]


class Shipment(NamedTuple):
    """A scheduled shipment: one an order."""

    shipment_id: str
    order_id: str
    service: str


class Ticket(NamedTuple):
    """A support ticket, about an order or about none."""

    ticket_id: str
    customer_id: str
    order_id: str | None
    category: str
    priority: str
    summary: str


_FLAT = frozenset({str, int, type(None)})


def plain(value: Any) -> Any:
    """Return a record, or a part of one, as JSON values: named parts become objects."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if not isinstance(value, tuple):
        return value
    # Most parts are texts and numbers, which are plain: asking here saves a call for each.
    parts = [part if type(part) in _FLAT else plain(part) for part in value]
    names = getattr(value, "_fields", None)
    return parts if names is None else dict(zip(names, parts, strict=True))


Record = Customer | Order | Product | Shipment | Ticket
