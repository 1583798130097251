"""Products worked out aloud: what is said holds the product, and each step follows from two tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.training.language_model.sums import said_of, worked_out


@given(st.integers(2, 9), st.integers(1, 10**7))
def test_the_last_digits_of_each_product_are_those_of_the_whole(quantity: int, cents: int) -> None:
    products = worked_out(quantity, cents).split(",")[1::2]
    read = products[-1] + "".join(product[-2:] for product in reversed(products[:-1]))
    assert int(read) == quantity * cents


@given(st.integers(2, 9), st.integers(1, 10**7))
def test_the_pairs_are_those_of_the_price_from_the_right(quantity: int, cents: int) -> None:
    pairs = worked_out(quantity, cents).split(",")[::2]
    assert "".join(reversed(pairs)) == str(cents)
    assert all(len(pair) == 2 for pair in pairs[:-1])


def test_it_is_said_in_the_words_of_the_answer() -> None:
    assert said_of(3, 12850) == "quantity 3 unit_price_cents 12850: 50,150,28,085,1,003"
