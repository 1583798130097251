"""Answers that a fault makes: an error, a cut list, a record that lost a field.

An answer is a JSON value: an object with its record or items under a name, or the record, the list or the
text itself. A text is a list of its lines.
"""

from typing import Any

from toolkit.noise.draws import Draw
from toolkit.noise.faults import kept
from toolkit.noise.tools import Tool

Answer = dict[str, Any]


def error(code: str, message: str, **details: Any) -> Answer:
    """Return a tool error of the documented shape: `{"error": {"code", "message", …}}`."""
    return {"error": {"code": code, "message": message, **details}}


def transient() -> Answer:
    """Return the answer to a call that failed once."""
    return error("temporarily_unavailable", "the call failed; trying again may work")


def outage() -> Answer:
    """Return the answer to a request that fails for good."""
    return error("outage", "this request fails for the rest of the episode")


def rate_limited(seconds: int) -> Answer:
    """Return the answer to a call during a rate limit."""
    return error("rate_limited", f"too many calls; wait {seconds} s", retry_after=seconds)


def timeout() -> Answer:
    """Return the answer to a write that was applied."""
    return error("timeout", "no answer came in time; whether the write was applied is unknown")


def cut(tool: Tool, whole: Any, draw: Draw) -> Any:
    """Return an answer whose list is cut; as it is, where there is nothing to cut."""
    items = _shown(tool, whole)
    if type(items) is str:
        lines = items.splitlines(keepends=True)
        return whole if len(lines) <= 1 else _with(tool, whole, "".join(lines[: kept(draw, len(lines))]))
    if type(items) is not list or len(items) <= 1:
        return whole
    left = items[: kept(draw, len(items))]
    if type(whole) is not dict:
        return left
    answer = {**_with(tool, whole, left), "has_more": True}
    if "next_offset" in whole:
        answer["next_offset"] = whole["next_offset"] - len(items) + len(left)
    return answer


def lose_field(tool: Tool, whole: Any, draw: Draw) -> Any:
    """Return an answer whose record, or every record of a list, lost one field."""
    shown = _shown(tool, whole)
    records = shown if type(shown) is list else [shown]
    fields = tool.fields or tuple(
        dict.fromkeys(key for part in records if type(part) is dict for key in part)
    )
    if not fields:
        return whole
    lost = fields[int(draw.magnitude * len(fields))]
    left = [_without(record, lost) for record in records]
    return _with(tool, whole, left if type(shown) is list else left[0])


def differs(answer: Any, whole: Any) -> bool:
    """Say whether an answer shows something else than it would have, in more than its revision."""
    if type(answer) is dict and type(whole) is dict:
        return answer | {"revision": 0} != whole | {"revision": 0}
    return bool(answer != whole)


def _shown(tool: Tool, whole: Any) -> Any:
    for name in () if tool.shows is None else tool.shows.split("."):
        whole = whole.get(name) if type(whole) is dict else None
    return whole


def _with(tool: Tool, whole: Any, shown: Any) -> Any:
    return shown if tool.shows is None else _placed(whole, tool.shows, shown)


def _placed(whole: Any, path: str, shown: Any) -> Any:
    name, _, rest = path.partition(".")
    return {**whole, name: _placed(whole[name], rest, shown) if rest else shown}


def _without(record: Any, lost: str) -> Any:
    return {name: value for name, value in record.items() if name != lost} if type(record) is dict else record
