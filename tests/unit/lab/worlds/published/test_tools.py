"""The tools of the published back office: what they answer, and what its rules refuse."""

from collections.abc import Iterator

import pytest

from toolkit.lab.worlds.published.tools import CONTROLS, READS, TOOLS, WRITES, Shop
from toolkit.lab.worlds.published.words import placeholders
from toolkit.lab.worlds.published.world import Record, World, make_world, missing, refunded, total, unpacked

PACKED = make_world(7, placeholders()).packed()


@pytest.fixture
def shop() -> Shop:
    return Shop(unpacked(PACKED))


def orders(world: World, status: str) -> Iterator[Record]:
    return (order for order in world.orders.values() if order["status"] == status)


def order_of(world: World, kind: str) -> Record:
    """Return an order by its status, or by what is reserved for it or was refunded."""
    if kind in {"reserved", "unreserved"}:
        return next(each for each in orders(world, "paid") if bool(missing(each)) == (kind == "unreserved"))
    if kind in {"unpaid", "refundable"}:
        return next(
            o for o in orders(world, "cancelled") if o["paid_before_cancel"] == (kind == "refundable")
        )
    return next(orders(world, kind))


def test_there_are_thirteen_tools_of_three_kinds(shop) -> None:
    assert (len(READS), len(WRITES), len(CONTROLS), len(TOOLS)) == (5, 6, 2, 13)
    assert (len(shop.world.customers), len(shop.world.products), len(shop.world.orders)) == (40, 30, 80)
    assert all(shop.world.available(sku) >= 0 for sku in shop.world.products)


