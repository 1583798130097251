"""The generator: from a world seed to a task, with nothing else entering (paper app:env, "Tasks").

Steps, whose numbers the code repeats:

1. Draw the templates and their forms. Forms, and the world with them, are drawn again until the plan fits the
   budget even if every write has to be sent twice, as in the challenge regime. Templates are never redrawn:
   their weights hold.
2. Make the customer who asks, a namesake and strangers.
3. Make one order a sub-request, in the state that its template needs, and orders nobody asks about.
4. Stock the warehouses: goods that are to be reserved lie in one warehouse in sufficient number, and in too
   small a number in the others.
5. Put it into words; make the plan; carry it out on the world for the expected end state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from toolkit.lab.backoffice import records
from toolkit.lab.backoffice.records import Customer, Order, Record
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import Base, build_base, untouched
from toolkit.lab.tasks import vocabulary
from toolkit.lab.tasks.task import Call, Task, budget
from toolkit.lab.tasks.templates import (
    CLOSINGS,
    CUSTOMERS,
    FORMS,
    MARKS,
    ORDERS,
    REQUESTS_PER_TASK,
    WEIGHTS,
    Form,
    Template,
)
from toolkit.lab.tasks.vocabulary import MONTHS
from toolkit.seeds import Stream, world_seed


@dataclass(frozen=True)
class Request:
    """One sub-request."""

    template: Template  # which of the eight
    form: str  # how much of it stands in the text
    order: Order | None  # the order it is about; None for a ticket about none
    named_by: str  # how the text names the order: id, date or product
    slots: dict[str, Any]  # values that the text states or that the plan needs
    # Product → warehouse that its stock is to be taken from
    sources: dict[str, str] = field(default_factory=dict)


def plan(customer: Customer, named_by: str, requests: tuple[Request, ...]) -> tuple[Call, ...]:
    """Return the calls that fulfil the requests, each read made when something is first needed from it."""
    calls: list[Call] = []
    customer_known = named_by == "id"
    orders_known = False
    for request in requests:
        described = request.order is not None and request.named_by != "id"
        if not customer_known and (described or request.template.startswith("open_ticket")):
            calls.append(Call("search_customers", {"query": getattr(customer, named_by)}))
            customer_known = True
        if described and not orders_known:
            calls.append(Call("list_orders", {"customer_id": customer.customer_id}))
            orders_known = True
        calls += _STEPS[request.template](request)
    return tuple(calls)


def _address_change(request: Request) -> list[Call]:
    order = _order(request)
    address = request.slots["address"]
    write = Call("update_shipping_address", {"order_id": order.order_id, **address._asdict()})
    return [write] if request.form == "whole" else [_look(order), write]


def _cancel_pending(request: Request) -> list[Call]:
    return [_cancel(_order(request))]


def _cancel_paid_refund(request: Request) -> list[Call]:
    order = _order(request)
    refundable = order.refundable_cents + order.shipping_cents
    return [_cancel(order), _look(order), _refund(order, refundable)]


def _partial_refund(request: Request) -> list[Call]:
    order = _order(request)
    refund = _refund(order, request.slots["amount_cents"])
    return [refund] if request.form == "amount" else [_look(order), refund]


def _reserve_and_ship(request: Request) -> list[Call]:
    order = _order(request)
    calls = [] if request.form == "explicit" else [_look(order)]
    for line in order.lines:
        if request.form == "search":
            calls.append(Call("check_inventory", {"product_id": line.product_id}))
        goods = {"product_id": line.product_id, "quantity": line.quantity}
        source = {"warehouse": request.sources[line.product_id]}
        calls.append(Call("reserve_stock", {"order_id": order.order_id, **goods, **source}))
    return [*calls, _look(order), _ship(order, request)]


def _ship_reserved(request: Request) -> list[Call]:
    order = _order(request)
    return [_look(order), _ship(order, request)]


def _open_ticket(request: Request) -> list[Call]:
    slots = request.slots
    arguments = {name: slots[name] for name in ("customer_id", "category", "priority", "summary")}
    if request.order is not None:
        arguments["order_id"] = request.order.order_id
    return [Call("create_ticket", arguments)]


_STEPS = {
    "address_change": _address_change,
    "cancel_pending": _cancel_pending,
    "cancel_paid_refund": _cancel_paid_refund,
    "partial_refund": _partial_refund,
    "reserve_and_ship": _reserve_and_ship,
    "ship_reserved": _ship_reserved,
    "open_ticket": _open_ticket,
    "open_ticket_no_order": _open_ticket,
}


def _order(request: Request) -> Order:
    if request.order is None:
        raise ValueError(f"{request.template} needs an order")
    return request.order


def _look(order: Order) -> Call:
    return Call("get_order", {"order_id": order.order_id})


def _cancel(order: Order) -> Call:
    return Call("cancel_order", {"order_id": order.order_id, "reason": "customer request"})


def _refund(order: Order, cents: int) -> Call:
    return Call(
        "issue_refund", {"order_id": order.order_id, "amount_cents": cents, "reason": "customer request"}
    )


def _ship(order: Order, request: Request) -> Call:
    reserved = sum(line.quantity for line in order.lines)
    pick_list = order.pick_list or f"PL-{order.order_id[2:]}-{reserved}"
    return Call(
        "schedule_shipment",
        {"order_id": order.order_id, "pick_list": pick_list, "service": request.slots["service"]},
    )


def write_prompt(stream: Stream, customer: Customer, customer_by: str, requests: Sequence[Request]) -> str:
    """Return a prompt: who asks, one line a sub-request, perhaps a closing line."""
    marks = stream.choice(MARKS)
    lines = [_phrasing(stream, CUSTOMERS, customer_by).format(**customer._asdict())]
    lines += [mark + _sentence(stream, request) for mark, request in zip(marks, requests, strict=False)]
    closing = stream.choice(CLOSINGS)
    return "\n".join([*lines, closing] if closing else lines)


def date_in_words(date: str) -> str:
    """Return an ISO date as people write it: 2026-03-07 → 7 March 2026."""
    year, month, day = date.split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def _sentence(stream: Stream, request: Request) -> str:
    text = _phrasing(stream, FORMS[request.template], request.form)
    return text.format(**_values(stream, request))


def _values(stream: Stream, request: Request) -> dict[str, Any]:
    values = dict(request.slots)
    if "address" in values:
        values |= values.pop("address")._asdict()
    if "amount_cents" in values:
        amount = "{}.{:02d}".format(*divmod(values["amount_cents"], 100))
        values["amount"] = stream.choice((f"${amount}", f"{amount} dollars"))
    order = request.order
    if order is None:
        return values
    line = order.lines[0]
    if request.form == "explicit":
        values |= {"quantity": line.quantity, "product_id": line.product_id}
    if request.sources:
        values["warehouse"] = request.sources[line.product_id]
    naming = _phrasing(stream, ORDERS, request.named_by)
    date = date_in_words(order.placed_on) if stream.below(2) else order.placed_on
    values["order"] = naming.format(
        order_id=order.order_id, date=date, product=request.slots.get("own_product")
    )
    return values


def _phrasing(stream: Stream, forms: Sequence[Form], name: str) -> str:
    return stream.choice(next(form for form in forms if form.name == name).phrasings)


# A range of customer numbers for each pool: identifiers of two pools never meet.
FIRST_NUMBER = {
    "train": 100_000,
    "validation": 200_000,
    "test": 300_000,
    "diagnostic": 400_000,
    "diagnostic_128": 500_000,
}
PER_WORLD = 5
PRODUCTS = 10
MOST_ORDERS = 8
DAYS_PER_MONTH = 28
OPEN: tuple[records.Status, ...] = ("pending", "paid")
ANY: tuple[records.Status, ...] = ("pending", "paid", "shipped", "delivered", "cancelled")
STATUS: dict[Template, tuple[records.Status, ...]] = {
    "address_change": OPEN,
    "cancel_pending": ("pending",),
    "cancel_paid_refund": ("paid",),
    "partial_refund": ("delivered",),
    "reserve_and_ship": ("paid",),
    "ship_reserved": ("paid",),
    "open_ticket": ANY,
}
TWO_LINES_IN = 4
PRICE = (5, 240)
PENCE = (0, 25, 49, 50, 90, 95, 99)
SHIPPING_FEE = (390, 490, 690, 990)


class People(NamedTuple):
    """The people of a world."""

    customer: records.Customer  # who asks
    others: tuple[records.Customer, ...]  # everybody else


def make_people(stream: Stream, pool: str, candidate: int) -> People:
    """Return the people of a candidate's world."""
    first = FIRST_NUMBER[pool] + candidate * PER_WORLD
    cities = stream.sample([city for city, _, _ in vocabulary.PLACES], PER_WORLD)
    given = stream.sample(vocabulary.GIVEN_NAMES, PER_WORLD - 1)
    surnames = stream.sample(vocabulary.SURNAMES[pool], PER_WORLD - 1)
    given, surnames = [given[0], *given], [surnames[0], *surnames]  # the second is the first's namesake
    numbers = stream.shuffled(range(first, first + PER_WORLD))
    customer, *others = [
        records.Customer(
            f"C-{number}",
            f"{name} {surname}",
            f"{name}.{surname}{number % 1000}@{stream.choice(vocabulary.MAIL_DOMAINS)}".lower(),
            city,
        )
        for number, name, surname, city in zip(numbers, given, surnames, cities, strict=True)
    ]
    return People(customer, tuple(others))


