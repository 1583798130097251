"""Reading a prompt: from its words to what is asked, and nothing that the words do not say."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolkit.lab.tasks.templates import CLOSINGS, CUSTOMERS, FORMS, MARKS, ORDERS, Form
from toolkit.lab.tasks.vocabulary import MONTHS

_SLOTS = {
    "order": r"(?:the )?order .+?",
    "order_id": r"O-\d+",
    "customer_id": r"C-\d+",
    "product_id": r"P-\d+",
    "email": r"\S+@\S+?",
    "name": r"[A-Z]\w+ [A-Z]\w+",
    "street": r"\d+ [A-Z][A-Za-z ]+?",
    "postal_code": r"[A-Z0-9-]+(?: [A-Z0-9]+)?",
    "city": r"[A-Z][a-z]+",
    "country": r"[A-Z][A-Za-z ]+?",
    "amount": r"\$\d+\.\d\d|\d+\.\d\d dollars",
    "product": r"[a-z]+ [a-z]+",
    "quantity": r"\d+",
    "warehouse": r"[A-Z][a-z]+",
    "service": r"[a-z]+",
    "priority": r"[a-z]+",
    "category": r"[a-z]+",
    "summary": r".+",
    "date": r"\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]+ \d{4}",
}
_MARK = re.compile("^(?:" + "|".join(re.escape(mark) for marks in MARKS for mark in marks if mark) + ")")


class UnreadableError(ValueError):
    """A prompt holds a line that no phrasing reads."""


@dataclass(frozen=True, slots=True)
class OrderRef:
    """How a text names an order: one of the three is given."""

    order_id: str | None = None  # its identifier
    date: str | None = None  # the day it was placed, as YYYY-MM-DD
    product: str | None = None  # a product on it


@dataclass(frozen=True, slots=True)
class Errand:
    """One sub-request as the text states it."""

    template: str  # which of the eight it is
    form: str  # how much of it is stated
    order: OrderRef | None  # how the order is named; None where there is none
    said: Mapping[str, str]  # slot → text


@dataclass(frozen=True, slots=True)
class Brief:
    """A prompt as read."""

    # Slot → text of how the customer is named: an identifier, an email, or a name and a city
    customer: Mapping[str, str]
    errands: tuple[Errand, ...]  # the sub-requests in order


@lru_cache(maxsize=4096)
def read_prompt(prompt: str) -> Brief:
    """Return what a prompt asks."""
    first, *lines = prompt.split("\n")
    if lines and lines[-1] in CLOSINGS:
        lines.pop()
    _, customer = _match(_PERSONS, first)
    return Brief(customer, tuple(_errand(_MARK.sub("", line, count=1)) for line in lines))


def _errand(line: str) -> Errand:
    (template, form), slots = _match(_REQUESTS, line)
    order = slots.pop("order", None)
    return Errand(template, form, None if order is None else _order(order), slots)


def _order(text: str) -> OrderRef:
    _, slots = _match(_ORDER_NAMES, text)
    date = slots.get("date")
    return OrderRef(slots.get("order_id"), None if date is None else _iso(date), slots.get("product"))


def _iso(date: str) -> str:
    if "-" in date:
        return date
    day, month, year = date.split(" ")
    return f"{year}-{MONTHS.index(month) + 1:02d}-{int(day):02d}"


def cents(amount: str) -> int:
    """Return a stated amount in cents: `$12.50` and `12.50 dollars` are 1250."""
    return int(re.sub(r"\D", "", amount))


def _match(
    patterns: Sequence[tuple[tuple[str, str], re.Pattern[str]]], text: str
) -> tuple[tuple[str, str], dict[str, str]]:
    for name, pattern in patterns:
        match = pattern.fullmatch(text)
        if match:
            return name, match.groupdict()
    raise UnreadableError(f"cannot read: {text}")


def _patterns(forms: Sequence[Form], template: str = "") -> Iterator[tuple[tuple[str, str], re.Pattern[str]]]:
    for form in forms:
        for phrasing in form.phrasings:
            parts = re.split(r"\{(\w+)\}", phrasing)
            pattern = "".join(
                f"(?P<{part}>{_SLOTS[part]})" if at % 2 else re.escape(part) for at, part in enumerate(parts)
            )
            yield (template, form.name), re.compile(pattern)


_REQUESTS = tuple(entry for template, forms in FORMS.items() for entry in _patterns(forms, template))
_PERSONS = tuple(_patterns(CUSTOMERS))
_ORDER_NAMES = tuple(_patterns(ORDERS))
