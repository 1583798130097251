"""Which calls of tools a logged rollout made, and what they were answered.

Trainers log a rollout as the text that their tokenizer decodes, its answers between its calls. Read is the
form of Hermes and Qwen, `<tool_call>…</tool_call>` and `<tool_response>…</tool_response>`, with the call in
JSON or in Qwen 3.5's tags; or else a column of JSON lists, `[{"tool", "arguments", "answer"}]`, that a reward
function logged.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from toolkit.canonical import canonical

_TURNS = re.compile(r"<tool_call>(.*?)</tool_call>|<tool_response>(.*?)</tool_response>", re.DOTALL)
_TOOL, _ANSWER = ("tool", "name"), ("answer", "result", "fault")


class Call(NamedTuple):
    """An answered call."""

    request: str  # tool and arguments, as one text; calls that ask the same have the same
    answer: str  # what came back


def calls_of_text(text: str) -> tuple[Call, ...]:
    """Return the answered calls of a rollout's text, in order: each turn's answers are those of its calls.

    A call that was never answered, such as one that was cut off, is left out.
    """
    waiting: list[str] = []
    found: list[Call] = []
    for turn in _TURNS.finditer(text):
        if turn[1] is not None:
            waiting.append(_request(turn[1]))
        elif waiting:
            found.append(Call(waiting.pop(0), turn[2].strip()))
    return tuple(found)


def calls_of_json(cell: str) -> tuple[Call, ...]:
    """Return the calls in a cell of JSON."""
    document = json.loads(cell)
    if not isinstance(document, list):
        raise ValueError("no list")  # noqa: TRY004 - of the cell, not of a type
    return tuple(_calls(document))


def _calls(documents: list[object]) -> Iterator[Call]:
    for document in documents:
        said = document if isinstance(document, dict) else {}
        tool = next((said[name] for name in _TOOL if name in said), None)
        answers = {name: said[name] for name in _ANSWER if name in said}
        if not isinstance(tool, str) or not answers:
            raise ValueError("a call without its tool or its answer")
        yield Call(canonical([tool, said.get("arguments", {})]), canonical(answers))


def _request(text: str) -> str:
    """Return a call as one text, whatever the order of its arguments and its spaces."""
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return " ".join(text.split())
