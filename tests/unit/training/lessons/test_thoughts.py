"""What the small model says before it calls: its request's line, and records up to the one that is meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.noise.regimes import REGIMES
from toolkit.policies.language_model.conversation import as_text
from toolkit.tasks.pools import load_task
from toolkit.training.language_model.lessons import conversation
from toolkit.training.language_model.small import as_read
from toolkit.training.language_model.thoughts import thoughts

PROMPT = """Letter from Luca Andersen, Porto:
(a) Cancel the order placed on 2026-01-23; it has not been paid.
(b) Pack order O-5 from any warehouse.
Thank you."""
TWINS = [{"customer_id": "C-1", "city": "Gdansk"}, {"customer_id": "C-2", "city": "Porto"}]
ORDERS = [{"order_id": "O-7", "placed_on": "2026-02-21"}, {"order_id": "O-8", "placed_on": "2026-01-23"}]
STOCK = [{"warehouse": "Riga", "available": 0}, {"warehouse": "Brno", "available": 4}]
LATE = {"error": {"code": "timeout"}}


def _said(*calls: tuple[str, dict[str, Any], dict[str, Any]], starts: tuple[int, ...] = (0,)) -> list[str]:
    trace = [SimpleNamespace(tool=tool, arguments=given, answer=answer) for tool, given, answer in calls]
    episode: Any = SimpleNamespace(task=SimpleNamespace(prompt=PROMPT), trace=trace)
    return thoughts(episode, starts)


def test_the_line_of_a_request_is_said_when_it_is_turned_to_and_the_closing_at_the_end() -> None:
    said = _said(
        ("cancel_order", {"order_id": "O-8"}, {}),
        ("get_order", {"order_id": "O-5"}, {}),
        ("finish", {}, {}),
        starts=(0, 1),
    )
    first, second, closing = PROMPT.split("\n")[1:]
    assert said == [f"\n{first}", f"\n{second}", f"\n{closing}"]


def test_records_are_read_out_up_to_the_one_that_is_meant() -> None:
    search = ("search_customers", {"query": "Luca Andersen"}, {"customers": TWINS})
    listed = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS})
    cancel = ("cancel_order", {"order_id": "O-8"}, LATE)
    again = ("cancel_order", {"order_id": "O-8"}, {})
    twins = " customer_id C-1 city Gdansk customer_id C-2 city Porto"
    orders = " order_id O-7 placed_on 2026-02-21 order_id O-8 placed_on 2026-01-23"
    assert _said(search, listed, cancel, again)[1:] == [twins, orders, ""]


def test_each_request_chooses_its_order_anew() -> None:
    listed = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS})
    first = ("cancel_order", {"order_id": "O-7"}, {})
    record = " order_id O-7 placed_on 2026-02-21"
    assert _said(listed, first, first, starts=(0,))[1:] == [record, ""]
    assert _said(listed, first, first, starts=(0, 2))[2].endswith(record)


def test_a_list_of_two_pages_is_one_and_a_failed_reading_none() -> None:
    first = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS[:1]})
    failed = ("list_orders", {"customer_id": "C-2", "offset": 1}, LATE)
    second = ("list_orders", {"customer_id": "C-2", "offset": 1}, {"orders": ORDERS[1:]})
    cancel = ("cancel_order", {"order_id": "O-8"}, {})
    assert _said(first, failed, second, second, cancel)[4].count("order_id") == 2


def test_a_warehouse_is_chosen_for_each_product() -> None:
    stock = ("check_inventory", {"product_id": "P-1"}, {"product": {"stock": STOCK}})
    reserve = ("reserve_stock", {"order_id": "O-8", "warehouse": "Brno"}, {})
    records = " warehouse Riga available 0 warehouse Brno available 4"
    assert _said(stock, reserve, stock, reserve)[1::2] == [records, records]


@pytest.mark.parametrize("regime", ["clean", "faults_p025"])
def test_what_is_read_out_stands_word_for_word_in_an_answer(regime: str) -> None:
    read = 0
    for number in range(60):
        talk = conversation(load_task(f"train:{number}"), REGIMES[regime], number)
        for at in range(1, len(talk or ()), 2):
            assert talk is not None
            said = talk[at]["content"].split("\n")[-1]
            for record in said.split(" customer_id ")[1:]:
                read += 1
                assert any(record in as_read(answer["content"]) for answer in talk[2:at:2])
    assert read > 10


def test_text_is_written_as_the_template_writes_it() -> None:
    from jinja2 import Environment

    from toolkit.training.language_model.small import CHAT_TEMPLATE

    text = as_text({"orders": ORDERS, "ok": True, "at": "12:30", "none": None})
    template = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page
    written = template.render(messages=[{"role": "tool", "content": text}])
    assert written == f"<tool> {as_read(text)}<end>"
