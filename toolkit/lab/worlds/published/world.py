"""A world of the published study from its seed, and what its rules ask of an order."""

import copy
import pickle
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolkit.lab.worlds.published.words import Words

Record = dict[str, Any]
Table = dict[str, Record]

TODAY = 100
CUSTOMERS, PRODUCTS, ORDERS, TICKETS = 40, 30, 80, 10
STATUSES = {"pending": 25, "paid": 30, "shipped": 20, "delivered": 15, "cancelled": 10}
"""Status of an order → its weight."""
CARRIERS = ("standard", "express")
CATEGORIES = ("billing", "shipping", "product", "account", "other")
PRIORITIES = ("low", "normal", "high")
TIERS = ("standard", "gold")
STOCKS = (0, 0, 2, 5, 10, 20, 50)


@dataclass
class World:
    """Records by table and identifier, the clock, and how many writes were carried out."""

    customers: Table = field(default_factory=dict)
    products: Table = field(default_factory=dict)
    orders: Table = field(default_factory=dict)
    shipments: Table = field(default_factory=dict)
    tickets: Table = field(default_factory=dict)
    clock: int = 0
    writes: int = 0

    def packed(self) -> bytes:
        """Return its bytes, of which `unpacked` makes as many worlds as are asked for."""
        return pickle.dumps(self)

    def available(self, sku: str) -> int:
        """Return how much of a product is reserved for nobody."""
        stock: int = self.products[sku]["stock"]
        return stock - self.reserved(sku)

    def reserved(self, sku: str) -> int:
        """Return how much of a product is reserved for all orders."""
        return sum(reserved(order, sku) for order in self.orders.values())


def unpacked(packed: bytes) -> World:
    """Return a world from its bytes."""
    world: World = pickle.loads(packed)  # noqa: S301 - this process packed it
    return world


def total(order: Record) -> int:
    """Return what an order costs, in cents."""
    return sum(item["quantity"] * item["unit_price_cents"] for item in order["items"])


def refunded(order: Record) -> int:
    """Return what was refunded of an order, in cents."""
    return sum(refund["amount_cents"] for refund in order["refunds"])


def reserved(order: Record, sku: str) -> int:
    """Return how much of a product is reserved for an order."""
    return sum(each["quantity"] for each in order["reservations"] if each["sku"] == sku)


def missing(order: Record) -> dict[str, int]:
    """Return product → how much of it has yet to be reserved for an order."""
    lacks = {item["sku"]: item["quantity"] - reserved(order, item["sku"]) for item in order["items"]}
    return {sku: quantity for sku, quantity in lacks.items() if quantity > 0}


def make_world(seed: int, words: Words) -> World:
    """Return the world of a seed."""
    draw, world = random.Random(seed), World()  # noqa: S311 - the authors' generator
    names: set[str] = set()
    for n in range(1, CUSTOMERS + 1):
        customer = _customer(draw, world, words, names, n)
        world.customers[customer["customer_id"]] = customer
    products = list(words.lists["product"])
    draw.shuffle(products)
    for n in range(1, PRODUCTS + 1):
        price, stock = draw.randrange(500, 50001, 50), draw.choice(STOCKS)
        sku = f"SKU-{n:04d}"
        world.products[sku] = {"sku": sku, "name": products[n - 1], "price_cents": price, "stock": stock}
    for n in range(1, ORDERS + 1):
        order = _order(draw, world, words, f"O{n:04d}")
        world.orders[order["order_id"]] = order
    _stock_up(draw, world)
    for n in range(1, TICKETS + 1):
        order = world.orders[draw.choice(list(world.orders))]
        ticket = f"T{n:04d}"
        world.tickets[ticket] = {
            "ticket_id": ticket,
            "customer_id": order["customer_id"],
            "order_id": order["order_id"] if _chance(draw, 0.7) else None,
            "category": draw.choice(CATEGORIES),
            "priority": draw.choice(PRIORITIES),
            "summary": draw.choice(words.lists["summary"]),
            "status": draw.choice(("open", "closed")),
        }
    return world


