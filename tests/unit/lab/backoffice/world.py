"""A small world: every status of an order, two customers of one name, a product with little stock."""

from toolkit.lab.backoffice.records import Address, Customer, Line, Order, Product, Record, Stock, Ticket
from toolkit.lab.backoffice.world import World, build_base, untouched

HOME = Address("1 Elm Street", "Leipzig", "04109", "Germany")
LAMP = Line("P-1", "oak lamp", 2, 1500, 0)
RUG = Line("P-2", "wool rug", 1, 9900, 0)


def order(order_id: str, status: str, *, customer_id: str = "C-1", **changes: object) -> Order:
    """Return an order of one lamp line worth 30.00, with a shipping fee of 5.00."""
    made = Order(order_id, customer_id, "2026-03-07", status, (LAMP,), HOME, 3000, 0, 500, None)  # type: ignore[arg-type]
    return made._replace(**changes)


RECORDS: tuple[Record, ...] = (
    Customer("C-1", "Ada Rossi", "ada@mail.example", "Lyon"),
    Customer("C-2", "Ada Rossi", "ada.r@mail.example", "Bath"),
    order("O-1", "pending", refundable_cents=0),
    order("O-2", "paid"),
    order("O-3", "shipped"),
    order("O-4", "delivered"),
    order("O-5", "cancelled", refundable_cents=0),
    order("O-6", "paid", lines=(LAMP._replace(reserved=2),), pick_list="PL-6-2"),
    order("O-7", "paid", lines=(LAMP, RUG)),
    order("O-8", "pending", customer_id="C-2"),
    Product("P-1", "oak lamp", (Stock("Riga", 5, 1), Stock("Brno", 2, 2))),
    Product("P-2", "wool rug", (Stock("Riga", 1, 0),)),
    Ticket("T-1", "C-1", None, "other", "low", "An old ticket."),
)


def world() -> World:
    """Return the world, untouched."""
    return untouched(build_base(RECORDS))
