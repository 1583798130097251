"""The world at one moment: an immutable base, and the records that writes have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from toolkit.lab.backoffice.parameters import Refusal
from toolkit.lab.backoffice.records import Customer, Order, Product, Record, Ticket

R = TypeVar("R", Customer, Order, Product)


@dataclass(frozen=True, slots=True)
class Base:
    """The world before any write."""

    records: Mapping[str, Record]  # identifier → record
    # Every customer, by identifier, with name and email as a search compares them
    customers: tuple[tuple[Customer, str, str], ...]
    orders_of: Mapping[str, tuple[str, ...]]  # customer → identifiers of their orders, by identifier
    tickets_of: Mapping[str, tuple[Ticket, ...]]  # customer → their tickets, by identifier


class World(NamedTuple):
    """A base and the changes over it."""

    base: Base  # the world before any write
    # Identifier → record as it is now, for every record that a write made or changed
    changes: Mapping[str, Record]
    revision: int  # how many writes were applied; every answer of a tool carries it

    def find(self, kind: type[R], identifier: str) -> R:
        """Return the record of a kind."""
        record = self.changes.get(identifier) or self.base.records.get(identifier)
        if type(record) is not kind:
            raise Refusal("not_found", f"there is no {kind.__name__.lower()} {identifier}")
        return record

    def after(self, *records: Record) -> World:
        """Return the world after one write; a record's identifier is its first field."""
        changes = dict(self.changes)
        for record in records:
            changes[record[0]] = record
        return World(self.base, changes, self.revision + 1)

    def tickets_of(self, customer_id: str) -> list[Ticket]:
        """Return a customer's tickets, the oldest first."""
        new = [record for record in self.changes.values() if type(record) is Ticket]
        return [*self.base.tickets_of.get(customer_id, ()), *(t for t in new if t.customer_id == customer_id)]


def build_base(records: Iterable[Record]) -> Base:
    """Return the base that records make."""
    known: dict[str, Record] = {}
    orders: dict[str, tuple[str, ...]] = {}
    tickets: dict[str, tuple[Ticket, ...]] = {}
    for record in sorted(records, key=lambda entry: entry[0]):
        if known.setdefault(record[0], record) is not record:
            raise ValueError(f"two records are called {record[0]}")
        if isinstance(record, Order):
            orders[record.customer_id] = (*orders.get(record.customer_id, ()), record.order_id)
        elif isinstance(record, Ticket):
            tickets[record.customer_id] = (*tickets.get(record.customer_id, ()), record)
    customers = tuple(
        (record, record.name.casefold(), record.email.casefold())
        for record in known.values()
        if isinstance(record, Customer)
    )
    return Base(known, customers, orders, tickets)


def untouched(base: Base) -> World:
    """Return the world in which nothing was written yet."""
    return World(base, {}, 0)


def snapshot(world: World) -> dict[str, Record]:
    """Return every record as it is now: the whole world, for comparing worlds without the overlay."""
    return {**world.base.records, **world.changes}
