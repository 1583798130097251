"""What the small model says before it calls: its request's line, and records up to the one that is meant."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment
from small_model.lessons import conversation
from small_model.template import CHAT_TEMPLATE
from small_model.thoughts import thoughts, worked_out

from toolkit.lab.policies.language_model.conversation import as_text
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES

PROMPT = """Letter from Luca Andersen, Porto:
(a) Cancel the order placed on 2026-01-23; it has not been paid.
(b) Pack order O-5 from any warehouse.
Thank you."""
NAMED = {"name": "Luca Andersen", "email": "luca@mail.example"}
TWINS = [{"customer_id": "C-1", **NAMED, "city": "Gdansk"}, {"customer_id": "C-2", **NAMED, "city": "Porto"}]
ORDERS = [
    {"order_id": "O-7", "placed_on": "2026-02-21", "products": ["oak desk", "wool rug"]},
    {"order_id": "O-8", "placed_on": "2026-01-23", "products": ["cork tray", "steel vase", "oak desk"]},
]
FIRST = "O-7$ 2026-02-21$ oak desk$ wool rug$"
STOCK = [{"warehouse": "Riga", "available": 0}, {"warehouse": "Brno", "available": 4}]
TEMPLATE = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page
LATE = {"error": {"code": "timeout"}}


def _said(
    *calls: tuple[str, dict[str, Any], dict[str, Any]], starts: tuple[int, ...] = (0,), prompt: str = PROMPT
) -> list[str]:
    trace = [SimpleNamespace(tool=tool, arguments=given, answer=answer) for tool, given, answer in calls]
    episode: Any = SimpleNamespace(task=SimpleNamespace(prompt=prompt), trace=trace)
    return thoughts(episode, starts)


def _read(text: str, role: str = "user") -> str:
    """Return a text as the chat template writes it."""
    written: str = TEMPLATE.render(messages=[{"role": role, "content": text}])
    return written.removeprefix(f"<{role}> ").removesuffix("<end>")


def test_the_line_of_a_request_is_said_when_it_is_turned_to_with_the_next_words() -> None:
    calls = (
        ("cancel_order", {"order_id": "O-8"}, {}),
        ("get_order", {"order_id": "O-5"}, {}),
        ("finish", {}, {}),
    )
    first, second, closing = _read(PROMPT).split("\n")[1:]
    assert _said(*calls, starts=(0, 1)) == [
        f"\n{first}\n% (b) Pack order%",
        f"\n{second}\n^ Thank you.",
        f"\n{closing}",
    ]
    unclosed = PROMPT.removesuffix("\nThank you.")
    assert _said(*calls, starts=(0, 1), prompt=unclosed)[1:] == [f"\n{second}\n^ Done.", "\n^ Done."]


def test_records_are_read_out_up_to_the_one_that_is_meant() -> None:
    search = ("search_customers", {"query": "Luca Andersen"}, {"customers": TWINS})
    listed = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS})
    cancel = ("cancel_order", {"order_id": "O-8"}, LATE)
    again = ("cancel_order", {"order_id": "O-8"}, {})
    twins = " C-1 Gdansk C-2 Porto"
    orders = f" order# placed# on# 2026-01-23? {FIRST} O-8& 2026-01-23"
    assert _said(search, listed, cancel, again)[1:] == [twins, orders, ""]


@pytest.mark.parametrize(
    ("words", "said", "until"),
    [
        ("of 2026-01-23", "order# of# 2026-01-23", ""),
        ("placed on 23 January 2026", "order# placed# on# 23 January 2026 2026-01-23", ""),
        ("with the steel vase", "order# with# the# steel vase", "& cork tray& steel vase"),
    ],
)
def test_which_order_is_meant_is_said_first_in_the_words_of_the_line(words, said, until) -> None:
    prompt = PROMPT.replace("placed on 2026-01-23", words)
    listed = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS})
    cancel = ("cancel_order", {"order_id": "O-8"}, {})
    assert _said(listed, cancel, prompt=prompt)[1:] == [f" {said}? {FIRST} O-8& 2026-01-23{until}"]


def test_where_there_is_one_record_none_is_read_out() -> None:
    search = ("search_customers", {"query": "Luca Andersen"}, {"customers": TWINS[:1]})
    listed = ("list_orders", {"customer_id": "C-1"}, {"orders": ORDERS[1:]})
    assert _said(search, listed, ("cancel_order", {"order_id": "O-8"}, {}))[1:] == ["", ""]


def test_each_request_chooses_its_order_anew() -> None:
    listed = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS})
    first = ("cancel_order", {"order_id": "O-7"}, {})
    prompt = PROMPT.replace("2026-01-23", "2026-02-21")
    record = " order# placed# on# 2026-02-21? O-7$ 2026-02-21"
    assert _said(listed, first, first, starts=(0,), prompt=prompt)[1:] == [record, ""]
    assert _said(listed, first, first, starts=(0, 2), prompt=prompt)[2].endswith(f" {FIRST}")


def test_a_list_of_two_pages_is_one_and_a_failed_reading_none() -> None:
    first = ("list_orders", {"customer_id": "C-2"}, {"orders": ORDERS[:1]})
    failed = ("list_orders", {"customer_id": "C-2", "offset": 1}, LATE)
    second = ("list_orders", {"customer_id": "C-2", "offset": 1}, {"orders": ORDERS[1:]})
    cancel = ("cancel_order", {"order_id": "O-8"}, {})
    assert _said(first, failed, second, second, cancel)[4].count("O-") == 2


def test_a_warehouse_is_chosen_for_each_product() -> None:
    stock = ("check_inventory", {"product_id": "P-1"}, {"product": {"stock": STOCK}})
    reserve = ("reserve_stock", {"order_id": "O-8", "warehouse": "Brno"}, {})
    records = " Riga available 0 Brno available 4"
    assert _said(stock, reserve, stock, reserve)[1::2] == [records, records]


@pytest.mark.parametrize(
    ("cents", "status", "said"),
    [
        (8100, "delivered", " oak desk quantity 2 unit_price_cents 4050: 50,100,40,081"),
        (4050, "delivered", ""),
        (8100, "cancelled", ""),
    ],
)
def test_what_all_pieces_of_a_product_cost_is_worked_out(cents: int, status: str, said: str) -> None:
    lines = [
        {"product": "wool rug", "quantity": 2, "unit_price_cents": 4050},
        {"product": "oak desk", "quantity": 2, "unit_price_cents": 4050},
    ]
    read = ("get_order", {"order_id": "O-5"}, {"order": {"status": status, "lines": lines}})
    refund = ("issue_refund", {"order_id": "O-5", "amount_cents": cents}, {})
    prompt = PROMPT.replace("Cancel the order placed on 2026-01-23", "Refund every oak desk on order O-5")
    assert _said(read, refund, prompt=prompt)[1] == said


@pytest.mark.parametrize("regime", ["clean", "faults_p025"])
def test_what_is_read_out_stands_word_for_word_in_an_answer(regime: str) -> None:
    read = 0
    for number in range(60):
        talk = conversation(load_task(f"train:{number}"), REGIMES[regime], number)
        for at in range(1, len(talk or ()), 2):
            assert talk is not None
            said = talk[at]["content"].split("\n")[-1]
            records = said if said.startswith(" C-") else said.rpartition("?")[2] if "?" in said else ""
            for record in re.findall(r"[CO]-.*?(?= [CO]-|$)", records):
                read += 1
                assert any(record in _read(answer["content"], "tool") for answer in talk[2:at:2])
    assert read > 10


def test_what_is_said_of_a_line_stands_word_for_word_in_the_task() -> None:
    for number in range(60):
        talk = conversation(load_task(f"train:{number}"), REGIMES["clean"], number)
        assert talk is not None
        task = _read(talk[0]["content"])
        for answer in talk[1::2]:
            for line in answer["content"].split("\n")[1:-1]:
                assert f"\n{line}\n" in f"{task}\n"


def test_what_tells_customers_of_one_name_apart_is_read_and_no_more() -> None:
    text = as_text({"revision": 3, "customers": TWINS, "has_more": False})
    assert _read(text, "tool") == "revision 3 customers C-1 Gdansk C-2 Porto has_more false"


def test_fields_of_a_listed_order_are_parted_by_its_mark() -> None:
    text = as_text({"revision": 3, "orders": ORDERS, "has_more": False})
    others = "O-8& 2026-01-23& cork tray& steel vase& oak desk&"
    assert _read(text, "tool") == f"revision 3 orders {FIRST} {others} has_more false"


def test_other_answers_lose_json_s_punctuation_alone() -> None:
    text = as_text({"order": ORDERS[0], "ok": True, "at": "12:30", "none": None})
    assert _read(text, "tool") == "order O-7 2026-02-21 oak desk wool rug ok true at 12 30 none null"


@given(st.integers(2, 9), st.integers(1, 10**7))
def test_the_last_digits_of_each_product_are_those_of_the_whole(quantity: int, cents: int) -> None:
    """The pairs are those of the price, from the right."""
    pairs, products = (worked_out(quantity, cents).split(",")[at::2] for at in (0, 1))
    assert "".join(reversed(pairs)) == str(cents)
    assert all(len(pair) == 2 for pair in pairs[:-1])
    read = products[-1] + "".join(product[-2:] for product in reversed(products[:-1]))
    assert int(read) == quantity * cents
