"""Putting sub-requests into words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.backoffice.records import Customer
from toolkit.seeds import Stream
from toolkit.tasks.requests import Request
from toolkit.tasks.templates import CLOSINGS, CUSTOMERS, FORMS, MARKS, ORDERS, Form
from toolkit.tasks.vocabulary import MONTHS


def write_prompt(stream: Stream, customer: Customer, customer_by: str, requests: Sequence[Request]) -> str:
    """Return a prompt: who asks, one line a sub-request, perhaps a closing line."""
    marks = stream.choice(MARKS)
    lines = [_phrasing(stream, CUSTOMERS, customer_by).format(**customer._asdict())]
    lines += [mark + _sentence(stream, request) for mark, request in zip(marks, requests, strict=False)]
    closing = stream.choice(CLOSINGS)
    return "\n".join([*lines, closing] if closing else lines)


def spoken_date(date: str) -> str:
    """Return an ISO date as people write it: 2026-03-07 → 7 March 2026."""
    year, month, day = date.split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def _sentence(stream: Stream, request: Request) -> str:
    text = _phrasing(stream, FORMS[request.template], request.form)
    return text.format(**_values(stream, request))


def _values(stream: Stream, request: Request) -> dict[str, Any]:
    values = dict(request.slots)
    if "address" in values:
        values |= values.pop("address")._asdict()
    if "amount_cents" in values:
        values["amount"] = _money(stream, values["amount_cents"])
    order = request.order
    if order is None:
        return values
    line = order.lines[0]
    if request.form == "explicit":
        values |= {"quantity": line.quantity, "product_id": line.product_id}
    if request.sources:
        values["warehouse"] = request.sources[line.product_id]
    naming = _phrasing(stream, ORDERS, request.named_by)
    date = spoken_date(order.placed_on) if stream.below(2) else order.placed_on
    values["order"] = naming.format(
        order_id=order.order_id, date=date, product=request.slots.get("own_product")
    )
    return values


def _money(stream: Stream, cents: int) -> str:
    amount = f"{cents // 100}.{cents % 100:02d}"
    return stream.choice((f"${amount}", f"{amount} dollars"))


def _phrasing(stream: Stream, forms: Sequence[Form], name: str) -> str:
    return stream.choice(next(form for form in forms if form.name == name).phrasings)
