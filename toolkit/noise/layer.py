"""The layer between an agent and its tools: what becomes of each call of an episode, by its event key.

What happens to a call, in this order, whose numbers the code repeats:

1. During a rate limit every call fails; a request that met an outage fails for good. Neither draws.
2. The event key (tool, resource, repeat index) draws the call's fate. The repeat index counts draws only.
3. A transient fault, a rate limit or an outage is answered in the tool's place, which is not called.
4. Any other fault lets the tool answer, and shows something else: the state from before the last write, a cut
   list, a record that lost a field, a timeout after a write that was applied.

The layer calls no tool: its user does, between `meet` and `finish`.

Source:
    Paper sec:protocol and app:env.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.noise.answers import Answer, cut, differs, lose_field, outage, rate_limited, timeout, transient
from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.faults import retry_after
from toolkit.noise.recovery import CODES, Recovery
from toolkit.noise.regimes import Regime
from toolkit.noise.tools import Fault, Tool

if TYPE_CHECKING:
    from toolkit.documents.world import ExposureDocument

Within = Callable[[Any, Callable[[Any], Any]], Any]
"""Applies a change to that part of an answer which the agent reads; the same object where nothing changes."""

_ERRORS = frozenset({"transient", "rate_limit", "outage"})


class Exposure(NamedTuple):
    """A fault that landed."""

    call: int  # number of the call in the episode, from 0
    tool: str  # tool of the event key
    resource: str  # resource of the event key
    repeat: int  # repeat index of the event key
    fault: Fault  # its type
    changed: bool  # whether the answer differs from what it would have been, in more than its revision

    def as_dict(self) -> ExposureDocument:
        """Return the fault as an episode's document states it."""
        return {
            "call": self.call,
            "tool": self.tool,
            "resource": self.resource,
            "repeat": self.repeat,
            "fault": self.fault,
            "changed": self.changed,
        }


class Fate(NamedTuple):
    """A fault that lets the tool answer."""

    fault: Fault  # its type
    draw: Draw  # its draw
    key: tuple[str, int]  # resource and repeat index of the event key
    call: int  # number of the call in the episode


class Layer:
    """The noise of one episode.

    Args:
        regime: the noise.
        schedule: the schedule ω.

    Attributes:
        exposures: faults that landed.
        recovery: trace codes.
        key: resource and repeat index of the last draw; None before one.
        blocked_by: the earlier fault that kept the last call from being drawn; None for none.
    """

    __slots__ = (
        "_blocked_until",
        "_blocks",
        "_ceiling",
        "_clock",
        "_outages",
        "_repeats",
        "blocked_by",
        "exposures",
        "key",
        "recovery",
        "regime",
        "schedule",
    )

    def __init__(self, regime: Regime, schedule: Schedule) -> None:
        self.regime = regime
        self.schedule = schedule
        self.exposures: list[Exposure] = []
        self.recovery = Recovery()
        self.key: tuple[str, int] | None = None
        self.blocked_by: Fault | None = None
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
            answer = timeout()
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
            return transient()
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