def _customer(draw: random.Random, world: World, words: Words, names: set[str], n: int) -> Record:
    """Return a customer; three in ten have the last name of an earlier one."""
    firsts = words.lists["first"]
    if n > 1 and _chance(draw, 0.3):
        last = world.customers[f"C{draw.randint(1, n - 1):04d}"]["name"].split(" ")[-1]
        first = draw.choice(firsts)
    else:
        first, last = draw.choice(firsts), draw.choice(words.lists["last"])
    while f"{first} {last}" in names:
        first = draw.choice(firsts)
    names.add(f"{first} {last}")
    return {
        "customer_id": f"C{n:04d}",
        "name": f"{first} {last}",
        "email": f"{first.lower()}.{last.lower()}{n}@example.com",
        "phone": "+880" + "".join(str(draw.randint(0, 9)) for _ in range(10)),
        "address": _address(draw, words),
        "tier": draw.choice(TIERS),
    }


def _chance(draw: random.Random, p: float) -> bool:
    return draw.random() < p


def _address(draw: random.Random, words: Words) -> Record:
    return {
        "street": f"{draw.randint(1, 250)} {draw.choice(words.lists['street'])}",
        "city": draw.choice(words.lists["city"]),
        "postal_code": str(draw.randint(1000, 9999)),
    }


def _order(draw: random.Random, world: World, words: Words, name: str) -> Record:
    customer = world.customers[draw.choice(list(world.customers))]
    items = [
        {"sku": sku, "quantity": draw.randint(1, 3), "unit_price_cents": world.products[sku]["price_cents"]}
        for sku in draw.sample(list(world.products), draw.randint(1, 3))
    ]
    status = draw.choices(list(STATUSES), list(STATUSES.values()))[0]
    is_home = _chance(draw, 0.8)
    order: Record = {
        "order_id": name,
        "customer_id": customer["customer_id"],
        "items": items,
        "status": status,
        "shipping_address": copy.copy(customer["address"]) if is_home else _address(draw, words),
        "placed_on_day": TODAY - draw.randint(0, 30),
        "paid_before_cancel": False,
        "refunds": [],
        "reservations": [],
        "shipment_id": None,
    }
    if status in {"shipped", "delivered"}:
        shipment = order["shipment_id"] = f"S{len(world.shipments) + 1:04d}"
        world.shipments[shipment] = {
            "shipment_id": shipment,
            "order_id": name,
            "carrier": draw.choice(CARRIERS),
            "scheduled_day": order["placed_on_day"] + draw.randint(1, 5),
            "status": "delivered" if status == "delivered" else "in_transit",
        }
        if status == "delivered" and _chance(draw, 0.3):
            amount = draw.choice(items)["unit_price_cents"]
            order["refunds"] = [{"amount_cents": amount, "reason": draw.choice(words.lists["refunded"])}]
    elif status == "paid" and _chance(draw, 0.5):
        order["reservations"] = [{"sku": item["sku"], "quantity": item["quantity"]} for item in items]
    elif status == "cancelled":
        order["paid_before_cancel"] = _chance(draw, 0.5)
        if order["paid_before_cancel"] and _chance(draw, 0.6):
            order["refunds"] = [{"amount_cents": total(order), "reason": words.reasons["refund"]}]
    return order


def _stock_up(draw: random.Random, world: World) -> None:
    """Have enough in stock for what is reserved, and for most paid orders."""
    held: Counter[str] = Counter()
    for order in world.orders.values():
        for each in order["reservations"]:
            held[each["sku"]] += each["quantity"]
    for sku, product in world.products.items():
        product["stock"] = max(product["stock"], held[sku])
    for order in world.orders.values():
        if order["status"] == "paid" and missing(order) and _chance(draw, 0.7):
            for sku, quantity in missing(order).items():
                product = world.products[sku]
                product["stock"] = max(product["stock"], held[sku] + quantity)
