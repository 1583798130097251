"""The layer between an agent and its tools: what becomes of each call of an episode, by its event key.

What happens to a call, in this order, whose numbers the code repeats:

1. During a rate limit every call fails; a request that met an outage fails for good. Neither draws.
2. The event key (tool, resource, repeat index) draws the call's fate. The repeat index counts draws only.
3. A transient fault, a rate limit or an outage is answered in the tool's place, which is not called.
4. Any other fault lets the tool answer, and shows something else: the state from before the last write, a cut
   list, a record that lost a field, a timeout after a write that was applied.

The layer calls no tool: its user does, between `meet` and `finish`.

Source:
    Paper sec:protocol and app:env; trace codes: the registration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.regimes import Regime, kept, retry_after
from toolkit.noise.tools import Fault, Tool

Within = Callable[[Any, Callable[[Any], Any]], Any]
"""Applies a change to that part of an answer which the agent reads; the same object where nothing changes."""

_ERRORS = frozenset({"transient", "rate_limit", "outage"})
Answer = dict[str, Any]
"""An answer that a fault makes: a JSON value. A text is a list of its lines."""


def error(code: str, message: str, **details: Any) -> Answer:
    """Return a tool error of the documented shape: `{"error": {"code", "message", …}}`."""
    return {"error": {"code": code, "message": message, **details}}


def outage() -> Answer:
    """Return the answer to a request that fails for good."""
    return error("outage", "this request fails for the rest of the episode")


def rate_limited(seconds: int) -> Answer:
    """Return the answer to a call during a rate limit."""
    return error("rate_limited", f"too many calls; wait {seconds} s", retry_after=seconds)


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
    left = [
        {name: value for name, value in record.items() if name != lost} if type(record) is dict else record
        for record in records
    ]
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


CODES: Mapping[Fault, str] = {
    "transient": "retry_after_transient",
    "rate_limit": "wait_after_rate_limit",
    "stale_read": "reread_after_stale",
    "truncation": "paginate_after_truncation",
}


class Recovery:
    """Counts of one episode, kept call by call.

    Codes go by event key: the next attempt of the same tool on the same record is the recovery, whatever it
    was meant for. A wait is one once the limit is over; an attempt that a limit or an outage blocks is none.
    """

    def __init__(self) -> None:
        self.called_for: dict[str, int] = {}  # code → faults that called for it
        self.made: dict[str, int] = {}  # code → how many of them were followed by it
        # (tool, resource) of a call that would be a recovery → its code, where a cut list goes on
        self.awaited: dict[tuple[str, str], tuple[str, int]] = {}

    def fault(self, code: str | None, tool: str, resource: str, next_offset: int = 0) -> None:
        """Note a fault that landed; `next_offset` is where a cut list goes on."""
        if code is None:
            return
        self.called_for[code] = self.called_for.get(code, 0) + 1
        key = ("wait", "") if code == "wait_after_rate_limit" else (tool, resource)
        self.awaited[key] = (code, next_offset)

    def call(self, tool: str, resource: str, offset: int = 0) -> None:
        """Note a call: it may be the recovery that an earlier fault called for."""
        code, next_offset = self.awaited.get((tool, resource), ("", 0))
        if code and (code != "paginate_after_truncation" or offset == next_offset):
            del self.awaited[tool, resource]
            self.made[code] = self.made.get(code, 0) + 1


class Exposure(NamedTuple):
    """A fault that landed."""

    call: int  # number of the call in the episode, from 0
    tool: str  # tool of the event key
    resource: str  # resource of the event key
    repeat: int  # repeat index of the event key
    fault: Fault  # its type
    changed: bool  # whether the answer differs from what it would have been, in more than its revision

    def as_dict(self) -> dict[str, Any]:
        """Return the fault as an episode's document states it."""
        return self._asdict()


class Fate(NamedTuple):
    """A fault that lets the tool answer."""

    fault: Fault  # its type
    draw: Draw  # its draw
    key: tuple[str, int]  # resource and repeat index of the event key
    call: int  # number of the call in the episode