TEXTS = ({}, {"order_id": ""}, {"order_id": "  "}, {"order_id": True}, {"order_id": None}, {"order_id": 1.5})
REFUSED = {
    **{f"get_order({given})": ("get_order", given, "INVALID_ARGUMENT") for given in TEXTS},
    "an unknown argument": ("get_order", {"order_id": "O0001", "when": 1}, "INVALID_ARGUMENT"),
    "the world as an argument": ("wait", {"world": 1, "seconds": 1}, "INVALID_ARGUMENT"),
    "an unknown tool": ("drop_tables", {}, "UNKNOWN_TOOL"),
    "an unknown order": ("get_order", {"order_id": "O9999"}, "NOT_FOUND"),
    "an unknown customer": ("list_orders", {"customer_id": "C9999"}, "NOT_FOUND"),
    "an unknown product": ("check_inventory", {"sku": "SKU-9999"}, "NOT_FOUND"),
    "a negative page": ("search_customers", {"query": "a", "offset": -1}, "INVALID_ARGUMENT"),
    "a page that is half a number": ("search_customers", {"query": "a", "offset": 0.5}, "INVALID_ARGUMENT"),
    "a page that is true": ("search_customers", {"query": "a", "offset": True}, "INVALID_ARGUMENT"),
    "two minus signs": ("search_customers", {"query": "a", "offset": "--5"}, "INVALID_ARGUMENT"),
    "no time": ("wait", {"seconds": 0}, "INVALID_ARGUMENT"),
    "too long a time": ("wait", {"seconds": 601}, "INVALID_ARGUMENT"),
    "an empty summary": ("finish", {"summary": ""}, "INVALID_ARGUMENT"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_makes_no_sense_is_refused(shop, case) -> None:
    tool, arguments, code = REFUSED[case]
    assert shop.call(tool, arguments)["error"]["code"] == code
    assert (shop.world, shop.is_finished) == (unpacked(PACKED), False)


ADDRESS = {"street": "1 Row", "city": "Town", "postal_code": 7497}
SHIP = {"carrier": "Express ", "day": "107"}
RULES = [
    *(("update_shipping_address", kind, ADDRESS, None) for kind in ("pending", "reserved")),
    *(("update_shipping_address", kind, ADDRESS, "INVALID_STATE") for kind in ("shipped", "cancelled")),
    ("update_shipping_address", "pending", {**ADDRESS, "city": ""}, "INVALID_ARGUMENT"),
    *(("cancel_order", kind, {"reason": "r"}, None) for kind in ("pending", "reserved")),
    *(("cancel_order", kind, {"reason": "r"}, "INVALID_STATE") for kind in ("delivered", "unpaid")),
    ("cancel_order", "pending", {"reason": ""}, "INVALID_ARGUMENT"),
    *(("issue_refund", kind, {"amount_cents": 1, "reason": "r"}, None) for kind in ("reserved", "delivered")),
    *(
        ("issue_refund", kind, {"amount_cents": 1, "reason": "r"}, "RULE_VIOLATION")
        for kind in ("pending", "shipped", "unpaid")
    ),
    ("issue_refund", "delivered", {"amount_cents": 0, "reason": "r"}, "INVALID_ARGUMENT"),
    ("issue_refund", "delivered", {"amount_cents": 10**9, "reason": "r"}, "RULE_VIOLATION"),
    ("schedule_shipment", "reserved", SHIP, None),
    ("schedule_shipment", "reserved", {**SHIP, "day": 108}, "RULE_VIOLATION"),
    ("schedule_shipment", "reserved", {**SHIP, "day": 99}, "RULE_VIOLATION"),
    ("schedule_shipment", "reserved", {**SHIP, "carrier": "mule"}, "INVALID_ARGUMENT"),
    ("schedule_shipment", "unreserved", SHIP, "RULE_VIOLATION"),
    *(("schedule_shipment", kind, SHIP, "INVALID_STATE") for kind in ("pending", "shipped")),
]


@pytest.mark.parametrize(("tool", "kind", "arguments", "code"), RULES)
def test_an_order_can_be_changed_as_its_status_allows(shop, tool, kind, arguments, code) -> None:
    order = order_of(shop.world, kind)
    answer = shop.call(tool, {"order_id": order["order_id"], **arguments})
    assert answer.get("error", {}).get("code") == code, answer
    assert (shop.world.writes, shop.calls) == (int(code is None), 1)
    assert (shop.world == unpacked(PACKED)) == (code is not None)


def test_a_page_has_five_and_the_next_begins_after_it(shop) -> None:
    first = shop.call("search_customers", {"query": "@EXAMPLE.com"})
    last = shop.call("search_customers", {"query": "@example.com", "offset": "35"})
    assert (len(first["results"]), first["total"], first["next_offset"], last["next_offset"]) == (
        5,
        40,
        5,
        None,
    )
    assert first["results"][0].keys() == {"customer_id", "name", "email", "phone"}


def test_the_newest_order_comes_first(shop) -> None:
    customer = order_of(shop.world, "paid")["customer_id"]
    listed = [each["order_id"] for each in shop.call("list_orders", {"customer_id": customer})["results"]]
    assert listed == sorted(listed, reverse=True)


def test_an_answer_is_no_way_into_the_world(shop) -> None:
    name = order_of(shop.world, "paid")["order_id"]
    shop.call("get_order", {"order_id": name})["items"].clear()
    shop.call("get_customer", {"customer_id": "C0001"})["address"].clear()
    assert shop.world == unpacked(PACKED)


def test_a_cancelled_order_releases_its_stock_and_can_be_refunded_once(shop) -> None:
    order = order_of(shop.world, "reserved")
    sku, name = order["items"][0]["sku"], order["order_id"]
    before = shop.world.available(sku)
    due = shop.call("cancel_order", {"order_id": name, "reason": "r"})["refund_due_cents"]
    assert (due, shop.world.available(sku) - before) == (total(order), order["items"][0]["quantity"])
    refund = {"order_id": name, "amount_cents": due, "reason": "r"}
    assert shop.call("issue_refund", refund)["refundable_balance_cents"] == 0
    assert shop.call("issue_refund", refund)["error"]["refundable_balance_cents"] == 0
    assert shop.call("get_order", {"order_id": name})["refunded_cents"] == refunded(order) == due


def test_stock_is_reserved_as_far_as_the_order_and_the_shelf_go(shop) -> None:
    order = order_of(shop.world, "unreserved")
    (sku, lacks), *_ = missing(order).items()
    wanted = {"sku": sku, "order_id": order["order_id"], "quantity": lacks}
    shop.world.products[sku]["stock"] = shop.world.reserved(sku) + lacks - 1
    assert shop.call("reserve_stock", wanted)["error"]["available"] == lacks - 1
    shop.world.products[sku]["stock"] += 1
    assert "error" in shop.call("reserve_stock", {**wanted, "quantity": lacks + 1})
    assert shop.call("reserve_stock", wanted)["available_after"] == 0
    assert shop.call("reserve_stock", wanted)["error"]["code"] == "RULE_VIOLATION"
    other = next(each for each in shop.world.products if each not in {item["sku"] for item in order["items"]})
    assert shop.call("reserve_stock", {**wanted, "sku": other})["error"]["code"] == "RULE_VIOLATION"


def test_what_is_shipped_leaves_the_shelf(shop) -> None:
    order = order_of(shop.world, "reserved")
    item, shipments = order["items"][0], len(shop.world.shipments)
    stock, left = shop.world.products[item["sku"]]["stock"], shop.world.available(item["sku"])
    shipped = shop.call("schedule_shipment", {"order_id": order["order_id"], **SHIP})
    assert (shipped["carrier"], shipped["scheduled_day"]) == ("express", 107)
    assert (shop.world.products[item["sku"]]["stock"], shop.world.available(item["sku"])) == (
        stock - item["quantity"],
        left,
    )
    assert (order["status"], len(shop.world.shipments)) == ("shipped", shipments + 1)


def test_a_ticket_is_about_an_order_of_its_customer_or_none(shop) -> None:
    order, other = list(shop.world.orders.values())[:2]
    ticket = {"customer_id": order["customer_id"], "category": "Billing", "priority": "low", "summary": "s"}
    assert shop.call("create_ticket", {**ticket, "order_id": ""})["order_id"] is None
    assert shop.call("create_ticket", {**ticket, "order_id": order["order_id"]})["ticket_id"] == "T0012"
    assert other["customer_id"] != order["customer_id"]
    for wrong, code in (
        ({"order_id": other["order_id"]}, "RULE_VIOLATION"),
        ({"order_id": "O9999"}, "NOT_FOUND"),
        ({"order_id": "", "category": "praise"}, "INVALID_ARGUMENT"),
        ({"order_id": "", "priority": "lowest"}, "INVALID_ARGUMENT"),
    ):
        assert shop.call("create_ticket", {**ticket, **wrong})["error"]["code"] == code


def test_time_passes_by_waiting_and_nothing_is_done_after_the_end(shop) -> None:
    assert shop.call("wait", {"seconds": 600})["clock_seconds"] == 600
    assert shop.call("finish", {"summary": "done"}) == {"status": "finished"}
    assert shop.call("wait", {"seconds": 1})["error"]["code"] == "EPISODE_FINISHED"
    assert (shop.calls, shop.world.clock) == (3, 600)