class OrderMaker:
    """Makes the orders of one world, its products and their stock."""

    def __init__(self, stream: Stream, people: People) -> None:
        self._stream = stream
        self._people = people
        materials, goods = (
            stream.sample(words, PRODUCTS) for words in (vocabulary.MATERIALS, vocabulary.GOODS)
        )
        names = [f"{material} {good}" for material, good in zip(materials, goods, strict=True)]
        numbers = stream.sample(range(100, 1000), PRODUCTS)
        self._products = [(f"P-{number}", name) for number, name in zip(numbers, names, strict=True)]
        self._prices = [100 * stream.between(*PRICE) + stream.choice(PENCE) for _ in self._products]
        self._warehouses = stream.sample(vocabulary.WAREHOUSES, 3)
        self._numbers = iter(stream.sample(range(10_000, 100_000), MOST_ORDERS))
        self._dates = iter(stream.sample(range(12 * DAYS_PER_MONTH), MOST_ORDERS))
        self._orders: list[records.Order] = []
        # Each product is reserved by one order at most: stock that is searched for is in one place only.
        self._to_reserve = stream.shuffled(range(PRODUCTS))
        self._stock: dict[str, tuple[records.Stock, ...]] = {}

    def request(self, template: Template, form: str, named_by: str) -> Request:
        """Make a sub-request with its order."""
        if template == "open_ticket_no_order":
            return Request(template, form, None, "id", self._ticket_slots())
        order = self._order_for(template, form)
        self._orders.append(order)
        slots, sources = self._slots(template, form, order)
        return Request(template, form, order, named_by, slots, sources)

    def add_bystanders(self) -> None:
        """Add orders nobody asks about: some of the customer's, some of others'."""
        mine = self._stream.between(1, 3)
        owners = [self._people.customer] * mine + list(self._people.others[:2])
        for owner in owners:
            self._orders.append(self._order(owner, self._stream.choice(ANY), self._some_products()))

    def own_product(self, order: records.Order | None) -> str | None:
        """Return a product that no other order of the same customer has."""
        if order is None:
            return None
        others = {
            line.product
            for other in self._orders
            if other.customer_id == order.customer_id and other.order_id != order.order_id
            for line in other.lines
        }
        return next((line.product for line in order.lines if line.product not in others), None)

    def all_records(self) -> list[Record]:
        """Return every record of the world."""
        products = [
            records.Product(identifier, name, self._stock.get(identifier) or self._any_stock())
            for identifier, name in self._products
        ]
        first = self._people.customer
        number, told = first.customer_id[2:], vocabulary.SUMMARIES["other"][0]
        ticket = records.Ticket(f"T-{number}", first.customer_id, None, "other", "low", told)
        return [first, *self._people.others, *self._orders, *products, ticket]

    def _order_for(self, template: Template, form: str) -> records.Order:
        stream = self._stream
        status = stream.choice(STATUS[template])
        if template in {"reserve_and_ship", "ship_reserved"}:
            wanted = 1 if form == "explicit" or stream.below(TWO_LINES_IN) else 2
            chosen = [self._to_reserve.pop() for _ in range(wanted)]
        else:
            chosen = self._some_products()
        order = self._order(self._people.customer, status, chosen, several=form == "unit")
        if template != "ship_reserved":
            return order
        lines = tuple(line._replace(reserved=line.quantity) for line in order.lines)
        for line in lines:
            held = records.Stock(
                stream.choice(self._warehouses), line.quantity + stream.below(9), line.quantity
            )
            self._stock[line.product_id] = (held,)
        reserved = sum(line.quantity for line in lines)
        return order._replace(lines=lines, pick_list=f"PL-{order.order_id[2:]}-{reserved}")

    def _order(
        self, owner: records.Customer, status: records.Status, chosen: list[int], *, several: bool = False
    ) -> records.Order:
        stream = self._stream
        lines = tuple(
            records.Line(*self._products[at], stream.between(2 if several else 1, 4), self._prices[at], 0)
            for at in chosen
        )
        paid = sum(line.quantity * line.unit_price_cents for line in lines)
        return records.Order(
            order_id=f"O-{next(self._numbers)}",
            customer_id=owner.customer_id,
            placed_on=_date(next(self._dates)),
            status=status,
            lines=lines,
            address=self._address(),
            refundable_cents=paid if status in {"paid", "shipped", "delivered"} else 0,
            refunded_cents=0,
            shipping_cents=stream.choice(SHIPPING_FEE),
            pick_list=None,
        )

    def _slots(
        self, template: Template, form: str, order: records.Order
    ) -> tuple[dict[str, object], dict[str, str]]:
        stream = self._stream
        if template == "address_change":
            new = self._address()
            if form == "street":
                new = order.address._replace(street=new.street)
            return {"address": new}, {}
        if template == "partial_refund":
            line = stream.choice(order.lines)
            whole = line.quantity * line.unit_price_cents
            cents = {"line": whole, "unit": line.unit_price_cents}.get(form) or stream.between(100, whole)
            return {"product": line.product, "amount_cents": cents}, {}
        if template == "open_ticket":
            return self._ticket_slots(), {}
        if template in {"reserve_and_ship", "ship_reserved"}:
            sources = self._stock_for(order, form) if template == "reserve_and_ship" else {}
            return {"service": stream.choice(records.SERVICES)}, sources
        return {}, {}

    def _stock_for(self, order: records.Order, form: str) -> dict[str, str]:
        stream = self._stream
        usual = stream.choice(self._warehouses)
        sources = {}
        for line in order.lines:
            source = stream.choice(self._warehouses) if form == "search" else usual
            sources[line.product_id] = source
            stock = []
            for warehouse in self._warehouses:
                too_few = stream.below(line.quantity)
                free = line.quantity + stream.below(6) if warehouse == source else too_few
                held = stream.below(4)
                stock.append(records.Stock(warehouse, free + held, held))
            self._stock[line.product_id] = tuple(stock)
        return sources

    def _some_products(self) -> list[int]:
        return self._stream.sample(range(PRODUCTS), self._stream.between(1, 3))

    def _any_stock(self) -> tuple[records.Stock, ...]:
        return tuple(
            records.Stock(warehouse, self._stream.between(3, 30), self._stream.below(4))
            for warehouse in self._warehouses
        )

    def _address(self) -> records.Address:
        stream = self._stream
        city, postal_code, country = stream.choice(vocabulary.PLACES)
        return records.Address(
            f"{stream.between(1, 180)} {stream.choice(vocabulary.STREETS)}", city, postal_code, country
        )

    def _ticket_slots(self) -> dict[str, object]:
        stream = self._stream
        category = stream.choice(records.CATEGORIES)
        return {
            "customer_id": self._people.customer.customer_id,
            "category": category,
            "priority": stream.choice(records.PRIORITIES),
            "summary": stream.choice(vocabulary.SUMMARIES[category]),
        }


