from typing import Any

import pytest

from tests.unit.lab.backoffice.world import HOME, RECORDS, order, world
from toolkit.lab.backoffice.refusal import Refusal
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import build_base, untouched


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
