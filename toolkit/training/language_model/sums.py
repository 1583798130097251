"""Multiplication that a small model can do aloud: a pair of digits at a time, from the right.

A price is tokens of two digits. Said in one go, the first token of a product needs the carries of all others.
"""

from __future__ import annotations


def worked_out(quantity: int, cents: int) -> str:
    """Return how a product is found: each pair of the price, and its product with what was carried.

    3 x 12850 is `50,150,28,085,1,003`: the last two digits of each product, from the last to the first, are
    those of 38550.
    """
    said, carried = [], 0
    while cents:
        cents, pair = divmod(cents, 100)
        found = pair * quantity + carried
        carried = found // 100
        said += [f"{pair:02}" if cents else str(pair), f"{found:03}"]
    return ",".join(said)


def said_of(quantity: int, cents: int) -> str:
    """Return what is said of an order's line, in the words of the answer that has it, before its product."""
    return f"quantity {quantity} unit_price_cents {cents}: {worked_out(quantity, cents)}"
