"""What a small model says before it calls a tool, so that each step is one that it can learn.

1. When it turns to a request, it says its line again, as it reads it, and the first words of what comes next
   in the task: the words that matter stand near from then on, and the next line is begun by repeating what
   was said last.
2. Where it has to choose from a list (of customers, orders, warehouses), it reads out record after record, up
   to the one that is meant: a record's number stands before what describes it. Which order is meant it asks
   first, in the words of the line, and stops as soon as it has read the date or the product that it asked
   for: whether to go on is then a matter of the last words.
3. Where every piece of a product is paid back, it works the amount out aloud, a pair of digits at a time,
   from the right. A price is tokens of two digits: said in one go, the first token of a product needs the
   carries of all others.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from small_model.template import as_line, as_listed, as_words
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.tasks.templates import CLOSINGS

_DATED = re.compile(r"order (?:of|placed on) (?:\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]+ \d{4})")
DONE = "Done."
"""What comes after a task without closing words."""
ANNOUNCED = 4
"""Words of the next line, its mark included."""
LISTS = {"search_customers": "customer_id", "list_orders": "order_id", "check_inventory": "warehouse"}
"""Tool that lists records → the argument that names one of them."""


def thoughts(episode: Episode, starts: Sequence[int]) -> list[str]:
    """Return what is said before each call of a traced episode."""
    first, *lines = episode.task.prompt.split("\n")
    if lines[-1] not in CLOSINGS:
        lines.append(DONE)
    said = []
    choices = _Choices(first)
    for at, call in enumerate(episode.trace or ()):
        begun = [number for number, start in enumerate(starts) if start == at]
        spoken = [as_line(lines[number], number) for number in begun]
        if begun:
            choices.turn_to(lines[begun[-1]], begun[-1])
            spoken.append(" ".join(as_line(lines[begun[-1] + 1], begun[-1] + 1).split()[:ANNOUNCED]))
        if call.tool == "finish":
            spoken.append(as_line(lines[-1], len(lines) - 1))
        records = [text for name, value in call.arguments.items() for text in choices.read_out(name, value)]
        records += choices.reckon(call.arguments.get("amount_cents"))
        said.append("".join(f"\n{line}" for line in spoken) + "".join(f" {text}" for text in records))
        choices.hear(call.tool, call.arguments, call.answer)
    return said


class _Listed(NamedTuple):
    """A record of a list, and how the model reads it."""

    record: dict[str, Any]
    text: str


class _Choices:
    """Which records were listed, and which of them was chosen already.

    Args:
        stated: the line that says who asks.
    """

    __slots__ = ("_chosen", "_customer", "_line", "_listed", "_number", "_order")

    def __init__(self, stated: str) -> None:
        self._customer = stated
        self._line, self._number = "", 0
        self._listed: dict[str, dict[str, _Listed]] = {}
        self._chosen: dict[str, Any] = {}
        self._order: dict[str, Any] = {}

    def turn_to(self, line: str, number: int) -> None:
        """Begin with a request: another order is meant."""
        self._line, self._number = line, number
        self._chosen.pop("order_id", None)

    def read_out(self, name: str, value: Any) -> Iterator[str]:
        """Yield the listed records up to the one that an argument names, where that was a choice."""
        records = self._listed.get(name, {})
        is_stated = str(value) in f"{self._customer}\n{self._line}"
        if value not in records or len(records) == 1 or is_stated or self._chosen.get(name) == value:
            return
        self._chosen[name] = value
        asked, sought = self._asked(records[value].record)
        if asked:
            yield f"{as_words(asked, self._number)}?"
        for identity, (_, text) in records.items():
            if identity == value:
                yield text[: text.index(sought) + len(sought)] if sought else text
                return
            yield text

    def _asked(self, record: dict[str, Any]) -> tuple[str, str]:
        """Return the words of the line that tell an order from others, and what its record has of them."""
        for item in record.get("products", ()):
            if (words := f"order with the {item}") in self._line:
                return words, item
        dated = _DATED.search(self._line)
        if dated is None or "placed_on" not in record:
            return "", ""
        day = str(record["placed_on"])
        return dated[0] if dated[0].endswith(day) else f"{dated[0]} {day}", day

    def reckon(self, amount: int | None) -> Iterator[str]:
        """Yield how the price of all pieces of a product is found, where that is what is paid back."""
        if self._order.get("status") == "cancelled":
            return
        for line in self._order.get("lines", ()):
            quantity, cents = line["quantity"], line["unit_price_cents"]
            if quantity > 1 and quantity * cents == amount and line["product"] in self._line:
                yield f"{line['product']} {said_of(quantity, cents)}"

    def hear(self, tool: str, arguments: dict[str, Any], answer: dict[str, Any]) -> None:
        """Take note of what a tool listed, and of the order that was read."""
        if tool == "get_order":
            self._order = answer.get("order", self._order)
        name = LISTS.get(tool)
        if name is None or "error" in answer:
            return
        listed = (
            answer.get("customers") or answer.get("orders") or answer.get("product", {}).get("stock") or []
        )
        before = self._listed.get(name, {}) if arguments.get("offset") else {}
        self._listed[name] = before | {
            record[name]: _Listed(record, as_listed(record, number))
            for number, record in enumerate(listed)
            if name in record
        }
        self._chosen.pop(name, None)


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