class Layer:
    """The noise of one episode."""

    def __init__(self, regime: Regime, schedule: Schedule) -> None:
        self.regime = regime
        self.schedule = schedule
        self.exposures: list[Exposure] = []
        self.recovery = Recovery()
        self.key: tuple[str, int] | None = None  # resource and repeat index of the last draw
        self.blocked_by: Fault | None = None  # the earlier fault that kept the last call from being drawn
        self._ceiling = regime.ceiling
        self._blocks = False
        self._clock = self._blocked_until = 0
        self._outages: set[tuple[str, str]] = set()
        self._repeats: dict[tuple[str, str], int] = {}

    def wait(self, seconds: int) -> None:
        """Move the clock on."""
        self._clock += seconds
        if self.recovery.awaited and self._clock >= self._blocked_until:
            self.recovery.call("wait", "")

    def meet(
        self, tool: Tool, resource: str, arguments: Mapping[str, Any], call: int
    ) -> Fate | Answer | None:
        """Return what a call meets."""
        name = tool.name
        request = (name, resource)
        # 1.
        if self._blocks and (blocked := self._blocked(request)) is not None:
            return blocked
        # 2.
        if self.recovery.awaited:
            self.recovery.call(name, resource, arguments.get(tool.offset or "", 0))
        repeat = self._repeats.get(request, 0)
        self._repeats[request] = repeat + 1
        self.key = key = (resource, repeat)
        if not self._ceiling:
            return None
        draw = self.schedule.draw(name, resource, repeat)
        fault = None if draw.gate >= self._ceiling else self.regime.fault(tool, repeat, draw)
        if fault is None:
            return None
        if fault not in _ERRORS:
            return Fate(fault, draw, key, call)
        # 3.
        self.exposures.append(Exposure(call, name, resource, repeat, fault, changed=True))
        self.recovery.fault(CODES.get(fault), name, resource)
        return self._error(request, fault, draw)

    def finish(
        self, tool: Tool, fate: Fate, whole: Any, before: Any = None, within: Within | None = None
    ) -> Any:
        """Return the answer that is shown to a call whose tool has answered."""
        # 4.
        answer: Any = before
        if fate.fault == "timeout_after_commit":
            answer = error("timeout", "no answer came in time; whether the write was applied is unknown")
        elif fate.fault != "stale_read":
            change = cut if fate.fault == "truncation" else lose_field
            if within is None:
                answer = change(tool, whole, fate.draw)
            else:
                answer = within(whole, lambda part: change(tool, part, fate.draw))
        return self._expose(tool, fate, answer, changed=differs(answer, whole))

    def refused(self, tool: Tool, fate: Fate, answer: Any) -> Any:
        """Return a tool's refusal as it is: its fault landed without effect."""
        return self._expose(tool, fate, answer, changed=False)

    def _blocked(self, request: tuple[str, str]) -> Answer | None:
        if self._clock < self._blocked_until:
            self.blocked_by = "rate_limit"
            return rate_limited(self._blocked_until - self._clock)
        if request in self._outages:
            self.blocked_by = "outage"
            return outage()
        return None

    def _error(self, request: tuple[str, str], fault: Fault, draw: Draw) -> Answer:
        if fault == "transient":
            return error("temporarily_unavailable", "the call failed; trying again may work")
        self._blocks = True
        if fault == "outage":
            self._outages.add(request)
            return outage()
        self._blocked_until = self._clock + retry_after(draw)
        return rate_limited(retry_after(draw))

    def _expose(self, tool: Tool, fate: Fate, answer: Any, *, changed: bool) -> Any:
        resource, repeat = fate.key
        self.exposures.append(Exposure(fate.call, tool.name, resource, repeat, fate.fault, changed))
        if changed:
            next_offset = answer.get("next_offset", 0) if type(answer) is dict else 0
            self.recovery.fault(CODES.get(fate.fault), tool.name, resource, next_offset)
        return answer
