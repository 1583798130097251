"""What tools read, write and refuse."""

from typing import Any

import pytest

from tests.unit.lab.backoffice.world import HOME, LAMP, RECORDS, RUG, order, world
from toolkit.lab.backoffice.parameters import Refusal
from toolkit.lab.backoffice.records import Address, Order, Product, Shipment, Stock, Ticket
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import World, build_base, snapshot, untouched


def read(tool: str, **arguments: Any) -> dict[str, Any]:
    now = world()
    after, answer = execute(TOOLS[tool], now, arguments)
    assert after is now
    return answer


@pytest.mark.parametrize(
    ("query", "found"), [("ADA ro", ["C-1", "C-2"]), ("ada@mail.example", ["C-1"]), ("mail.example", [])]
)
def test_a_search_finds_part_of_a_name_in_any_case_and_a_whole_email(query: str, found: list[str]) -> None:
    customers = read("search_customers", query=query, offset=0)["customers"]
    assert [customer["customer_id"] for customer in customers] == found


def test_a_customer_is_shown_with_their_tickets() -> None:
    shown = read("get_customer", customer_id="C-1")["customer"]
    assert shown["tickets"] == [
        {"ticket_id": "T-1", "order_id": None, "category": "other", "priority": "low"}
    ]
    assert read("get_customer", customer_id="C-2")["customer"]["tickets"] == []


def test_a_list_shows_the_customers_own_orders() -> None:
    answer = read("list_orders", customer_id="C-2", offset=0)
    assert answer["orders"] == [
        {"order_id": "O-8", "placed_on": "2026-03-07", "status": "pending", "products": ["oak lamp"]}
    ]
    assert not answer["has_more"]


def test_a_long_list_comes_in_pages_that_join_to_the_whole() -> None:
    many = [order(f"O-{number}", "paid") for number in range(100, 123)]
    base = untouched(build_base([RECORDS[0], *many]))
    offset, seen = 0, []
    for _ in range(3):
        _, page = execute(TOOLS["list_orders"], base, {"customer_id": "C-1", "offset": offset})
        seen += [entry["order_id"] for entry in page["orders"]]
        assert page["has_more"] == (len(seen) < 23)
        offset = page["next_offset"]
    assert seen == [entry.order_id for entry in many]


def test_an_order_shows_everything_but_its_shipping_fee() -> None:
    line = {
        "product_id": "P-1",
        "product": "oak lamp",
        "quantity": 2,
        "unit_price_cents": 1500,
        "reserved": 2,
    }
    assert read("get_order", order_id="O-6")["order"] == {
        "order_id": "O-6",
        "customer_id": "C-1",
        "placed_on": "2026-03-07",
        "status": "paid",
        "lines": [line],
        "shipping_address": HOME._asdict(),
        "refundable_cents": 3000,
        "refunded_cents": 0,
        "pick_list": "PL-6-2",
    }


def test_inventory_shows_what_is_free() -> None:
    assert read("check_inventory", product_id="P-1")["product"]["stock"] == [
        {"warehouse": "Riga", "on_hand": 5, "available": 4},
        {"warehouse": "Brno", "on_hand": 2, "available": 0},
    ]


