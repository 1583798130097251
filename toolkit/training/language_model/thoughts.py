"""What a small model says before it calls a tool, so that each step is one that it can learn.

1. When it turns to a request, it says its line again: the words that matter stand near from then on, and the
   next line is found by going on where the last one ended.
2. Where it has to choose from a list (of customers, orders, warehouses), it reads out record after record, up
   to the one that is meant: a record's number stands before what describes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.policies.language_model.conversation import as_text
from toolkit.tasks.templates import CLOSINGS
from toolkit.training.language_model.small import as_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.episodes.episode import Episode

LISTS = {"search_customers": "customer_id", "list_orders": "order_id", "check_inventory": "warehouse"}
"""Tool that lists records → the argument that names one of them."""


def thoughts(episode: Episode, starts: Sequence[int]) -> list[str]:
    """Return what is said before each call of a traced episode.

    Args:
        episode: as the reference agent played it.
        starts: for each request, which call was the first for it.
    """
    first, *lines = episode.task.prompt.split("\n")
    said = []
    choices = _Choices(first)
    for at, call in enumerate(episode.trace or ()):
        begun = [line for line, start in zip(lines, starts, strict=False) if start == at]
        if begun:
            choices.turn_to(begun[-1])
        if call.tool == "finish":
            begun += [line for line in lines[-1:] if line in CLOSINGS]
        records = [text for name, value in call.arguments.items() for text in choices.read_out(name, value)]
        said.append("".join(f"\n{line}" for line in begun) + "".join(f" {text}" for text in records))
        choices.hear(call.tool, call.arguments, call.answer)
    return said


class _Choices:
    """Which records were listed, and which of them was chosen already.

    Args:
        stated: the line that says who asks.
    """

    __slots__ = ("_chosen", "_customer", "_line", "_listed")

    def __init__(self, stated: str) -> None:
        self._customer = stated
        self._line = ""
        self._listed: dict[str, dict[str, dict[str, Any]]] = {}
        self._chosen: dict[str, Any] = {}

    def turn_to(self, line: str) -> None:
        """Begin with a request: another order is meant."""
        self._line = line
        self._chosen.pop("order_id", None)

    def read_out(self, name: str, value: Any) -> Iterator[str]:
        """Yield the listed records up to the one that an argument names, where that was a choice."""
        records = self._listed.get(name, {})
        is_stated = str(value) in f"{self._customer}\n{self._line}"
        if value not in records or is_stated or self._chosen.get(name) == value:
            return
        self._chosen[name] = value
        for identity, record in records.items():
            yield as_read(as_text(record))
            if identity == value:
                return

    def hear(self, tool: str, arguments: dict[str, Any], answer: dict[str, Any]) -> None:
        """Take note of what a tool listed."""
        name = LISTS.get(tool)
        if name is None or "error" in answer:
            return
        listed = (
            answer.get("customers") or answer.get("orders") or answer.get("product", {}).get("stock") or []
        )
        before = self._listed.get(name, {}) if arguments.get("offset") else {}
        self._listed[name] = before | {record[name]: record for record in listed if name in record}
        self._chosen.pop(name, None)
