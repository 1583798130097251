"""The five reads: what of the world each one shows.

A read is a function of the world alone; the answer carries the world's revision, so that a reader can tell a
state from before a write that it knows of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.backoffice.records import Customer, Order, Product
from toolkit.backoffice.world import World

Answer = dict[str, Any]

PAGE = 10


def search_customers(world: World, query: str, offset: int) -> Answer:
    """Find customers by a part of their name or by their email address."""
    wanted = query.casefold()
    found = [
        customer._asdict()
        for customer, name, email in world.base.customers
        if wanted in name or wanted == email
    ]
    return _page(world, "customers", found, offset)


def get_customer(world: World, customer_id: str) -> Answer:
    """Show a customer with their tickets."""
    customer = world.find(Customer, customer_id)
    tickets = [
        {
            "ticket_id": ticket.ticket_id,
            "order_id": ticket.order_id,
            "category": ticket.category,
            "priority": ticket.priority,
        }
        for ticket in world.tickets_of(customer_id)
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
    address = order.address
    shown = {
        "order_id": order_id,
        "customer_id": order.customer_id,
        "placed_on": order.placed_on,
        "status": order.status,
        "lines": [
            {
                "product_id": line.product_id,
                "product": line.product,
                "quantity": line.quantity,
                "unit_price_cents": line.unit_price_cents,
                "reserved": line.reserved,
            }
            for line in order.lines
        ],
        "shipping_address": {
            "street": address.street,
            "city": address.city,
            "postal_code": address.postal_code,
            "country": address.country,
        },
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
