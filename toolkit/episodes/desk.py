"""The desk: where an agent's calls meet the world and its noise.

What happens to a call, in this order, whose numbers the code repeats:

1. After the end nothing is done. `finish` ends the episode, free of charge and whatever its arguments. A call
   beyond the budget is refused and ends it too. Every other call counts, whatever becomes of it.
2. A call of an unknown tool or with arguments that cannot be read is refused. `wait` moves the clock.
3. During a rate limit every call fails; a request that met an outage fails for good. Neither draws.
4. The event key (tool, resource, repeat index) draws its fate. The repeat index counts draws only. Whether
   there is such a record, and whether its state allows the call, the world says afterwards.
5. The world answers: a stale read from the state before the last write, a cut list, a lost field, a write
   that is applied but reported as a timeout.

Source:
    Paper sec:protocol and app:env.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from toolkit.backoffice.parameters import read_arguments, shown
from toolkit.backoffice.refusal import Refusal, error
from toolkit.backoffice.tools import ANY_RESOURCE, TOOLS, Tool, execute
from toolkit.backoffice.world import untouched
from toolkit.episodes.recovery import CODES, Recovery
from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.faults import Fault, kept, retry_after
from toolkit.noise.regimes import Regime
from toolkit.tasks.task import Task

Answer: TypeAlias = dict[str, Any]
MakeCall: TypeAlias = Callable[[str, dict[str, Any]], Answer]
Agent: TypeAlias = Callable[[str, MakeCall], None]
"""Given the prompt and a function that makes calls, and nothing else."""

_CONTAINERS = frozenset({dict, list})
_ERRORS = frozenset({"transient", "rate_limit", "outage"})


class Exposure(NamedTuple):
    """A fault that landed.

    Args:
        call: number of the call in the episode, from 0.
        tool: tool of the event key.
        resource: resource of the event key.
        repeat: repeat index of the event key.
        fault: its type.
        changed: whether the answer differs from what it would have been, in more than its revision.
    """

    call: int
    tool: str
    resource: str
    repeat: int
    fault: Fault
    changed: bool


class CallRecord(NamedTuple):
    """One call of a trace.

    Args:
        tool: what was called, as the agent wrote it.
        arguments: its arguments, as the agent wrote them.
        answer: what the agent got.
        key: resource and repeat index of the event key; None where no draw was made.
        fault: the fault that the draw made; None for none.
        blocked_by: the earlier fault that kept the call from being drawn; None for none.
        charged: whether the call was charged to the budget.
    """

    tool: Any
    arguments: Any
    answer: Answer
    key: tuple[str, int] | None
    fault: Fault | None
    blocked_by: Fault | None
    charged: bool


class Desk:
    """One episode in progress.

    Args:
        task: what is to be done.
        regime: the noise.
        schedule_seed: seed of the schedule ω.
        traced: whether to keep every call.

    Attributes:
        calls: calls charged to the budget so far.
        ended: why the episode is over: `finished`, `budget_exceeded`; None while it goes on.
        world: the world as it is.
        exposures: faults that landed.
        recovery: trace codes.
        trace: every call, where traced.
    """

    def __init__(self, task: Task, regime: Regime, schedule_seed: int, *, traced: bool = False) -> None:
        self.task = task
        self.regime = regime
        self.schedule = Schedule(schedule_seed)
        self.world = self._before = untouched(task.base)
        self.calls = 0
        self.ended: str | None = None
        self.exposures: list[Exposure] = []
        self.recovery = Recovery()
        self.trace: list[CallRecord] | None = [] if traced else None
        self._noisy = not regime.is_quiet
        self._clock = self._blocked_until = 0
        self._outages: set[tuple[str, str]] = set()
        self._repeats: dict[tuple[str, str], int] = {}
        self._key: tuple[str, int] | None = None
        self._blocked_by: Fault | None = None

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its answer; bad input gets an error of the documented shape."""
        if self.trace is not None:
            return self._traced(self.trace, tool, arguments)
        try:
            return self._answer(tool, arguments)
        except Refusal as refusal:
            return refusal.answer()

    def _traced(self, trace: list[CallRecord], tool: str, arguments: dict[str, Any]) -> Answer:
        calls, exposures = self.calls, len(self.exposures)
        self._key = self._blocked_by = None
        try:
            answer = self._answer(tool, arguments)
        except Refusal as refusal:
            answer = refusal.answer()
        # The agent may go on to change what it sent, and what it was answered.
        sent, answered = _kept(arguments), _kept(answer)
        fault = self.exposures[-1].fault if len(self.exposures) > exposures else None
        charged = self.calls > calls
        trace.append(CallRecord(tool, sent, answered, self._key, fault, self._blocked_by, charged))
        return answer

    def _answer(self, name: str, arguments: dict[str, Any]) -> Answer:
        # 1.
        if self.ended is not None:
            raise Refusal("episode_over", "the episode has ended; nothing was done")
        if name == "finish":
            self.ended = "finished"
            return {"finished": True}
        self._charge()
        # 2.
        tool = TOOLS.get(name) if type(name) is str else None
        if tool is None:
            raise Refusal("unknown_tool", f"there is no tool {shown(name)}; there are {', '.join(TOOLS)}")
        read = read_arguments(tool.parameters, arguments)
        if tool.kind == "control":
            return self._wait(read["seconds"])
        # 3.
        resource = ANY_RESOURCE if tool.resource is None else read[tool.resource]
        request = (name, resource)
        if self._clock < self._blocked_until:
            self._blocked_by = "rate_limit"
            return _rate_limited(self._blocked_until - self._clock)
        if request in self._outages:
            self._blocked_by = "outage"
            return _outage()
        # 4.
        if self.recovery.awaited:
            self.recovery.call(name, resource, read.get("offset", 0))
        repeat = self._repeats.get(request, 0)
        self._repeats[request] = repeat + 1
        self._key = (resource, repeat)
        if self._noisy:
            draw = self.schedule.draw(name, resource, repeat)
            fault = self.regime.fault(tool.kind, repeat, draw)
            if fault is not None:
                return self._faulty(tool, read, fault, draw, self._key)
        # 5.
        return self._execute(tool, read)

    def _charge(self) -> None:
        if self.calls >= self.task.budget:
            self.ended = "budget_exceeded"
            raise Refusal("budget_exceeded", f"the budget of {self.task.budget} calls is spent")
        self.calls += 1

    def _wait(self, seconds: int) -> Answer:
        self._clock += seconds
        if self.recovery.awaited and self._clock >= self._blocked_until:
            self.recovery.call("wait", "")
        return {"waited": seconds}

    def _execute(self, tool: Tool, arguments: Answer) -> Answer:
        if tool.kind != "write":
            read: Answer = tool.run(self.world, **arguments)
            return read
        self._before, self.world = self.world, tool.run(self.world, **arguments)
        return {"revision": self.world.revision}

    def _faulty(
        self, tool: Tool, arguments: Answer, fault: Fault, draw: Draw, key: tuple[str, int]
    ) -> Answer:
        resource, repeat = key
        answer, whole = self._struck(tool, arguments, fault, draw, resource)
        # A read that shows what it would have shown, but for its revision, was struck without effect.
        changed = answer | {"revision": 0} != whole | {"revision": 0}
        self.exposures.append(Exposure(self.calls - 1, tool.name, resource, repeat, fault, changed))
        if changed:
            self.recovery.fault(CODES.get(fault), tool.name, resource, answer.get("next_offset", 0))
        return answer

    def _struck(
        self, tool: Tool, arguments: Answer, fault: Fault, draw: Draw, resource: str
    ) -> tuple[Answer, Answer]:
        """Return the answer to a call that meets a fault, and the one that it would have had."""
        if fault in _ERRORS:
            return self._error(tool, fault, draw, resource), {}
        try:
            whole = self._execute(tool, arguments)
            before = execute(tool, self._before, arguments)[1] if fault == "stale_read" else whole
        except Refusal as refusal:
            return refusal.answer(), refusal.answer()
        if fault == "timeout_after_commit":
            message = "no answer came in time; whether the write was applied is unknown"
            return error("timeout", message), whole
        if fault == "stale_read":
            return before, whole
        return (_cut if fault == "truncation" else _drop_field)(tool, whole, draw), whole

    def _error(self, tool: Tool, fault: Fault, draw: Draw, resource: str) -> Answer:
        if fault == "transient":
            return error("temporarily_unavailable", "the call failed; trying again may work")
        if fault == "outage":
            self._outages.add((tool.name, resource))
            return _outage()
        self._blocked_until = self._clock + retry_after(draw)
        return _rate_limited(retry_after(draw))