def _date(day: int) -> str:
    month, within = divmod(day, DAYS_PER_MONTH)
    return f"2026-{month + 1:02d}-{within + 1:02d}"


@lru_cache(maxsize=4096)
def generate(pool: str, candidate: int, index: int) -> Task:
    """Return the task of a candidate number of a pool; it is made once, however often it is asked for."""
    seed = world_seed(pool, candidate)
    stream = Stream(seed)
    # 1.
    templates = [stream.weighted(WEIGHTS) for _ in range(stream.weighted(REQUESTS_PER_TASK))]
    while True:
        customer_by = _form(stream, CUSTOMERS)
        forms = [_form(stream, FORMS[template]) for template in templates]
        orders_by = [_form(stream, ORDERS) for _ in templates]
        # 2. to 4.
        people = make_people(stream, pool, candidate)
        maker = OrderMaker(stream, people)
        requests = tuple(
            maker.request(template, form, named_by)
            for template, form, named_by in zip(templates, forms, orders_by, strict=True)
        )
        maker.add_bystanders()
        requests = tuple(_with_named(request, maker) for request in requests)
        calls = plan(people.customer, customer_by, requests)
        writes = sum(TOOLS[call.tool].kind == "write" for call in calls)
        if len(calls) + writes <= budget(writes):
            break
    # 5.
    base = build_base(maker.all_records())
    return Task(
        task_id=f"{pool}:{index}",
        pool=pool,
        index=index,
        world_seed=seed,
        prompt=write_prompt(stream, people.customer, customer_by, requests),
        templates=tuple(templates),
        forms=tuple(forms),
        base=base,
        plan=calls,
        expected=carry_out(base, calls),
        writes=writes,
        budget=budget(writes),
    )


def carry_out(base: Base, calls: Sequence[Call]) -> Mapping[str, Record]:
    """Return the records that a plan changes, as it leaves them."""
    world = untouched(base)
    for call in calls:
        tool = TOOLS[call.tool]
        if tool.kind == "write":
            arguments = {p.name: call.arguments.get(p.name, p.default) for p in tool.parameters}
            world, _ = execute(tool, world, arguments)
    return world.changes


def _form(stream: Stream, forms: Sequence[Form]) -> str:
    return stream.weighted([(form.name, form.weight) for form in forms])


def _with_named(request: Request, maker: OrderMaker) -> Request:
    """Name an order by its date where no product of it is its own among the customer's orders."""
    if request.named_by == "product" and maker.own_product(request.order) is None:
        return replace(request, named_by="date")
    if request.named_by == "product":
        return replace(request, slots={**request.slots, "own_product": maker.own_product(request.order)})
    return request