@pytest.mark.parametrize("tool", [tool for tool in TOOLS.values() if tool.shows], ids=lambda t: t.name)
def test_the_table_of_tools_names_the_fields_that_are_shown(tool: Any) -> None:
    identifiers = {"customer_id": "C-1", "order_id": "O-1", "product_id": "P-1", "query": "ada", "offset": 0}
    shown = read(tool.name, **{p.name: identifiers[p.name] for p in tool.parameters})[tool.shows]
    assert tuple(shown[0] if isinstance(shown, list) else shown) == tool.fields


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_customer", {"customer_id": "C-9"}),
        ("get_customer", {"customer_id": "O-1"}),
        ("list_orders", {"customer_id": "C-9", "offset": 0}),
        ("get_order", {"order_id": "O-9"}),
        ("get_order", {"order_id": "P-1"}),
        ("check_inventory", {"product_id": "P-9"}),
        ("reserve_stock", {"order_id": "O-2", "product_id": "P-1", "quantity": 1, "warehouse": "Atlantis"}),
    ],
)
def test_a_missing_record_is_refused(tool: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refusal:
        read(tool, **arguments)
    assert refusal.value.code == "not_found"


def test_two_records_of_one_name_make_no_world() -> None:
    for status in ("pending", "paid"):
        with pytest.raises(ValueError, match="two records are called O-1"):
            build_base([order("O-1", "paid"), order("O-1", status)])


ADDRESS = {"street": "9 Oak Street", "city": "Bath", "postal_code": "BA1", "country": "United Kingdom"}
TICKET = {"customer_id": "C-1", "category": "damage", "priority": "high", "summary": "Broken."}


def write(tool: str, now: World | None = None, **arguments: Any) -> World:
    now = now or world()
    before = snapshot(now)
    after, answer = execute(TOOLS[tool], now, arguments)
    assert snapshot(now) == before
    assert answer == {"revision": now.revision + 1} == {"revision": after.revision}
    return after


def changed(after: World) -> dict[str, Any]:
    base = after.base.records
    return {key: record for key, record in snapshot(after).items() if base.get(key) != record}


def test_an_address_changes_and_nothing_else() -> None:
    after = write("update_shipping_address", order_id="O-1", **ADDRESS)
    assert changed(after) == {"O-1": world().find(Order, "O-1")._replace(address=Address(**ADDRESS))}


def test_cancelling_makes_the_shipping_fee_of_a_paid_order_refundable() -> None:
    for order_id, refundable in (("O-1", 0), ("O-2", 3500)):
        after = write("cancel_order", order_id=order_id, reason="r").find(Order, order_id)
        assert (after.status, after.refundable_cents) == ("cancelled", refundable)


def test_a_refund_moves_its_amount() -> None:
    after = write("issue_refund", order_id="O-4", amount_cents=1200, reason="r").find(Order, "O-4")
    assert (after.refundable_cents, after.refunded_cents) == (1800, 1200)


def test_a_refund_sent_twice_is_paid_twice() -> None:
    once = write("issue_refund", order_id="O-4", amount_cents=1200, reason="r")
    twice = write("issue_refund", once, order_id="O-4", amount_cents=1200, reason="r")
    assert twice.find(Order, "O-4").refunded_cents == 2400


def test_a_reservation_moves_stock_line_and_pick_list() -> None:
    after = write("reserve_stock", order_id="O-2", product_id="P-1", quantity=2, warehouse="riga")
    assert changed(after) == {
        "O-2": world().find(Order, "O-2")._replace(lines=(LAMP._replace(reserved=2),), pick_list="PL-2-2"),
        "P-1": Product("P-1", "oak lamp", (Stock("Riga", 5, 3), Stock("Brno", 2, 2))),
    }


def test_each_reservation_issues_a_new_pick_list() -> None:
    first = write("reserve_stock", order_id="O-7", product_id="P-1", quantity=2, warehouse="Riga")
    second = write("reserve_stock", first, order_id="O-7", product_id="P-2", quantity=1, warehouse="Riga")
    lists = [now.find(Order, "O-7").pick_list for now in (first, second)]
    assert lists == ["PL-7-2", "PL-7-3"]
    assert second.find(Order, "O-7").lines == (LAMP._replace(reserved=2), RUG._replace(reserved=1))


def test_a_shipment_is_made_by_the_current_pick_list() -> None:
    after = write("schedule_shipment", order_id="O-6", pick_list="PL-6-2", service="express")
    assert changed(after) == {
        "O-6": world().find(Order, "O-6")._replace(status="shipped"),
        "S-6": Shipment("S-6", "O-6", "express"),
    }


def test_more_reserved_than_ordered_can_be_shipped() -> None:
    reserve = {"order_id": "O-2", "product_id": "P-1", "warehouse": "Riga"}
    once = write("reserve_stock", quantity=2, **reserve)
    twice = write("reserve_stock", once, quantity=1, **reserve)
    after = write("schedule_shipment", twice, order_id="O-2", pick_list="PL-2-3", service="express")
    assert after.find(Order, "O-2").status == "shipped"


def test_a_ticket_is_about_an_order_or_about_none() -> None:
    about = write("create_ticket", order_id="O-3", **TICKET)
    none = write("create_ticket", about, order_id="", **TICKET)
    made = list(changed(none).values())
    assert made == [
        Ticket("T-NEW-1", "C-1", "O-3", "damage", "high", "Broken."),
        Ticket("T-NEW-2", "C-1", None, "damage", "high", "Broken."),
    ]
    assert [ticket.ticket_id for ticket in none.tickets_of("C-1")] == ["T-1", "T-NEW-1", "T-NEW-2"]


REFUND = {"amount_cents": 1, "reason": "r"}
RESERVE = {"order_id": "O-2", "product_id": "P-1", "quantity": 1, "warehouse": "Riga"}
SHIP = {"order_id": "O-2", "pick_list": "PL-2-0", "service": "express"}
CONFLICTS: dict[str, tuple[str, dict[str, Any]]] = {
    "address of a shipped order": ("update_shipping_address", {"order_id": "O-3", **ADDRESS}),
    "address of a delivered order": ("update_shipping_address", {"order_id": "O-4", **ADDRESS}),
    "address of a cancelled order": ("update_shipping_address", {"order_id": "O-5", **ADDRESS}),
    "cancelling a shipped order": ("cancel_order", {"order_id": "O-3", "reason": "r"}),
    "cancelling twice": ("cancel_order", {"order_id": "O-5", "reason": "r"}),
    "cancelling a reserved order": ("cancel_order", {"order_id": "O-6", "reason": "r"}),
    "refunding a shipped order": ("issue_refund", {"order_id": "O-3", **REFUND}),
    "refunding a paid order": ("issue_refund", {"order_id": "O-2", **REFUND}),
    "refunding too much": ("issue_refund", {"order_id": "O-4", **REFUND, "amount_cents": 3001}),
    "reserving for a pending order": ("reserve_stock", RESERVE | {"order_id": "O-1"}),
    "reserving more than there is": ("reserve_stock", RESERVE | {"quantity": 5}),
    "reserving another product": ("reserve_stock", RESERVE | {"product_id": "P-2"}),
    "shipping what is not reserved": ("schedule_shipment", SHIP),
    "shipping by another pick list": ("schedule_shipment", SHIP | {"order_id": "O-6", "pick_list": "PL-6-1"}),
    "ticket about another's order": ("create_ticket", {"order_id": "O-8", **TICKET}),
}


@pytest.mark.parametrize(("tool", "arguments"), CONFLICTS.values(), ids=list(CONFLICTS))
def test_what_the_state_does_not_allow_is_refused(tool: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refusal:
        write(tool, **arguments)
    assert refusal.value.code == "conflict"


def test_a_control_tool_is_not_for_the_world() -> None:
    with pytest.raises(ValueError, match="control tool"):
        execute(TOOLS["wait"], world(), {"seconds": 1})
