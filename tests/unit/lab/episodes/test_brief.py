"""Reading prompts: what the words say. `test_agents` carries out every prompt of the pools."""

import pytest

from toolkit.lab.episodes.brief import UnreadableError, cents, read_prompt
from toolkit.lab.tasks.pools import load_task


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