def _kept(value: Any) -> Any:
    """Return a copy that shares nothing with what was sent or answered; what is too deep, as it is."""
    try:
        return _copied(value)
    except RecursionError:
        return value


def _copied(value: Any) -> Any:
    if type(value) is dict:
        # Most parts are texts and numbers, which need no copy: asking here saves a call for each.
        return {name: _copied(part) if type(part) in _CONTAINERS else part for name, part in value.items()}
    if type(value) is list:
        return [_copied(part) if type(part) in _CONTAINERS else part for part in value]
    return value


def _rate_limited(seconds: int) -> Answer:
    return error("rate_limited", f"too many calls; wait {seconds} s", retry_after=seconds)


def _outage() -> Answer:
    return error("outage", "this request fails for the rest of the episode")


def _cut(tool: Tool, whole: Answer, draw: Draw) -> Answer:
    items = whole[tool.shows or ""]
    left = items[: kept(draw, len(items))]
    if len(left) == len(items):
        return whole
    next_offset = whole["next_offset"] - len(items) + len(left)
    return {**whole, (tool.shows or ""): left, "has_more": True, "next_offset": next_offset}


def _drop_field(tool: Tool, whole: Answer, draw: Draw) -> Answer:
    """Lose one field of the record, or of every record of a list."""
    lost = tool.fields[int(draw.magnitude * len(tool.fields))]
    shown_now = whole[tool.shows or ""]
    if isinstance(shown_now, list):
        return {**whole, (tool.shows or ""): [_without(item, lost) for item in shown_now]}
    return {**whole, (tool.shows or ""): _without(shown_now, lost)}


def _without(record: Answer, lost: str) -> Answer:
    return {name: value for name, value in record.items() if name != lost}
