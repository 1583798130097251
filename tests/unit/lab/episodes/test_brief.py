"""Reading prompts: what the words say. `test_agents` carries out every prompt of the pools."""

import pytest

from toolkit.lab.episodes.brief import Brief, Errand, OrderRef, UnreadableError, cents, read_prompt
from toolkit.lab.tasks.pools import load_task


def test_a_prompt_is_read_as_written() -> None:
    prompt = (
        "Phone note, caller Ada Rossi of Lyon:\n"
        "1. Refund $12.05 on the order placed on 7 March 2026 because of the oak lamp.\n"
        "2. Set 3 x P-117 aside in Riga for order O-10233 and send it express.\n"
        "3. Only the street of the order with the wool rug changes, to 9 Oak Street; "
        "city and postal code stay.\n"
        "Thank you."
    )
    assert read_prompt(prompt) == Brief(
        {"name": "Ada Rossi", "city": "Lyon"},
        (
            Errand(
                "partial_refund",
                "amount",
                OrderRef(date="2026-03-07"),
                {"amount": "$12.05", "product": "oak lamp"},
            ),
            Errand(
                "reserve_and_ship",
                "explicit",
                OrderRef(order_id="O-10233"),
                {"quantity": "3", "product_id": "P-117", "warehouse": "Riga", "service": "express"},
            ),
            Errand("address_change", "street", OrderRef(product="wool rug"), {"street": "9 Oak Street"}),
        ),
    )


@pytest.mark.parametrize("text", ["", "Hello", "Customer C-1 asks:\nDo something nice."])
def test_a_text_that_no_phrasing_reads_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_prompt(text)


@pytest.mark.parametrize(("text", "amount"), [("$0.05", 5), ("$12.50", 1250), ("1234.00 dollars", 123400)])
def test_money_is_read_in_cents(text: str, amount: int) -> None:
    assert cents(text) == amount


def test_a_line_with_more_than_a_phrasing_is_refused() -> None:
    person, *rest = load_task("train:0").prompt.split("\n")
    with pytest.raises(UnreadableError):
        read_prompt("\n".join([f"{person}\N{LINE SEPARATOR}And more.", *rest]))
